"""The question to a signer how it is, as `custody doctor` asks it."""

from custody.kit import environment, ids
from custody.kit.callers import Origin
from custody.kit.errors import CustodyError
from custody.protocol.client import SignerClient
from custody.protocol.common import Health, Status
from ops.findings import Finding
from ops.settings import Settings


async def ask(settings: Settings, subject: str) -> Health | Finding:
    """Its word on itself; a finding about the subject where there is none."""
    socket = environment.sign_socket(settings.environment)
    if not socket.exists():
        return Finding(subject, "no signer responds")
    signer = SignerClient(str(socket), "operator")
    try:
        return await signer.tell(Status(), Origin(ids.new_uuid()))
    except CustodyError as problem:
        return Finding(
            subject, f"the signer could not report: {problem.message}", f"start it with {settings.how_to_start}"
        )
    finally:
        await signer.close()
