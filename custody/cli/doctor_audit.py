"""What `custody doctor` asks the signer about the sealed logs: whether one is not the log that it remembers."""

from custody.cli.findings import Finding
from custody.cli.settings import Settings
from custody.kit import environment, ids
from custody.kit.callers import Origin
from custody.kit.errors import CustodyError
from custody.protocol.client import SignerClient
from custody.protocol.messages import Done, Status


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
