"""Lists of intents: what is long of one is told by its length, and is there for who asks for it."""

import asyncpg

from tests.fixtures.callers import Agent, Tenant
from tests.routes.intents.makers import propose, transfer

LONG = "0x" + "ab" * 1_500


def list_entry(tenant: Tenant, intent: dict[str, object], query: str = "") -> dict[str, object]:
    """An intent as the list shows it."""
    found: list[dict[str, object]] = tenant.ok("GET", f"/intents{query}")["intents"]
    return next(one for one in found if one["id"] == intent["id"])


def test_a_long_payload_is_told_by_its_length_and_hash(tenant: Tenant, agent: Agent) -> None:
    intent = propose(tenant, transfer(agent, data=LONG))

    shown = list_entry(tenant, intent)

    assert "payload" not in shown
    assert len(LONG) < shown["payloadBytes"] < len(LONG) + 300
    assert shown["digest"] == intent["digest"]


def test_a_long_payload_comes_where_it_is_asked_for(tenant: Tenant, agent: Agent) -> None:
    intent = propose(tenant, transfer(agent, data=LONG))

    shown = list_entry(tenant, intent, "?include=data")

    assert shown["payload"] == intent["payload"]
    assert "payloadBytes" not in shown
    assert tenant.ok("GET", f"/intents/{intent['id']}")["payload"] == intent["payload"]


def test_a_short_payload_is_in_the_list_and_a_result_that_is_not_there_is_null(tenant: Tenant, agent: Agent) -> None:
    intent = propose(tenant, transfer(agent))

    shown = list_entry(tenant, intent)

    assert shown == intent


async def test_a_long_result_is_told_by_its_length(tenant: Tenant, agent: Agent, owner: asyncpg.Connection) -> None:
    intent = propose(tenant, transfer(agent))
    result = '{"answer":"' + "r" * 3_000 + '"}'
    await owner.execute("UPDATE intents SET result = $1 WHERE id = $2", result, intent["id"])

    shown, whole = list_entry(tenant, intent), list_entry(tenant, intent, "?include=data")

    assert shown["executionResultBytes"] == len(result)
    assert not {"executionResult", "execution_result"} & shown.keys()
    assert whole["executionResult"] == whole["execution_result"] == {"answer": "r" * 3_000}
