"""Have approvals whose time is up ended.

From its last moment on an item is shown as expired and can be neither approved nor denied; this writes it down and
tells the world. Several schedulers may ask for the same item: the signer ends each once.
"""

import asyncio
from typing import Any

from custody.approvals import store as approvals
from custody.kit.callers import Origin
from custody.kit.errors import CustodyError
from custody.kit.logs import logger
from custody.ports import Ports
from custody.protocol.signer.orders import Expire

log = logger(__name__)
PER_RUN = 500
AT_ONCE = 8


async def expire(ports: Ports) -> int:
    """Ask the signer for everything that is due; gives back how many items it ended."""
    rows = await approvals.due(ports.pool, PER_RUN)
    gate = asyncio.Semaphore(AT_ONCE)
    ended = await asyncio.gather(*(_expire(ports, row, gate) for row in rows))
    return sum(ended)


async def _expire(ports: Ports, row: Any, gate: asyncio.Semaphore) -> bool:
    approval = str(row["id"])
    async with gate:
        try:
            moved = await ports.workers.tell(Expire(row["tenant_id"], approval), Origin(f"expire-{approval}"))
        except CustodyError as problem:
            log.warning("not expired yet", extra={"approval_id": approval, "reason": problem.code})
            return False
    return moved.result == "expired"
