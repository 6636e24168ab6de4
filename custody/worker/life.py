"""The life of a worker, and its end."""

import asyncio
import os
import sys
from collections.abc import Coroutine
from typing import Any, NoReturn

import uvloop

from custody.kit import garbage
from custody.kit.logs import logger
from custody.worker.key_file import WrongKeyFile

log = logger(__name__)
_BY_HAND = 130


def run(name: str, life: Coroutine[Any, Any, None], explained: tuple[type[BaseException], ...] = ()) -> None:
    """Live it to its end; whatever else ends it, in any task, ends the process, so that a supervisor starts another.

    Of `explained` exceptions the text says everything; of others the log has the trace. EX_CONFIG: no restart helps.
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
    wrong = isinstance(problem, WrongKeyFile)
    if wrong or isinstance(problem, (SystemExit, *explained)):
        sys.stderr.write(f"{problem}\n")
    elif not isinstance(problem, KeyboardInterrupt):
        log.critical("%s ended", name, exc_info=problem)
    sys.stderr.flush()
    os._exit(os.EX_CONFIG if wrong else _BY_HAND if isinstance(problem, KeyboardInterrupt) else 1)
