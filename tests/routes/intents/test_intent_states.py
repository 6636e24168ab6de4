"""The life of an intent: which act leads from which state to which, and who may do it."""

import asyncio
import json
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any

import asyncpg
import pytest

from tests.fixtures.callers import Agent, Client, Tenant
from tests.fixtures.eventually import eventually
from tests.fixtures.people import Person, member, sign_in
from tests.fixtures.server import EVM_CHAIN, Service
from tests.routes.intents.makers import act, propose, propose_authorised, state, status_and_code, transfer

ACTS = ("authorize", "approve", "reject", "execute", "fail", "cancel", "expire")
# How an intent comes into a state: by these acts, one after the other.
WAYS = {
    "pending": (),
    "authorized": ("authorize",),
    "executed": ("authorize", "execute"),
    "failed": ("fail",),
    "rejected": ("reject",),
    "canceled": ("cancel",),
    "expired": ("expire",),
}
LEADS = {
    ("pending", "authorize"): "authorized",
    ("pending", "approve"): "authorized",
    ("pending", "reject"): "rejected",
    ("authorized", "execute"): "executed",
    **{(old, "fail"): "failed" for old in ("pending", "authorized")},
    **{(old, "cancel"): "canceled" for old in ("pending", "authorized")},
    **{(old, "expire"): "expired" for old in ("pending", "authorized")},
}
REFUSED = {
    ("pending", "execute"): "intent_not_authorized",
    ("authorized", "authorize"): "intent_not_pending",
    ("authorized", "approve"): "intent_not_pending",
    ("authorized", "reject"): "intent_not_pending",
}


def asks_a_node(**payload: Any) -> dict[str, Any]:
    return {"intentType": "rpc", "payload": {"method": "eth_chainId", "chainId": EVM_CHAIN, **payload}}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("step", ACTS)
def test_an_act_leads_from_a_state_to_the_next_or_is_refused(
    as_owner: Person, tenant: Tenant, agent: Agent, way: str, step: str
) -> None:
    intent = propose(tenant, transfer(agent))
    for before in WAYS[way]:
        assert act(as_owner, intent, before).status_code == 200
    assert state(tenant, intent) == way

    answer = act(as_owner, intent, step)

    if (next_one := LEADS.get((way, step))) is not None:
        assert (answer.status_code, answer.json()["data"]["status"]) == (200, next_one)
    else:
        closed = "intent_not_authorized" if step == "execute" else "intent_closed"
        assert status_and_code(answer) == (409, REFUSED.get((way, step), closed))
    assert state(tenant, intent) == (next_one or way)


@pytest.mark.parametrize("step", ACTS)
def test_only_a_person_with_a_recent_second_factor_acts(
    service: Service, tenant: Tenant, agent: Agent, as_owner: Person, step: str
) -> None:
    intent = propose(tenant, transfer(agent))
    if step == "execute":
        act(as_owner, intent, "authorize")
    before = state(tenant, intent)
    with (
        closing(member(service, tenant, "admin")) as without_factor,
        closing(member(service, tenant, "developer", mfa=True)) as developer,
        closing(sign_in(service)) as stranger,
    ):
        refusals = [
            status_and_code(act(one, intent, step)) for one in (tenant, agent, without_factor, developer, stranger)
        ]

    assert [status for status, _ in refusals] == [403] * 5
    assert [code for _, code in refusals[2:4]] == ["mfa_required", "wrong_role"]
    assert state(tenant, intent) == before


def test_another_tenants_intent_does_not_exist(
    service: Service, tenant: Tenant, other_tenant: Tenant, agent: Agent
) -> None:
    intent = propose(tenant, transfer(agent))

    with closing(member(service, other_tenant, "owner", mfa=True)) as theirs:
        answers = [act(theirs, intent, step) for step in ACTS] + [theirs.get(f"/intents/{intent['id']}")]
        listed = theirs.ok("GET", "/intents")

    assert {status_and_code(answer) for answer in answers} == {(404, "intent_absent")}
    assert (listed["intents"], listed["total"]) == ([], 0)
    assert state(tenant, intent) == "pending"


def test_the_same_person_in_another_session_is_the_same_person(
    service: Service, as_owner: Person, agent: Agent
) -> None:
    intent = propose(as_owner, transfer(agent))
    with closing(sign_in(service, as_owner.wallet, tenant=as_owner.tenant)) as again:
        again.recovery_codes = as_owner.recovery_codes
        again.step_up()

        assert status_and_code(act(again, intent, "authorize")) == (403, "own_intent")
        # They may drop it, though.
        assert act(again, intent, "cancel").json()["data"]["status"] == "canceled"


async def test_a_reason_is_kept_and_told(
    as_owner: Person, tenant: Tenant, agent: Agent, owner: asyncpg.Connection
) -> None:
    intent = propose(tenant, transfer(agent))

    rejected = act(as_owner, intent, "reject", {"reason": "not this month"}).json()["data"]

    assert rejected["reason"] == "not this month"
    [row] = as_owner.ok("GET", f"/audit/events?action=intent.rejected&resourceId={intent['id']}")["data"]
    assert row["metadata"]["reason"] == "not this month"
    assert (await told_of(owner, tenant, "intent.rejected"))["reason"] == "not this month"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"executionResult": {"code": "by_hand"}}, "by_hand"),
        ({"executionResult": {"code": "x" * 65}}, None),
        ({"executionResult": {"code": [1]}}, None),
        ({}, None),
    ],
    ids=str,
)
async def test_an_event_says_why_an_intent_failed(
    as_owner: Person, tenant: Tenant, agent: Agent, owner: asyncpg.Connection, body: dict[str, Any], reason: str | None
) -> None:
    intent = propose(tenant, transfer(agent))

    assert act(as_owner, intent, "fail", body).status_code == 200

    assert (await told_of(owner, tenant, "intent.failed"))["reason"] == reason


