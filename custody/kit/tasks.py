"""Background tasks: named, referenced until they end, and never failing in silence.

asyncio itself holds a task by a weak reference only, so a task that nobody keeps can disappear while it runs, and the
exception of a task that nobody awaits is reported when it is collected, or never. Where the caller stays until all of
its tasks have ended, `asyncio.TaskGroup` is the better choice.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from custody.kit.errors import CustodyError
from custody.kit.logs import logger

log = logger(__name__)
_running: set[asyncio.Task[Any]] = set()


def log_failure(name: str, problem: BaseException) -> None:
    """Log the exception that ended a task."""
    log.error("a task failed", exc_info=problem, extra={"task": name})


def leave_to_caller(_name: str, _problem: BaseException) -> None:
    """Leave the exception to the caller, who awaits the task."""


def spawn[T](
    coroutine: Coroutine[Any, Any, T],
    name: str,
    *,
    among: set[asyncio.Task[T]] | None = None,
    on_failure: Callable[[str, BaseException], object] = log_failure,
    eager: bool = False,
) -> asyncio.Task[T]:
    """Start a coroutine as a task, kept in `among` until it has ended; its failure goes to `on_failure`.

    `eager` runs it up to its first wait before this returns; then a task that never waited has ended already.
    """
    task = asyncio.Task(coroutine, name=name, loop=asyncio.get_running_loop(), eager_start=eager)
    holder: set[Any] = _running if among is None else among

    def on_end(task: asyncio.Task[T]) -> None:
        holder.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            on_failure(name, problem)

    if task.done():
        on_end(task)
    else:
        holder.add(task)
        task.add_done_callback(on_end)
    return task


async def run_to_completion[T](coroutine: Coroutine[Any, Any, T], name: str) -> T:
    """Await a coroutine that goes on to its end even if the caller is cancelled meanwhile."""
    task = spawn(coroutine, name, on_failure=leave_to_caller)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.add_done_callback(_log_unforeseen)
        raise


def _log_unforeseen(task: asyncio.Task[Any]) -> None:
    """Log a fault that no caller sees any more; a refused request is no fault."""
    if not task.cancelled() and (problem := task.exception()) and not isinstance(problem, CustodyError):
        log_failure(task.get_name(), problem)
