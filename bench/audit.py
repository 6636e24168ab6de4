"""`python -m bench.audit`: what sealing and searching the audit trail cost.

The queue's trigger and the indexes are taken away and put back in turns, so that both sides meet the same machine.
"""

import asyncio
import statistics
import time
from collections.abc import Callable
from datetime import timedelta

import asyncpg

from api.areas.audit import search
from api.areas.audit.types import AuditQuery
from bench.__main__ import say
from bench.deployment import Deployment
from custody.kit import clock, db
from custody.kit.callers import Origin
from custody.kit.tenant_semaphore import TenantSemaphore
from custody.protocol.client import SignerClient
from custody.protocol.signer.operation import SealCheckpoint

TURNS, APPENDED = 8, 5_000
SEALED = 20_000
LARGE, SMALL = 1_000_000, 1_000
_INDEXES = {
    "kind": "action, actor_type, resource_type",
    "actor": "actor_id",
    "resource": "resource_id",
    "request": "request_id",
}
# As the signer writes one with each signature, ids and all.
_APPENDS = f"""
SELECT audit_append('agent', 'actor-' || g % 97, 'bench.noted', 'transaction', gen_random_uuid()::text, '{{"kind":"evm"}}',
                    ARRAY[gen_random_uuid()::text, '127.0.0.1', 'bench']) FROM generate_series(1, {APPENDED}) g
"""
_FILL = """
INSERT INTO audit (tenant_id, written_by, actor_type, actor_id, action, resource_type, resource_id, metadata, request_id, created_at)
SELECT $1, 'custody_signer', CASE WHEN g % 50 = 0 THEN 'user' ELSE 'agent' END, 'actor-' || g % 97,
       (ARRAY['tx.signed', 'tx.broadcast', 'tx.refused', 'proxy.request'])[1 + g % 4], CASE WHEN g % 50 = 0 THEN 'tenant' ELSE 'transaction' END,
       md5(g::text), '{"agentId":"actor-' || g % 97 || '","kind":"evm","number":' || g || '}', md5('r' || g),
       service_now() - ($2 - g) * interval '1 second'
  FROM generate_series(1, $2::integer) g
"""
# As if it had been sealed, which takes minutes and is measured elsewhere.
_LOGGED = """
INSERT INTO audit_leaves (tenant_id, log_index, seq, hash)
SELECT tenant_id, row_number() OVER (ORDER BY seq) - 1, seq, sha256(seq::text::bytea) FROM audit WHERE tenant_id = $1
"""
_SPANNED = """
INSERT INTO audit_spans (tenant_id, position, first_seq, last_seq, oldest, newest)
SELECT l.tenant_id, l.log_index / 512, min(l.seq), max(l.seq), min(a.created_at), max(a.created_at)
  FROM audit_leaves l JOIN audit a USING (tenant_id, seq) WHERE l.tenant_id = $1 GROUP BY 1, 2 HAVING count(*) = 512
"""


def main() -> None:
    """Measure everything, one line each."""
    with Deployment() as deployment:
        asyncio.run(_writing(deployment))
        asyncio.run(_sealing(deployment))
        asyncio.run(_searching(deployment))


async def _writing(deployment: Deployment) -> None:
    connection = await asyncpg.connect(deployment.owner_url)
    await connection.execute("SELECT set_config('custody.tenant', 'bench', false)")
    await _beside(connection, "the queue's trigger", *_trigger())
    await _beside(connection, "the four indexes", *_indexes())
    await connection.close()


def _trigger() -> tuple[str, str]:
    return "ALTER TABLE audit DISABLE TRIGGER audit_queue", "ALTER TABLE audit ENABLE TRIGGER audit_queue"


def _indexes() -> tuple[str, str]:
    made = (f"CREATE INDEX audit_{name} ON audit (tenant_id, {columns}, seq)" for name, columns in _INDEXES.items())
    return "; ".join(f"DROP INDEX audit_{name}" for name in _INDEXES), "; ".join(made)


