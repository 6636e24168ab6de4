"""Look-ups of an agent's order by its id read none of its history, whether or not the planner has statistics."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import asyncpg
import pytest

from custody.kit.db import close_pool, open_pool
from custody.kit.refs import AgentRef
from custody.protocol.signer.refusals import TransactionAbsent
from custody.transactions import store
from ops.postgres import DATABASE
from signer import ledger
from signer.ledger import Question
from tests.fixtures.postgres import Database, copy_database, in_database

NAME = "custody_look_ups"
BUSY = AgentRef("tenant-7", "agent-707")
ORDERS = 4_000
# More than the five times after which a planner may keep one plan for all.
TIMES = 8

_TENANTS = "INSERT INTO tenants (id, name) SELECT 'tenant-' || n, 'T' FROM generate_series(1, 100) n"
_AGENTS = """
INSERT INTO agents (tenant_id, id, name, incarnation)
SELECT 'tenant-' || t, 'agent-' || (t * 100 + a), 'A', gen_random_uuid()
  FROM generate_series(1, 100) t, generate_series(1, 20) a
"""
_HEADS = (
    "INSERT INTO policy_heads (tenant_id, agent_id, version, count, mac) SELECT tenant_id, id, 1, 0, '' FROM agents"
)
_ORDERS = f"""
INSERT INTO transactions (tenant_id, id, agent_id, incarnation, kind, family, status, to_address, broadcast, order_text,
                          digest, effects, policy_results, policy_version, answer, signature, created_at, value)
SELECT tenant_id, gen_random_uuid(), id, incarnation, 'evm', 'evm', 'signed', '0xAb' || n, false, '{{}}', '', '[]',
       '[]', 1, 'answer', 's', service_now() - make_interval(secs => n), 1
  FROM agents, generate_series(1, CASE WHEN (tenant_id, id) = ('tenant-7', 'agent-707') THEN {ORDERS} ELSE 1 END) n
"""
# What this transaction read of a table: rows of whole walks, and rows that index entries led to.
_READ = """
SELECT COALESCE(sum(seq_tup_read + COALESCE(idx_tup_fetch, 0)), 0)::bigint
  FROM pg_stat_xact_user_tables WHERE relname = $1
"""


@pytest.fixture(scope="module", params=["fresh", "analyzed"])
def busy(request: pytest.FixtureRequest, database: Database) -> Iterator[Database]:
    """Many tenants, one of whose agents has asked for much; a planner that knows nothing of it, or all."""
    name = f"{NAME}_{uuid.uuid4().hex[:8]}"
    urls = {who: in_database(url, name) for who, url in database.urls.items()}
    asyncio.run(make_database(database, name, analyzed=request.param == "analyzed"))
    yield Database(in_database(database.owner_url, name), urls)
    asyncio.run(drop_database(database, name))


async def make_database(database: Database, name: str, *more: str, analyzed: bool) -> None:
    """Make the database, with more rows by these statements."""
    await copy_database(in_database(database.owner_url, DATABASE), name)
    owner = await asyncpg.connect(in_database(database.owner_url, name))
    for table in ("transactions", "approvals", "deliveries"):
        await owner.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = false)")
    for statement in (_TENANTS, _AGENTS, _HEADS, _ORDERS, *more):
        await owner.execute(statement)
    if analyzed:
        await owner.execute("ANALYZE")
    await owner.close()


async def drop_database(database: Database, name: str) -> None:
    """Drop it, also while clients are connected."""
    owner = await asyncpg.connect(in_database(database.owner_url, "postgres"))
    await owner.execute(f"DROP DATABASE {name} WITH (FORCE)")
    await owner.close()


@pytest.fixture
async def signer(busy: Database) -> AsyncIterator[asyncpg.Connection]:
    """The signer's own connection."""
    connection = await asyncpg.connect(busy.urls["signer"])
    yield connection
    await connection.close()


