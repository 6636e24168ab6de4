"""Have approvals and intents whose time is up ended.

From its last moment on an item is shown as expired and can be neither approved nor denied; this writes it down and
tells the world. Several schedulers may ask for the same item: the signer ends each once.
"""

import asyncio

from custody.approvals import store as approvals
from custody.intents import store as intents
from custody.kit.callers import Origin
from custody.kit.errors import CustodyError
from custody.kit.logs import logger
from custody.ports import Ports
from custody.protocol.signer.intents import ExpireIntent
from custody.protocol.signer.orders import Expire

log = logger(__name__)
PER_RUN = 500
AT_ONCE = 8


async def expire(ports: Ports) -> int:
    """Ask the signer for everything that is due; gives back how many items it ended."""
    due = [Expire(row["tenant_id"], str(row["id"])) for row in await approvals.due(ports.pool, PER_RUN)]
    over = [ExpireIntent(row["tenant_id"], str(row["id"])) for row in await intents.due(ports.pool, PER_RUN)]
    gate = asyncio.Semaphore(AT_ONCE)
    ended = [*(_expire(ports, item, gate) for item in due), *(_expire(ports, item, gate) for item in over)]
    return sum(await asyncio.gather(*ended))


async def _expire(ports: Ports, message: Expire | ExpireIntent, gate: asyncio.Semaphore) -> bool:
    item = message.approval if isinstance(message, Expire) else message.intent
    async with gate:
        try:
            moved = await ports.workers.tell(message, Origin(f"expire-{item}"))
        except CustodyError as problem:
            log.warning("not expired yet", extra={"item": item, "reason": problem.code})
            return False
    return moved.result != "unchanged"
