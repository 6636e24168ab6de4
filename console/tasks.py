"""Tasks that outlive the wait for them: each is kept in a set until it has ended, for asyncio keeps it weakly only."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from textual.dom import DOMNode
from textual.worker import Worker


def spawn[T](coroutine: Coroutine[Any, Any, T], name: str, among: set[asyncio.Task[Any]]) -> asyncio.Task[T]:
    """Start a coroutine as a task, kept in `among` until it has ended; the caller looks at its outcome."""
    task = asyncio.get_running_loop().create_task(coroutine, name=name)
    among.add(task)
    task.add_done_callback(among.discard)
    return task


def work(
    node: DOMNode,
    group: str,
    function: Callable[..., Coroutine[Any, Any, None]],
    *arguments: Any,
    exclusive: bool = True,
) -> Worker[None]:
    """Start a worker that ends with its node; it takes the place of its group's unless several may run at once.

    It takes a function and no coroutine: a worker that is cancelled before its first step would leave that one
    unawaited, and Python complains of it at some later moment.
    """
    return node.run_worker(partial(function, *arguments), group=group, exclusive=exclusive)
