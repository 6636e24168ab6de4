"""Acts on agents and their tokens, and what is read of one."""

from tests.acts.act import ADMINS, BUILDERS, KEYS, OF_AGENT, PUBLIC, SIDE, SIDE_OR_AGENT, TEAM, Act
from tests.fixtures.callers import fresh

ACTS = (
    Act(
        "POST /agents",
        SIDE,
        BUILDERS,
        "tenantAdmin",
        command="CreateAgents",
        nothing={"agents": []},
        body=lambda world: {"id": fresh(), "name": "An agent"},
    ),
    Act("GET /agents", SIDE, TEAM),
    Act("GET /agents/{agentId}", SIDE_OR_AGENT, TEAM),
    Act("DELETE /agents/{agentId}", KEYS, command="DeleteAgent", nothing=OF_AGENT),
    Act(
        "POST /agents/{agentId}/token",
        SIDE,
        BUILDERS,
        "tenantAdmin",
        command="MintAgentToken",
        nothing=OF_AGENT | {"ttl_seconds": 60, "expires_in": "1m"},
        body=lambda world: {"expiresIn": "1h"},
    ),
    Act(
        "POST /agents/batch",
        SIDE,
        BUILDERS,
        "tenantAdmin",
        command="CreateAgents",
        body=lambda world: {"agents": [{"id": fresh(), "name": "An agent"}]},
    ),
    Act("GET /agents/{agentId}/account", SIDE_OR_AGENT, TEAM),
    Act("GET /agents/{agentId}/balance", SIDE_OR_AGENT, TEAM),
    Act("GET /agents/{agentId}/tokens", SIDE_OR_AGENT, TEAM),
    Act("GET /dashboard/{agentId}", SIDE_OR_AGENT, TEAM),
    Act("DELETE /agents/{agentId}/tokens", SIDE, ADMINS, "tenantAdmin", command="RevokeAgentTokens", nothing=OF_AGENT),
    Act(
        "PATCH /agents/{agentId}",
        SIDE,
        BUILDERS,
        "tenantAdmin",
        command="ChangeAgent",
        nothing=OF_AGENT | {"name": "Called"},
        body=lambda world: {"name": "Called otherwise"},
    ),
    Act((), PUBLIC, command="HaveKeys", nothing={"tenant": "t", "claimed": []}),
)
