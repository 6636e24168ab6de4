"""Writes that share a commit, orders that are taken along, and state that is kept: each as exact as one by one."""

import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from custody.protocol.frames import VERSION
from tests.fixtures.callers import ADDRESS, Agent, Tenant, rule
from tests.fixtures.eventually import soon
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import Wire, greet, outcome_of
from tests.routes.orders import solana_payment

# Signatures of agents with such names wait at their write until the gate opens: statements that are under way. Orders
# whose reference is a number have a gate of that number.
GATE = """
CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(
    CASE WHEN NEW.reference_id ~ '^[0-9]+$' THEN NEW.reference_id::int ELSE 4712 END);
  RETURN NEW;
END $$;
CREATE TRIGGER gate BEFORE INSERT ON transactions FOR EACH ROW WHEN (NEW.agent_id LIKE 'slow-%') EXECUTE FUNCTION gate()
"""
NO_GATE = "DROP TRIGGER gate ON transactions; DROP FUNCTION gate"


@pytest.fixture(autouse=True)
async def still_minute(owner: asyncpg.Connection) -> AsyncIterator[None]:
    """No minute ends while orders are sent, however slowly: over its end no state is kept, nothing taken along."""
    moment = await owner.fetchval("SELECT (date_trunc('minute', clock_timestamp()) + interval '5 seconds')::text")
    await owner.execute(_clock(f"timestamptz '{moment}'"))
    yield
    await owner.execute(_clock("clock_timestamp()"))


@pytest.fixture
async def gate(owner: asyncpg.Connection) -> AsyncIterator[asyncpg.Connection]:
    """Closed while the test holds `pg_advisory_lock(4712)`."""
    await owner.execute(GATE)
    yield owner
    await owner.execute("SELECT pg_advisory_unlock_all()")
    await owner.execute(NO_GATE)


@asynccontextmanager
async def closing_gate(gate: asyncpg.Connection) -> AsyncIterator[None]:
    """Nobody gets through the gate meanwhile."""
    await gate.execute("SELECT pg_advisory_lock(4712)")
    try:
        yield
    finally:
        await gate.execute("SELECT pg_advisory_unlock(4712)")


@pytest.fixture
def wire(service: Service) -> Iterator[Wire]:
    with greet(service) as wire:
        yield wire


def ask(
    wire: Wire, agent: Agent, number: int, tx_id: str | None = None, key: dict[str, Any] | None = None, **order: Any
) -> str:
    """Send one order and wait for no answer."""
    tx_id = tx_id or str(uuid.uuid4())
    kind = "solana" if "transaction" in order else "evm"
    told = order if kind == "solana" else {"to": ADDRESS, "value": "1", "broadcast": False, "chainId": 31337, **order}
    body = {"type": "SignOrder", "agent": agent.id, "tx_id": tx_id, "prepared": None}
    token = agent.headers["authorization"].removeprefix("Bearer ")
    wire.say(
        {
            "v": VERSION,
            "n": number,
            "deadline_ms": 60_000,
            "origin": {"request_id": "test"},
            "body": body | {"question": {"kind": kind, "request": told}},
            "proof": {"kind": "agent", "value": token},
            "idempotency": key,
        }
    )
    return tx_id


def answers(wire: Wire, count: int) -> dict[int, Any]:
    """Read the next replies, by the numbers of their orders."""
    replies = [wire.hear() for _ in range(count)]
    return {reply["n"]: outcome_of(reply) for reply in replies}


def figures(service: Service) -> dict[str, int]:
    """The signer's counters."""
    with greet(service) as wire:
        counters: dict[str, int] = wire.ask("Status")["data"]["counters"]
        return counters


def growth_of(service: Service, before: dict[str, int], name: str) -> int:
    """By how much a counter has grown."""
    return figures(service).get(name, 0) - before.get(name, 0)


async def under_way(gate: asyncpg.Connection, count: int, number: int = 4712) -> None:
    """Wait until so many statements stand at a gate."""
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = $1 AND NOT granted"
    await soon(lambda: gate.fetchval(waiting, number), count)


async def test_writes_of_several_agents_share_a_commit(
    service: Service, tenant: Tenant, gate: asyncpg.Connection, wire: Wire
) -> None:
    slow = [tenant.agent(agent_id=f"slow-{uuid.uuid4().hex}") for _ in range(2)]
    agents = [tenant.agent() for _ in range(6)]
    before = figures(service)

    async with closing_gate(gate):
        for number, agent in enumerate(slow):
            ask(wire, agent, number)
        await under_way(gate, 2)
        for number, agent in enumerate(agents, 2):
            ask(wire, agent, number)
        await soon(lambda: figures(service)["writes_waiting"], len(agents))
    found = answers(wire, 8)

    assert [one["type"] for one in found.values()] == ["Signed"] * 8
    assert growth_of(service, before, "batched_orders") == 8
    assert growth_of(service, before, "batched_writes") == 3


