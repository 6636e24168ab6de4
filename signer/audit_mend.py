"""`MendAuditLogs`: the operator has the queue of a log put in order, so that a stopped log is sealed again.

What waits is afterwards exactly what has no place in the log. No row and no leaf is changed, and nothing is signed for
a log that is not the one this signer sealed: for that one there is `AcceptRestore`. The log itself says that it was
mended, and what was done.
"""

from custody.protocol.signer.operation import LogsMended, MendAuditLogs, MendedLog, RefusedLog
from custody.worker.acts import operating, tell
from custody.worker.call import Call
from custody.worker.proven import ProvenPlatform
from signer.audit_journal import Stop
from signer.audit_log import LOCK, NAME, Contradicted, known_head, sealed_or_stopped, stop
from signer.context import Signer

# Of one message, where it names none.
MAX_LOGS = 100
_MEND = "SELECT sealed_already, without_row, queued FROM audit_mend($1)"
_THERE = "SELECT EXISTS (SELECT FROM audit WHERE tenant_id = $1)"


class NoSuchLog(Exception):
    """Nothing of this name is a log of this service."""


async def mend(signer: Signer, message: MendAuditLogs, call: Call[ProvenPlatform]) -> LogsMended:
    """Put the queues of the logs that are named, or of those that are stopped, in order; what became of each."""
    call.caller.need_unscoped()
    audit = signer.audit_log
    mended: list[MendedLog] = []
    refused: list[RefusedLog] = []
    async with audit.turn:
        try:
            for tenant in sorted(message.logs or audit.stopped)[:MAX_LOGS]:
                try:
                    done = await _mend(signer, call, tenant)
                except Contradicted as problem:
                    stop(signer, tenant, Stop(str(problem), other=True))
                    refused.append(RefusedLog(tenant, str(problem)))
                    continue
                except NoSuchLog as problem:
                    refused.append(RefusedLog(tenant, str(problem)))
                    continue
                if tenant in audit.stopped:
                    refused.append(RefusedLog(tenant, audit.stopped[tenant].reason))
                else:
                    mended.append(done)
        finally:
            audit.publish()
    return LogsMended(mended, refused)


async def _mend(signer: Signer, call: Call[ProvenPlatform], tenant: str) -> MendedLog:
    if NAME.fullmatch(tenant) is None:
        raise NoSuchLog("no tenant has such a name")
    was = signer.audit_log.stopped.get(tenant)
    async with operating(signer, call, tenant) as connection:
        await connection.execute(LOCK, tenant)
        if not await connection.fetchval(_THERE, tenant):
            raise NoSuchLog("there is no such log")
        head = await known_head(signer, connection, tenant)
        row = await connection.fetchrow(_MEND, tenant)
        await tell(
            connection,
            call,
            "audit.mended",
            "audit_log",
            tenant,
            reason=was.reason if was else None,
            size=head.size,
            sealedAlready=row["sealed_already"],
            withoutRow=row["without_row"],
            queued=row["queued"],
        )
    async with signer.pool.acquire() as connection:
        sealed = await sealed_or_stopped(signer, connection, tenant)
    return MendedLog(tenant, row["sealed_already"], row["without_row"], row["queued"], sealed)
