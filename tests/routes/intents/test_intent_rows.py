"""An intent that somebody changed in the database is refused, whatever of it they changed, and signs nothing."""

import json

import asyncpg
import pytest

from tests.fixtures.callers import Agent, Tenant
from tests.fixtures.people import Person
from tests.routes.intents.makers import act, propose, propose_authorised, state, status_and_code, transfer

_EVIL = json.dumps({"to": "0x" + "66" * 20, "value": "1000000", "chainId": 31337, "broadcast": False})
EDITS = {
    "payload": f"payload = '{_EVIL}'",
    "payload and digest": f"payload = '{_EVIL}', digest = sha256('custody-intent-v1:transfer:{_EVIL}'::bytea)",
    "type": "type = 'rpc'",
    "creator": "created_by = 'tenant_key:other'",
    "baseline": "baseline = 'wallets:other'",
    "who authorised": "authorized_by = gen_random_uuid()",
    "when": "authorized_at = service_now()",
    "expiry": "expires_at = expires_at + interval '1 year'",
    "transactions": "tx_ids = ARRAY[gen_random_uuid()]",
    "agent": "incarnation = gen_random_uuid()",
    "seal": "mac = sha256('x')",
}


async def change(owner: asyncpg.Connection, intent: str, what: str) -> None:
    assert await owner.execute(f"UPDATE intents SET {what} WHERE id = $1", intent) == "UPDATE 1"


@pytest.mark.parametrize("what", EDITS.values(), ids=EDITS)
async def test_an_edited_intent_is_not_carried_out(
    as_owner: Person, tenant: Tenant, agent: Agent, owner: asyncpg.Connection, what: str
) -> None:
    intent = propose_authorised(tenant, as_owner, transfer(agent))
    await change(owner, intent["id"], what)

    for step in ("execute", "cancel"):
        assert status_and_code(act(as_owner, intent, step)) in {(503, "intent_tampered"), (404, "agent_absent")}
    assert tenant.ok("GET", f"/vault/{agent.id}/history") == []
    assert agent.sign().status_code == 200


async def test_a_state_that_no_person_gave_counts_nothing(
    as_owner: Person, tenant: Tenant, agent: Agent, owner: asyncpg.Connection
) -> None:
    pending, rejected = propose(tenant, transfer(agent)), propose(tenant, transfer(agent))
    act(as_owner, rejected, "reject")
    for intent in (pending, rejected):
        await change(owner, intent["id"], "status = 'authorized'")

        assert status_and_code(act(as_owner, intent, "execute")) == (503, "intent_tampered")
    assert tenant.ok("GET", f"/vault/{agent.id}/history") == []


async def test_an_executed_one_set_back_whole_signs_no_second_time(
    as_owner: Person, tenant: Tenant, agent: Agent, owner: asyncpg.Connection
) -> None:
    intent = propose_authorised(tenant, as_owner, transfer(agent, 7))
    row = await owner.fetchrow("SELECT status, mac, updated_at FROM intents WHERE id = $1", intent["id"])
    assert act(as_owner, intent, "execute").json()["data"]["status"] == "executed"
    # The row as it was, with the seal that it had then: what fixes it is the transaction, which is there.
    await owner.execute(
        "UPDATE intents SET status = $2, mac = $3, result = NULL, updated_at = $4 WHERE id = $1", intent["id"], *row
    )

    answer = act(as_owner, intent, "execute")

    assert answer.status_code in (409, 503), answer.text
    [only] = tenant.ok("GET", f"/vault/{agent.id}/history")
    assert only["value"] == "7"
    assert await owner.fetchval("SELECT sum(amount)::int FROM spend WHERE agent_id = $1", agent.id) == 7


async def test_an_edited_row_is_expired_by_nobody_and_harms_no_other(
    as_owner: Person, tenant: Tenant, agent: Agent, owner: asyncpg.Connection
) -> None:
    edited, honest = (propose(tenant, transfer(agent)) for _ in range(2))
    await change(owner, edited["id"], "expires_at = service_now() - interval '1 day'")

    # To who reads it, its time is up; to who acts on it, it is no intent of the service's.
    assert state(tenant, edited) == "expired"
    assert status_and_code(act(as_owner, edited, "authorize")) == (503, "intent_tampered")
    assert act(as_owner, honest, "authorize").status_code == 200