async def test_an_order_that_fails_fails_nobody_else(
    service: Service, tenant: Tenant, gate: asyncpg.Connection, wire: Wire
) -> None:
    slow = [tenant.agent(agent_id=f"slow-{uuid.uuid4().hex}") for _ in range(2)]
    agents = [tenant.agent() for _ in range(4)]
    sent_before = ask(wire, agents[0], 0)
    earlier = answers(wire, 1)[0]
    before = figures(service)

    async with closing_gate(gate):
        for number, agent in enumerate(slow):
            ask(wire, agent, number)
        await under_way(gate, 2)
        # The one that kept state judges without a read, and meets its own earlier row at the write.
        ask(wire, agents[0], 2, sent_before)
        for number, agent in enumerate(agents[1:], 3):
            ask(wire, agent, number)
        await soon(lambda: figures(service)["writes_waiting"], len(agents))
    found = answers(wire, 6)

    assert growth_of(service, before, "refused_batches") == 1
    assert found.pop(2) == earlier
    assert [one["type"] for one in found.values()] == ["Signed"] * 5
    assert len(tenant.ok("GET", f"/vault/{agents[0].id}/history")) == 1


async def test_a_batch_waits_for_no_agents_row(
    service: Service, tenant: Tenant, owner: asyncpg.Connection, wire: Wire
) -> None:
    held, agents = tenant.agent(), [tenant.agent() for _ in range(5)]

    async with owner.transaction():
        await owner.execute("SELECT FROM agents WHERE tenant_id = $1 AND id = $2 FOR UPDATE", tenant.id, held.id)
        for number, agent in enumerate([held, *agents]):
            ask(wire, agent, number)
        # All but the one answer while its row is held.
        found = answers(wire, 5)
        assert sorted(found) == [1, 2, 3, 4, 5]
        assert [one["type"] for one in found.values()] == ["Signed"] * 5
    assert answers(wire, 1)[0]["type"] == "Signed"


async def test_orders_of_one_agent_are_taken_along_up_to_its_limit(
    service: Service, tenant: Tenant, gate: asyncpg.Connection, wire: Wire
) -> None:
    agent = tenant.agent(rule("spending-limit", maxPerDay="6"), agent_id=f"slow-{uuid.uuid4().hex}")
    before = figures(service)

    async with closing_gate(gate):
        ask(wire, agent, 0)
        await under_way(gate, 1)
        for number in range(1, 10):
            ask(wire, agent, number)
        # One of them is no order at all, and one names a nonce.
        ask(wire, agent, 10, chainId=4711)
        ask(wire, agent, 11, nonce=77)
        await soon(lambda: figures(service)["orders_waiting"], 11)
    found = answers(wire, 12)

    assert found.pop(10)["code"] == "unknown_chain"
    assert found.pop(11)["type"] == "Refused"
    said = [one["type"] for one in found.values()]
    assert (said.count("Signed"), said.count("Refused")) == (6, 4)
    assert growth_of(service, before, "orders_taken_along") == 4
    spent = await gate.fetchval(
        "SELECT sum(amount) FROM spend WHERE tenant_id = $1 AND agent_id = $2", tenant.id, agent.id
    )
    nonces = await gate.fetch("SELECT nonce FROM nonces WHERE agent_id = $2 AND tenant_id = $1", tenant.id, agent.id)
    assert (int(spent), sorted(row["nonce"] for row in nonces)) == (6, list(range(6)))


async def test_a_key_that_was_used_before_spoils_no_order_that_is_taken_along(
    service: Service, tenant: Tenant, gate: asyncpg.Connection, wire: Wire
) -> None:
    agent = tenant.agent(agent_id=f"slow-{uuid.uuid4().hex}")
    key = {"route": "POST /vault/:agentId/sign", "key_hash": uuid.uuid4().bytes * 2, "fingerprint": b"f" * 32}
    ask(wire, agent, 0, key=key)
    earlier = answers(wire, 1)[0]

    async with closing_gate(gate):
        ask(wire, agent, 1)
        await under_way(gate, 1)
        ask(wire, agent, 2)
        ask(wire, agent, 3, key=key)
        ask(wire, agent, 4)
        await soon(lambda: figures(service)["orders_waiting"], 3)
    found = answers(wire, 4)

    assert found.pop(3) == earlier
    assert [one["type"] for one in found.values()] == ["Signed"] * 3
    assert len(tenant.ok("GET", f"/vault/{agent.id}/history")) == 4


