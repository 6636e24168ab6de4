"""Waiting for something so long, and no longer, even if it cannot stop at once."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from custody.kit.tasks import leave_to_caller, spawn


async def in_time[T](coroutine: Coroutine[Any, Any, T], seconds: float) -> T:
    """Await a coroutine so long; then TimeoutError, and it is called off.

    Our statements end by themselves (`custody/kit/db.py`), and `asyncio.timeout` waits for that. Who asked need not.
    """
    task = spawn(coroutine, "something with a deadline", on_failure=leave_to_caller)
    await asyncio.wait({task}, timeout=seconds)
    if task.done():
        return task.result()
    task.cancel()
    raise TimeoutError
