"""The libraries of the second readers, imported a while after the start: the first order of theirs waits for none."""

import asyncio
from typing import Final

from signer.orders.kind import OrderKinds

# By then all processes are up, which need the cores more.
AFTER_SECONDS: Final = 10.0


async def load(kinds: OrderKinds, after: float = AFTER_SECONDS) -> None:
    """Import each in a thread, which leaves the loop its turns; an order that comes earlier imports its own."""
    await asyncio.sleep(after)
    for kind in kinds.by_order.values():
        if kind.second_reader is not None:
            await kind.second_reader.load()
