"""Acts on an agent's signers and key quorums."""

from typing import TYPE_CHECKING, Any

from tests.acts.act import ABSENT, ADMINS, OF_AGENT, SESSION, Act, Journey
from tests.fixtures.signers import new_quorum, new_signer, quorum_body, signer_body

if TYPE_CHECKING:
    from tests.table.world import World


def _signer(world: "World", **body: Any) -> Journey:
    """A signer of an agent of its own: each has few."""
    agent = world.fresh_agent()
    made = new_signer(world.owner, agent)
    return Journey(world.owner, {"agent": agent.id, "signer_id": made["id"]}, body or None)


def _quorum(world: "World", **body: Any) -> Journey:
    agent = world.fresh_agent()
    made = new_quorum(world.owner, agent, [new_signer(world.owner, agent)["id"]], threshold=1)
    return Journey(world.owner, {"agent": agent.id, "quorum_id": made["id"]}, body or None)


def _new_quorum(world: "World") -> Journey:
    agent = world.fresh_agent()
    body = quorum_body([new_signer(world.owner, agent)["id"]], threshold=1)
    return Journey(world.owner, {"agent": agent.id}, body)


ACTS = (
    Act("GET /agents/{agentId}/signers", SESSION, ADMINS),
    Act(
        "POST /agents/{agentId}/signers",
        SESSION,
        ADMINS,
        "signers",
        command="CreateSigner",
        journey=lambda world: Journey(
            world.owner, {"agent": world.fresh_agent().id}, signer_body(issueCredential=True)
        ),
    ),
    Act(
        "PATCH /agents/{agentId}/signers/{signerId}",
        SESSION,
        ADMINS,
        command="ChangeSigner",
        nothing=OF_AGENT | {"signer": ABSENT, "change": {}},
        journey=lambda world: _signer(world, label="another"),
    ),
    Act(
        "DELETE /agents/{agentId}/signers/{signerId}",
        SESSION,
        ADMINS,
        "signers",
        command="RevokeSigner",
        journey=_signer,
    ),
    Act("GET /agents/{agentId}/key-quorums", SESSION, ADMINS),
    Act(
        "POST /agents/{agentId}/key-quorums",
        SESSION,
        ADMINS,
        "signers",
        command="CreateQuorum",
        nothing=OF_AGENT | {"quorum": {"name": "x", "threshold": 1, "memberSignerIds": [ABSENT], "permissions": []}},
        journey=_new_quorum,
    ),
    Act(
        "PATCH /agents/{agentId}/key-quorums/{quorumId}",
        SESSION,
        ADMINS,
        command="ChangeQuorum",
        nothing=OF_AGENT | {"quorum": ABSENT, "change": {}},
        journey=lambda world: _quorum(world, name="another"),
    ),
    Act(
        "DELETE /agents/{agentId}/key-quorums/{quorumId}",
        SESSION,
        ADMINS,
        "signers",
        command="RevokeQuorum",
        nothing=OF_AGENT | {"quorum": ABSENT},
        journey=_quorum,
    ),
)
