"""The checks of `custody doctor` on the work behind the answer: jobs, webhooks, audit log, transactions on their way.

It looks as the owner, across tenants, and says counts and ids, never what anybody ordered.
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta

import asyncpg

from ops import doctor_audit
from ops.findings import Finding

# The slowest job runs once a minute, and success is written down every few seconds.
_LATE_MINUTES = 5
_FAILING_SHARE, _FEW_DELIVERIES = 0.1, 10
_SEALED_MINUTES = 5
_UNSENT, _UNFINISHED = timedelta(minutes=10), timedelta(hours=6)


async def jobs(connection: asyncpg.Connection) -> Finding:
    """Each job of the schedulers ended well lately."""
    rows = await connection.fetch(
        "SELECT name, COALESCE(last_success_at < service_now() - make_interval(mins => $1), true) AS late,"
        " last_failure_at > COALESCE(last_success_at, '-infinity') AS failing FROM jobs ORDER BY name",
        _LATE_MINUTES,
    )
    late = [f"{row['name']}{' (its last run failed)' if row['failing'] else ''}" for row in rows if row["late"]]
    if late:
        cure = "check that a scheduler runs on this database, and read its log (log/scheduler.log)"
        return Finding("jobs", f"no successful run for {_LATE_MINUTES} minutes: {', '.join(late)}", cure)
    if not rows:
        return Finding("jobs", "no scheduler has run on this database yet", "start one: `custody scheduler`")
    return Finding("jobs", f"{len(rows)}, each succeeded in the last {_LATE_MINUTES} minutes")


async def webhooks(connection: asyncpg.Connection) -> Finding:
    """Receivers take what is delivered, and deliveries are tried when they are due."""
    behind = await connection.fetchval(
        "SELECT count(*) FROM (SELECT FROM deliveries WHERE next_retry_at < service_now() - make_interval(mins => $1)"
        " LIMIT 100000) d",
        _LATE_MINUTES,
    )
    if behind:
        cure = "check that a scheduler runs (the job `deliver`); several share the work"
        return Finding("webhooks", f"{behind} deliveries are overdue by {_LATE_MINUTES} minutes or more", cure)
    rows = await connection.fetch(
        "SELECT tenant_id, endpoint_id, count(*) AS tried, count(*) FILTER (WHERE status = 'failed') AS failed,"
        " count(*) FILTER (WHERE error IN ('unsigned', 'fault')) AS ours"
        " FROM deliveries WHERE created_at > service_now() - interval '1 hour' AND attempts > 0"
        " GROUP BY tenant_id, endpoint_id ORDER BY ours DESC, failed DESC, endpoint_id"
    )
    tried, failed, ours = (sum(row[name] for row in rows) for name in ("tried", "failed", "ours"))
    worst = ", ".join(f"{row['endpoint_id']} of {row['tenant_id']}" for row in rows[:3] if row["failed"])
    if ours:
        cure = (
            "see the logs of scheduler and signer: an endpoint's secret fails its integrity check, or an internal error"
        )
        return Finding("webhooks", f"{ours} deliveries of the last hour failed for an internal reason: {worst}", cure)
    if failed == tried >= _FEW_DELIVERIES:
        cure = (
            "check that the scheduler reaches the Internet and resolves names; a tenant finds the deliveries of an "
            "endpoint with GET /webhooks/{id}/deliveries?hasError=true, the operator the reason in deliveries.error"
        )
        return Finding(
            "webhooks", f"none of {tried} deliveries of the last hour succeeded, most failed at {worst}", cure
        )
    # A receiver that is down is its tenant's to mend, and no tenant's receivers make this installation a broken one.
    most = f", most at {worst}" if failed > _FAILING_SHARE * tried else ""
    return Finding("webhooks", f"{tried} deliveries tried in the last hour, {failed} of them failed{most}")


async def sealing(connection: asyncpg.Connection) -> Finding:
    """Audit rows get their place in the sealed log soon."""
    waiting, old = await connection.fetchrow(
        "SELECT count(*), count(*) FILTER (WHERE a.created_at < service_now() - make_interval(mins => $1))"
        " FROM (SELECT tenant_id, seq FROM audit_unsealed LIMIT 100000) u JOIN audit a USING (tenant_id, seq)",
        _SEALED_MINUTES,
    )
    if old:
        cure = (
            "check that a scheduler runs (the job `seal`); if its log says that nothing was sealed, read the signer's:"
            " `custody audit mend` repairs a stopped log; after a restore it refuses one that is shorter than it"
            " was (docs/recovery.md)"
        )
        return Finding("audit log", f"{old} rows have waited {_SEALED_MINUTES} minutes or longer to be sealed", cure)
    return Finding("audit log", f"{waiting} rows wait to be sealed")


async def transactions(connection: asyncpg.Connection) -> Finding:
    """Check that what is to be sent was sent, and what was sent came to its end."""
    unsent, unfinished, chains = await connection.fetchrow(
        "SELECT count(*) FILTER (WHERE status = 'signed' AND broadcast AND signed_at < service_now() - $1::interval),"
        " count(*) FILTER (WHERE status = 'broadcast' AND signed_at < service_now() - $2::interval),"
        " array_agg(DISTINCT chain_id ORDER BY chain_id) FILTER (WHERE signed_at < service_now() - CASE status"
        "   WHEN 'signed' THEN $1::interval ELSE $2::interval END AND (broadcast OR status = 'broadcast'))"
        " FROM transactions WHERE status IN ('signed', 'broadcast')",
        _UNSENT,
        _UNFINISHED,
    )
    if unsent or unfinished:
        found = f"{unsent} not broadcast within ten minutes, {unfinished} not final for six hours"
        cure = (
            f"check the nodes of {', '.join(f'SERVICE_RPC_URL_{chain}' for chain in chains)}; replace a stuck one with "
            "POST /vault/{agentId}/transactions/{txId}/replace"
        )
        return Finding("transactions", found, cure)
    return Finding("transactions", "none is stuck")


ASKING: tuple[Callable[[asyncpg.Connection], Awaitable[Finding]], ...] = (
    jobs,
    webhooks,
    sealing,
    doctor_audit.whole,
    transactions,
)