async def _beside(connection: asyncpg.Connection, what: str, away: str, back: str) -> None:
    """Measure the cost of one audit row to the act that writes it, in the database, with something and without."""
    costs: dict[bool, list[float]] = {True: [], False: []}
    for turn in range(TURNS):
        # Each is first as often as it is second.
        for there in (True, False) if turn % 2 else (False, True):
            if not there:
                await connection.execute(away)
            began = time.perf_counter()
            await connection.execute(_APPENDS)
            costs[there].append((time.perf_counter() - began) / APPENDED * 1e6)
            if not there:
                await connection.execute(back)
    good, bare = (statistics.median(costs[there]) for there in (True, False))
    say(f"an audit row with {what}: {good:.0f} us, without {bare:.0f} us (median of {TURNS} pairs)")


async def _sealing(deployment: Deployment) -> None:
    signer = SignerClient(str(deployment.home.file("run", "sign.sock")), "scheduler")
    while await _seal(signer):
        pass
    connection = await asyncpg.connect(deployment.owner_url)
    for tenants in (1, 200):
        for number in range(tenants):
            await connection.execute(_FILL, f"sealed-{tenants}-{number}", SEALED // tenants)
        began, sealed = time.perf_counter(), 0
        while found := await _seal(signer):
            sealed += found
        seconds = time.perf_counter() - began
        say(f"seal {sealed} rows of {tenants:3} logs: {sealed / seconds:.0f} rows/s")
    await connection.close()
    await signer.close()


async def _seal(signer: SignerClient) -> int:
    return (await signer.tell(SealCheckpoint(), Origin("bench"))).sealed


async def _searching(deployment: Deployment) -> None:
    connection = await asyncpg.connect(deployment.owner_url)
    await connection.execute("ALTER TABLE audit DISABLE TRIGGER audit_queue")
    for tenant, rows in (("small", SMALL), ("large", LARGE)):
        for statement, values in ((_FILL, (tenant, rows)), (_LOGGED, (tenant,)), (_SPANNED, (tenant,))):
            await connection.execute(statement, *values, timeout=600)
    for table in ("audit", "audit_leaves", "audit_spans"):
        await connection.execute(f"VACUUM ANALYZE {table}")
    await connection.close()
    pool = await db.open_pool(deployment.home.file("db", "api.url").read_text().strip(), size=1)
    queries: dict[str, Callable[[int], AuditQuery]] = {
        "no filter": lambda rows: AuditQuery(),
        "action": lambda rows: AuditQuery(action="tx.signed"),
        "actionPrefix": lambda rows: AuditQuery(action_prefix="tx."),
        "actionPrefix, none": lambda rows: AuditQuery(action_prefix="zz."),
        "actorType": lambda rows: AuditQuery(actor_type="user"),
        "actorId": lambda rows: AuditQuery(actor_id="actor-7"),
        "resourceType": lambda rows: AuditQuery(resource_type="tenant"),
        "resourceType, none": lambda rows: AuditQuery(resource_type="absent"),
        "actorType, resourceType": lambda rows: AuditQuery(actor_type="user", resource_type="tenant"),
        "resourceId, none": lambda rows: AuditQuery(resource_id="absent"),
        "requestId, none": lambda rows: AuditQuery(request_id="absent"),
        "dateFrom, the last 100": lambda rows: AuditQuery(date_from=_ago(100)),
        "dateTo, all but 100": lambda rows: AuditQuery(date_to=_ago(100)),
        "dateTo, the older half": lambda rows: AuditQuery(date_to=_ago(rows // 2)),
        "action, dateTo half": lambda rows: AuditQuery(action="tx.signed", date_to=_ago(rows // 2)),
        "metadata, common": lambda rows: AuditQuery(metadata={"kind": "evm"}),
        "metadata, 1 in 97": lambda rows: AuditQuery(metadata={"agentId": "actor-7"}),
        "page 100": lambda rows: AuditQuery(page=min(100, rows // 50)),
    }
    for name, query in queries.items():
        small, large = [await _time(pool, tenant, query(rows)) for tenant, rows in (("small", SMALL), ("large", LARGE))]
        say(
            f"search, {name:24} {SMALL} rows {small:6.2f} ms   {LARGE} rows {large:6.2f} ms   ratio {large / small:.1f}"
        )
    await pool.close()


def _ago(seconds: int) -> str:
    return clock.iso(clock.now() - timedelta(seconds=seconds))


async def _time(pool: db.Pool, tenant: str, query: AuditQuery) -> float:
    times = []
    for _ in range(15):
        began = time.perf_counter()
        await search.page(pool, TenantSemaphore(), tenant, query)
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


if __name__ == "__main__":
    main()
