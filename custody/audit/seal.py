"""Have the signer seal what waits: every second, until nothing waits or the run has done its share. docs/audit.md."""

from custody.kit.callers import Origin
from custody.kit.ids import new_uuid
from custody.kit.logs import logger
from custody.ports import Ports
from custody.protocol.messages import Done, SealCheckpoint

log = logger(__name__)
# Each message seals some thousand rows, so this is more than a second can bring; a run is bounded all the same.
MESSAGES_PER_RUN = 20


async def seal(ports: Ports) -> int:
    """Seal what waits; gives back how many rows got their place."""
    sealed, origin = 0, Origin(f"seal-{new_uuid()}")
    for _ in range(MESSAGES_PER_RUN):
        outcome = (await ports.signer.tell(SealCheckpoint(), origin)).outcome
        if not isinstance(outcome, Done):
            log.warning("nothing was sealed", extra={"reason": getattr(outcome, "code", "")})
            break
        sealed += outcome.data["sealed"]
        if not outcome.data["sealed"] or not outcome.data["waiting"]:
            break
    return sealed
