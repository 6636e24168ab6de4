"""Workers of the screens: tasks that end with the part of the screen that began them."""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from textual.dom import DOMNode
from textual.worker import Worker


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
