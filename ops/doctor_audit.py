"""The checks of `custody doctor` on the sealed logs: whether one is not what the signer remembers, or lacks rows."""

import asyncpg

from ops import signer_health
from ops.findings import Finding
from ops.settings import Settings

# One look: whatever is written meanwhile, each row that it sees is in the log or waits for its place there.
_UNEVEN = """
SELECT tenant_id FROM (SELECT tenant_id, count(*) AS written FROM audit GROUP BY tenant_id) a
  FULL JOIN (SELECT tenant_id, max(size) AS sealed FROM audit_checkpoints GROUP BY tenant_id) c USING (tenant_id)
  FULL JOIN (SELECT tenant_id, count(*) AS waiting FROM audit_unsealed GROUP BY tenant_id) u USING (tenant_id)
 WHERE COALESCE(written, 0) <> COALESCE(sealed, 0) + COALESCE(waiting, 0)
 ORDER BY tenant_id LIMIT 20
"""


async def whole(connection: asyncpg.Connection) -> Finding:
    """Every audit row is sealed or waits to be; no row that was is gone."""
    uneven = [row["tenant_id"] for row in await connection.fetch(_UNEVEN)]
    if uneven:
        cure = (
            "rows, or entries of the sealing queue, were removed: find out who wrote to the database; `custody audit "
            "verify` of an export shows whether sealed rows are missing (docs/audit.md). "
            f"`custody audit mend {uneven[0]}` queues the remaining rows"
        )
        return Finding("audit rows", f"sealed and queued rows do not add up: {', '.join(uneven)}", cure)
    return Finding("audit rows", "every row is sealed or queued for sealing")


async def sealed_logs(settings: Settings) -> Finding:
    """No audit log is shorter than it was, or another."""
    subject = "sealed logs"
    health = await signer_health.ask(settings, subject)
    if isinstance(health, Finding):
        return health
    if stopped := health.stopped_logs:
        cure = (
            "run `custody audit mend`, which repairs a log or says why it cannot; if an older or changed database is "
            "in place, restore the right one, or accept it if you restored it on purpose (docs/recovery.md)"
        )
        return Finding(subject, f"not sealed any more: {', '.join(stopped)}", cure)
    return Finding(subject, "each equals or extends the one that the signer remembers")
