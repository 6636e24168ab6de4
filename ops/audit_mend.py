"""`custody audit mend`: an audit log that is sealed no more is put in order, and says so itself. docs/audit.md."""

import sys
from collections.abc import Sequence

from custody.kit import environment
from custody.kit.errors import CustodyError
from custody.protocol.client import InternalFault, SignerClient
from custody.protocol.signer.operation import LogsMended, MendAuditLogs
from ops.platform_keys import operator
from ops.settings import Settings


async def run(settings: Settings, logs: Sequence[str]) -> int:
    """Do it and say what was done; 1 where a log is sealed no more all the same."""
    signer = SignerClient(str(environment.sign_socket(settings.environment)), "operator")
    try:
        data = (await signer.ask(MendAuditLogs(list(logs) or None), operator(settings))).answer
    except CustodyError as problem:
        print(f"custody: {problem.message}", file=sys.stderr)
        return 1
    except InternalFault as problem:
        print(f"custody: {problem} Its log says more.", file=sys.stderr)
        return 1
    finally:
        await signer.close()
    print("\n".join(_report(data)))
    return 1 if data.refused else 0


def _report(data: LogsMended) -> list[str]:
    lines = [
        f"MENDED  {log.log}: {log.queued} rows put into the queue, "
        f"{log.sealed_already + log.without_row} taken out of it, {log.sealed} sealed"
        for log in data.mended
    ]
    lines += [
        f"NOT     {log.log}: {log.reason}. If you restored an older database on purpose, see docs/recovery.md."
        for log in data.refused
    ]
    return lines or ["No audit log has stopped."]
