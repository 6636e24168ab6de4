"""Tasks that outlive the wait for them: each is kept in a set until it has ended, for asyncio keeps it weakly only."""

import asyncio
from collections.abc import Coroutine
from typing import Any


def spawn[T](coroutine: Coroutine[Any, Any, T], name: str, among: set[asyncio.Task[Any]]) -> asyncio.Task[T]:
    """Start a coroutine as a task, kept in `among` until it has ended; the caller looks at its outcome."""
    task = asyncio.get_running_loop().create_task(coroutine, name=name)
    among.add(task)
    task.add_done_callback(among.discard)
    return task
