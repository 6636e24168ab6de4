"""Have the signer seal what waits: every second, until nothing waits or the run has done its share. docs/audit.md."""

from custody.kit.callers import Origin
from custody.kit.ids import new_uuid
from custody.kit.logs import logger
from custody.ports import Ports
from custody.protocol.signer.operation import SealCheckpoint

log = logger(__name__)
# Each message seals some thousand rows, so this is more than a second can bring; a run is bounded all the same.
MESSAGES_PER_RUN = 20


async def seal(ports: Ports) -> int:
    """Seal what waits; gives back how many rows got their place."""
    sealed, origin = 0, Origin(f"seal-{new_uuid()}")
    for _ in range(MESSAGES_PER_RUN):
        done = await ports.workers.tell(SealCheckpoint(), origin)
        sealed += done.sealed
        if not done.sealed or not done.waiting:
            break
    return sealed