async def test_a_broken_commit_releases_nothing_that_was_taken_along(
    service: Service, tenant: Tenant, gate: asyncpg.Connection, wire: Wire
) -> None:
    """The first was signed before under the same id: its old row vouches for nobody else."""
    limit = rule("spending-limit", asset="solana:native", maxPerDay="15")
    agent = tenant.agent(limit, agent_id=f"slow-{uuid.uuid4().hex}")
    again = {**solana_payment(agent, 1), "broadcast": False, "referenceId": "4713"}
    sent_before = ask(wire, agent, 0, **again)
    signed = {0: 1} if answers(wire, 1)[0]["type"] == "Signed" else {}

    await gate.execute("SELECT pg_advisory_lock(4713)")
    async with closing_gate(gate):
        ask(wire, agent, 1, **solana_payment(agent, 1) | {"broadcast": False})
        await under_way(gate, 1)
        ask(wire, agent, 2, sent_before, **again)
        for number, lamports in ((3, 5), (4, 6)):
            ask(wire, agent, number, **solana_payment(agent, lamports) | {"broadcast": False})
        await soon(lambda: figures(service)["orders_waiting"], 3)
    await under_way(gate, 1, 4713)
    await gate.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objid = 4713 AND NOT granted"
    )
    await gate.execute("SELECT pg_advisory_unlock(4713)")
    found = answers(wire, 4)
    ask(wire, agent, 5, **solana_payment(agent, 12) | {"broadcast": False})
    found |= answers(wire, 1)

    lamports = {1: 1, 3: 5, 4: 6, 5: 12}
    signed |= {number: amount for number, amount in lamports.items() if found[number]["type"] == "Signed"}
    assert sum(signed.values()) <= 15
    of = "WHERE tenant_id = $1 AND agent_id = $2"
    assert await gate.fetchval(f"SELECT sum(amount) FROM spend {of}", tenant.id, agent.id) == sum(signed.values())
    rows = f"SELECT count(*) FROM transactions {of} AND status = 'signed'"
    assert await gate.fetchval(rows, tenant.id, agent.id) == len(signed)


@pytest.mark.parametrize(
    "touched",
    [
        "UPDATE policy_rules SET config = config WHERE tenant_id = $1 AND agent_id = $2",
        "UPDATE policy_heads SET mac = mac WHERE tenant_id = $1 AND agent_id = $2",
        "UPDATE wallets SET address = address WHERE tenant_id = $1 AND agent_id = $2",
        "UPDATE sealed SET blob = blob WHERE tenant_id = $1 AND owner = $2",
    ],
)
async def test_kept_state_is_worth_nothing_once_a_row_behind_it_was_touched(
    service: Service, tenant: Tenant, owner: asyncpg.Connection, touched: str
) -> None:
    agent = tenant.agent(rule("spending-limit", maxPerDay="10"))
    agent.sign()
    before = figures(service)
    assert agent.sign().status_code == 200
    assert (growth_of(service, before, "orders_on_kept_state"), growth_of(service, before, "stale")) == (1, 0)

    await owner.execute(touched, tenant.id, agent.id)

    assert agent.sign().status_code == 200
    assert growth_of(service, before, "stale") == 1


async def test_kept_state_is_worth_nothing_in_another_minute(
    service: Service, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    agent = tenant.agent(rule("rate-limit", maxTxPerHour=2))
    assert [agent.sign().status_code for _ in range(3)] == [200, 200, 429]

    await owner.execute(_clock("clock_timestamp() + interval '61 minutes'"))

    assert [agent.sign().status_code for _ in range(3)] == [200, 200, 429]


def _clock(moment: str) -> str:
    return (
        f"CREATE OR REPLACE FUNCTION service_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$ SELECT {moment} $$"
    )


async def test_an_order_sees_what_another_signer_wrote(
    service: Service, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    """Its versions are the database's: what is kept here is compared with them at each write."""
    agent = tenant.agent(rule("spending-limit", maxPerDay="3"))
    assert [agent.sign().status_code for _ in range(2)] == [200, 200]

    async with owner.transaction():
        of = "WHERE tenant_id = $1 AND agent_id = $2"
        await owner.execute(f"UPDATE spend SET amount = amount + 1 {of}", tenant.id, agent.id)
        moved = "UPDATE agents SET ledger_version = ledger_version + 1 WHERE tenant_id = $1 AND id = $2"
        await owner.execute(moved, tenant.id, agent.id)

    assert agent.sign().status_code == 403
