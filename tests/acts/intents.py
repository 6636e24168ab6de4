"""Acts on intents, batches of calls among them."""

from typing import TYPE_CHECKING, Any

from tests.acts.act import ABSENT, ADMINS, AGENT, BUILDERS, OF_AGENT, PUBLIC, SESSION, SIDE, TEAM, Act, Journey
from tests.fixtures.callers import ADDRESS
from tests.routes.intents.makers import act, propose
from tests.routes.intents.makers import transfer as intent_of_transfer

if TYPE_CHECKING:
    from tests.table.world import World


def _new_intent(world: "World") -> Journey:
    return Journey(world.tenant, body=intent_of_transfer(world.agent))


def _intent(world: "World", *acts: str, body: Any = None) -> Journey:
    """An intent of the tenant's program, on which its owner has acted so far."""
    made = propose(world.tenant, intent_of_transfer(world.agent))
    for one in acts:
        assert act(world.owner, made, one).is_success
    return Journey(world.owner, {"intent_id": made["id"]}, body)


def _calls(world: "World") -> Journey:
    agent = world.caller_of_calls
    return Journey(agent, {"agent": agent.id}, {"calls": [{"to": ADDRESS, "value": "1"}], "broadcast": False})


ACTS = (
    Act(
        "POST /vault/{agentId}/actions/send-calls",
        AGENT,
        command="SendCalls",
        nothing=OF_AGENT | {"id": ABSENT, "order": {"calls": [{"to": ADDRESS, "value": "1"}]}},
        journey=_calls,
    ),
    Act(
        "POST /intents",
        SIDE,
        BUILDERS,
        command="CreateIntent",
        nothing={
            "id": ABSENT,
            "kind": "transfer",
            "agent": "absent",
            "payload": {"to": ADDRESS, "value": "1", "chainId": 31337},
            "resource_type": None,
            "resource_id": None,
            "name": None,
            "expires_at": None,
            "ttl_seconds": 60,
        },
        journey=_new_intent,
    ),
    Act("GET /intents", SIDE, TEAM),
    Act("GET /intents/{intentId}", SIDE, TEAM, journey=_intent),
    Act(
        "POST /intents/{intentId}/authorize",
        SESSION,
        ADMINS,
        "intents",
        command="AuthorizeIntent",
        nothing={"id": ABSENT},
        journey=lambda world: _intent(world, body={"reason": "seen"}),
    ),
    Act(
        "POST /intents/{intentId}/approve",
        SESSION,
        ADMINS,
        "intents",
        command="AuthorizeIntent",
        journey=lambda world: _intent(world, body={"reason": "seen"}),
    ),
    Act(
        "POST /intents/{intentId}/reject",
        SESSION,
        ADMINS,
        "intents",
        command="CloseIntent",
        nothing={"id": ABSENT, "act": "cancel"},
        journey=lambda world: _intent(world, body={"reason": "no"}),
    ),
    Act(
        "POST /intents/{intentId}/execute",
        SESSION,
        ADMINS,
        "intents",
        command="ExecuteIntent",
        nothing={"id": ABSENT},
        journey=lambda world: _intent(world, "authorize"),
    ),
    Act(
        "POST /intents/{intentId}/fail",
        SESSION,
        ADMINS,
        "intents",
        command="CloseIntent",
        journey=lambda world: _intent(world, body={"executionResult": {"seen": True}}),
    ),
    Act("POST /intents/{intentId}/cancel", SESSION, ADMINS, "intents", command="CloseIntent", journey=_intent),
    Act("POST /intents/{intentId}/expire", SESSION, ADMINS, "intents", command="CloseIntent", journey=_intent),
    Act((), SESSION, ADMINS, "intents", command="FinishIntent", nothing={"id": ABSENT, "result": "1"}),
    Act((), PUBLIC, command="ExpireIntent", nothing={"tenant": "t", "intent": ABSENT}, senders="scheduler"),
)