@pytest.fixture
async def some(busy: Database) -> AsyncIterator[str]:
    """The id of the busy agent's oldest order: a walk from the newest on passes all the others."""
    owner = await asyncpg.connect(busy.owner_url)
    yield str(await owner.fetchval("SELECT id FROM transactions WHERE agent_id = $1 ORDER BY created_at", BUSY.agent))
    await owner.close()


async def rows_read(
    connection: asyncpg.Connection, act: Callable[[], Awaitable[object]], table: str = "transactions"
) -> int:
    """Count the rows that are looked at, when it was done so often that its plan is settled."""
    for _ in range(TIMES):
        async with connection.transaction():
            await act()
    async with connection.transaction():
        before = await connection.fetchval(_READ, table)
        await act()
        after = await connection.fetchval(_READ, table)
    assert isinstance(before, int)
    assert isinstance(after, int)
    return after - before


async def test_judging_an_order_does_not_read_its_agents_history(signer: asyncpg.Connection) -> None:
    question = Question(ref=BUSY, family="evm", principal="agent:agent-707", key=None, chain_id=31337)

    async def act() -> None:
        assert await ledger.read(signer, question) is not None

    assert await rows_read(signer, act) == 0


async def test_an_order_that_was_written_before_is_found_by_its_key(signer: asyncpg.Connection, some: str) -> None:
    async def act(ref: AgentRef = BUSY, tx_id: str = some) -> bytes | None:
        await signer.execute("SELECT set_config('custody.tenant', $1, true)", ref.tenant)
        return await ledger.find_answer(signer, ref, tx_id)

    assert await rows_read(signer, act) == 1
    async with signer.transaction():
        assert await act() == b"answer"
        assert await act(AgentRef("tenant-7", "agent-708")) is None
        assert await act(AgentRef("tenant-8", "agent-707")) is None


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM replaced_read('tenant-7', 'agent-707', $1, gen_random_uuid())",
        "SELECT * FROM replaced_read('tenant-7', 'agent-707', gen_random_uuid(), $1)",
        "SELECT * FROM receipt_read('tenant-7', 'agent-707', $1)",
    ],
)
async def test_a_replacement_and_a_receipt_are_read_by_key(
    signer: asyncpg.Connection, some: str, statement: str
) -> None:
    assert await rows_read(signer, lambda: signer.fetchrow(statement, some)) == 1


async def test_one_transaction_is_shown_without_the_rest(busy: Database, some: str) -> None:
    connection = await asyncpg.connect(busy.urls["api"])

    async def act() -> None:
        await connection.execute("SELECT set_config('custody.tenant', 'tenant-7', true)")
        assert await connection.fetchrow(store.ONE, "tenant-7", some)

    assert await rows_read(connection, act) == 1
    await connection.close()


async def test_one_transaction_is_shown_to_its_own_agent_alone(busy: Database, some: str) -> None:
    pool = await open_pool(busy.urls["api"], size=1)

    assert (await store.get(pool, BUSY, some)).id == some
    for stranger in (AgentRef("tenant-7", "agent-708"), AgentRef("tenant-8", "agent-707")):
        with pytest.raises(TransactionAbsent):
            await store.get(pool, stranger, some)
    await close_pool(pool)


async def test_a_wallet_action_is_found_by_its_reference(busy: Database, signer: asyncpg.Connection, some: str) -> None:
    owner = await asyncpg.connect(busy.owner_url)
    await owner.execute(
        'UPDATE transactions SET reference_id = id::text, wallet_action = \'{"type":"transfer"}\' WHERE agent_id = $1',
        BUSY.agent,
    )
    await owner.close()
    question = Question(
        ref=BUSY, family="evm", principal="agent:agent-707", key=None, chain_id=31337, action=("transfer", some)
    )

    async def act() -> None:
        facts = await ledger.read(signer, question)
        assert facts is not None
        assert facts.action is not None

    assert await rows_read(signer, act) == 1
