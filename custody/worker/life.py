"""How a worker lives and ends."""

import asyncio
import os
import sys
from collections.abc import Coroutine
from typing import Any, NoReturn

import uvloop

from custody.kit import garbage
from custody.kit.logs import logger

log = logger(__name__)
_BY_HAND = 130


def run(name: str, life: Coroutine[Any, Any, None], explained: tuple[type[BaseException], ...] = ()) -> None:
    """Live it to its end; whatever else ends it, in any task, ends the process, so that a supervisor starts another.

    Of `explained` exceptions the text says everything; of others the log has the trace.
    """
    garbage.look_rarely()
    runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    try:
        runner.run(life)
    except BaseException as problem:  # the edge of the process
        _end(name, problem, explained)
    runner.close()


def _end(name: str, problem: BaseException, explained: tuple[type[BaseException], ...]) -> NoReturn:
    """At once: to close a loop that still has connections can take for ever, and its socket would answer nobody."""
    code = 1
    if isinstance(problem, KeyboardInterrupt):
        code = _BY_HAND
    elif isinstance(problem, (SystemExit, *explained)):
        sys.stderr.write(f"{problem}\n")
    else:
        log.critical("%s ended", name, exc_info=problem)
    sys.stderr.flush()
    os._exit(code)
