"""A person's decisions over orders, and what is read of orders."""

from typing import TYPE_CHECKING

from tests.acts.act import ABSENT, ADMINS, AGENT, DECIDERS, OF_AGENT, PUBLIC, SIDE, SIDE_OR_AGENT, TEAM, Act, Journey
from tests.fixtures.callers import rule

if TYPE_CHECKING:
    from tests.table.world import World


def _waiting(world: "World") -> Journey:
    """An order that waits, of the agent whose other orders do not."""
    agent, rules = world.agent, f"/agents/{world.agent.id}/policies"
    world.tenant.ok("PUT", rules, [rule("auto-approve-threshold", threshold="0")])
    waiting = agent.sign().json()["data"]["txId"]
    world.tenant.ok("PUT", rules, [])
    return Journey(agent, {"agent": agent.id, "tx_id": waiting})


ACTS = (
    Act(
        "POST /vault/{agentId}/approve/{txId}",
        DECIDERS,
        ADMINS,
        "approvals",
        command="Approve",
        nothing={"approval_id": ABSENT},
        body=lambda world: {},
    ),
    Act(
        "POST /vault/{agentId}/reject/{txId}",
        DECIDERS,
        ADMINS,
        "approvals",
        command="Deny",
        nothing={"approval_id": ABSENT},
        body=lambda world: {"reason": "no"},
    ),
    Act(
        "POST /vault/{agentId}/transactions/{txId}/withdraw",
        AGENT,
        command="Withdraw",
        nothing=OF_AGENT | {"tx_id": ABSENT},
        journey=_waiting,
    ),
    Act("GET /vault/{agentId}/pending", SIDE_OR_AGENT, TEAM),
    Act("GET /vault/{agentId}/history", SIDE_OR_AGENT, TEAM),
    Act("GET /vault/{agentId}/transactions", SIDE_OR_AGENT, TEAM),
    Act("GET /transactions", SIDE, TEAM),
    Act("GET /approvals", SIDE, TEAM),
    Act("GET /approvals/stats", SIDE, TEAM),
    Act("GET /approvals/words", SIDE, TEAM),
    Act("GET /approvals/{id}", SIDE, TEAM),
    Act("GET /approvals/{id}/words", SIDE, TEAM),
    Act("POST /approvals/{id}/approve", DECIDERS, ADMINS, "approvals", command="Approve", body=lambda world: {}),
    Act(
        "POST /approvals/{id}/deny", DECIDERS, ADMINS, "approvals", command="Deny", body=lambda world: {"reason": "no"}
    ),
    Act("GET /vault/{agentId}/transactions/{txId}", SIDE_OR_AGENT, TEAM),
    Act(
        "GET /vault/{agentId}/transactions/{txId}/receipt",
        SIDE_OR_AGENT,
        TEAM,
        command="IssueReceipt",
        nothing=OF_AGENT | {"tx_id": ABSENT},
    ),
    Act((), PUBLIC, command="Expire", nothing={"tenant": "t", "approval": ABSENT}, senders="scheduler"),
    Act((), PUBLIC, command="Release", nothing={"tenant": "t", "approval": ABSENT}, senders="scheduler"),
)
