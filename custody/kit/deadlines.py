"""Waiting for something so long, and no longer, even if it cannot stop at once."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

from custody.kit.tasks import leave_to_caller, spawn

# A loop that was busy for longer hears of the answer and of the deadline at once, and an answer takes some turns of it
# to go through the pool to who asked. Without them a full proxy took its database for away.
_LAST_TURNS: Final = 20


async def in_time[T](coroutine: Coroutine[Any, Any, T], seconds: float) -> T:
    """Await a coroutine so long; then TimeoutError, and it is called off.

    Our statements end by themselves (`custody/kit/db.py`), and `asyncio.timeout` waits for that. Who asked need not.
    """
    task = spawn(coroutine, "something with a deadline", on_failure=leave_to_caller)
    if await is_done_in_time(task, seconds):
        return task.result()
    task.cancel()
    raise TimeoutError


async def is_done_in_time(task: asyncio.Task[Any], seconds: float) -> bool:
    """Wait for a task so long; tell whether it has ended."""
    await asyncio.wait({task}, timeout=seconds)
    for _ in range(_LAST_TURNS):
        if task.done():
            break
        await asyncio.sleep(0)
    return task.done()