async def told_of(owner: asyncpg.Connection, tenant: Tenant, event: str) -> dict[str, Any]:
    """Return the data of the only event of a name; the scheduler may have published it already."""
    found = "SELECT data FROM outbox WHERE tenant_id = $1 AND event = $2"
    rows = await owner.fetch(f"{found} UNION ALL {found.replace('outbox', 'events')}", tenant.id, event)
    [said] = {row["data"] for row in rows}
    data: dict[str, Any] = json.loads(said)
    return data


def test_time_runs_out_without_a_hand(as_owner: Person, tenant: Tenant, agent: Agent) -> None:
    waiting = propose(tenant, {**transfer(agent), "ttlSeconds": 1})
    said_yes = propose(tenant, {**transfer(agent), "ttlSeconds": 2})
    act(as_owner, said_yes, "authorize")

    def ids_expired() -> list[str]:
        rows = as_owner.ok("GET", "/audit/events?action=intent.expired")["data"]
        return sorted(row["resource_id"] for row in rows)

    both = sorted([waiting["id"], said_yes["id"]])
    eventually(ids_expired, lambda found: found == both)
    assert (state(tenant, waiting), state(tenant, said_yes)) == ("expired", "expired")
    assert status_and_code(act(as_owner, said_yes, "execute")) == (409, "intent_not_authorized")
    assert tenant.ok("GET", f"/vault/{agent.id}/history") == []


def test_a_frozen_agents_intent_waits(as_owner: Person, tenant: Tenant, agent: Agent) -> None:
    pending, ready = propose(tenant, transfer(agent)), propose_authorised(tenant, as_owner, transfer(agent))
    tenant.ok("POST", f"/agents/{agent.id}/freeze", {})

    assert act(as_owner, pending, "authorize").status_code == 423
    assert act(as_owner, ready, "execute").status_code == 423
    as_owner.ok("POST", f"/agents/{agent.id}/unfreeze", {})
    assert act(as_owner, ready, "execute").json()["data"]["status"] == "executed"


def test_an_agent_that_is_gone_takes_its_intents_along(as_owner: Person, tenant: Tenant, agent: Agent) -> None:
    intent = propose_authorised(tenant, as_owner, transfer(agent))
    tenant.ok("DELETE", f"/agents/{agent.id}")
    tenant.agent(agent_id=agent.id)

    assert status_and_code(act(as_owner, intent, "execute")) == (404, "intent_absent")


def test_lists_filter_by_every_spelling(tenant: Tenant, as_owner: Person) -> None:
    first, second = tenant.agent(), tenant.agent()
    a, b = propose(tenant, transfer(first)), propose(tenant, transfer(second))
    node = propose(tenant, asks_a_node())
    act(as_owner, a, "cancel")

    def find(query: str) -> set[str]:
        return {one["id"] for one in tenant.ok("GET", f"/intents?{query}")["intents"]}

    assert find("") == {a["id"], b["id"], node["id"]}
    assert find("status=canceled") == {a["id"]}
    for name in ("intentType", "intent_type", "type"):
        assert find(f"{name}=rpc") == {node["id"]}
    for name in ("agentId", "wallet_id"):
        assert find(f"{name}={second.id}") == {b["id"]}
    assert find(f"status=pending&agentId={first.id}") == set()
    page = tenant.ok("GET", "/intents?limit=1&offset=1")
    assert ([one["id"] for one in page["intents"]], page["total"], page["limit"]) == ([b["id"]], 3, 1)


def test_many_at_once_authorise_one_intent_once(as_owner: Person, tenant: Tenant, agent: Agent) -> None:
    intent = propose(tenant, transfer(agent))

    answers = asyncio.run(_at_once([partial(act, as_owner, intent, step) for step in ("authorize", "reject") * 4]))

    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 7
    assert state(tenant, intent) in ("authorized", "rejected")


async def _at_once(asks: list[Callable[[], Any]]) -> list[Any]:
    return await asyncio.gather(*(asyncio.to_thread(ask) for ask in asks))


def test_a_repetition_under_its_key_is_told_the_same(as_owner: Person, tenant: Tenant, agent: Agent) -> None:
    def again(client: Client, path: str, body: dict[str, Any], key: str) -> tuple[Any, Any]:
        first, second = (client.post(path, json=body, headers={"Idempotency-Key": key}) for _ in range(2))
        assert (first.status_code, second.headers.get("Idempotency-Replayed")) == (second.status_code, "true")
        return first.json()["data"], second.json()["data"]

    made, twin = again(tenant, "/intents", transfer(agent), "propose it once")
    assert made["id"] == twin["id"]
    for step, key in (("authorize", "say yes once"), ("execute", "do it just once")):
        done, twin = again(as_owner, f"/intents/{made['id']}/{step}", {}, key)
        assert done["status"] == twin["status"]
    assert len(tenant.ok("GET", f"/vault/{agent.id}/history")) == 1
