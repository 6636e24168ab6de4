"""What `custody doctor` asks about the sealed logs: whether one is not what the signer remembers, or lacks rows."""

import asyncpg

from custody.cli.findings import Finding
from custody.cli.settings import Settings
from custody.kit import environment, ids
from custody.kit.callers import Origin
from custody.kit.errors import CustodyError
from custody.protocol.client import SignerClient
from custody.protocol.messages import Done, Status

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
            "somebody took rows away, or out of the queue before they were sealed: find out who wrote to the database; "
            "`custody audit verify` of an export says whether sealed ones are gone (docs/audit.md)"
        )
        return Finding("audit rows", f"sealed and waiting are not as many as there are: {', '.join(uneven)}", cure)
    return Finding("audit rows", "each is sealed or waits to be")


async def sealed_logs(settings: Settings) -> Finding:
    """No audit log is shorter than it was, or another."""
    subject, socket = "sealed logs", environment.sign_socket(settings.environment)
    if not socket.exists():
        return Finding(subject, "no signer is there to say")
    signer = SignerClient(str(socket), "operator")
    try:
        outcome = (await signer.tell(Status(), Origin(ids.new_uuid()))).outcome
    except CustodyError as problem:
        return Finding(subject, f"the signer does not say: {problem.message}", "start it with `make run`")
    finally:
        await signer.close()
    stopped = outcome.data["stopped_logs"] if isinstance(outcome, Done) else []
    if stopped:
        cure = (
            "an older or changed database was put in place: put the right one back, or, if you restored it yourself, "
            "accept it as docs/recovery.md says"
        )
        return Finding(subject, f"sealed no more: {', '.join(stopped)}", cure)
    return Finding(subject, "each is the one that the signer remembers, or goes on from it")
