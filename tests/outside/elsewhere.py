"""Openers for which names of the internet lie on this machine, and all others nowhere.

`python -P -m tests.outside.elsewhere SURROUNDINGS openers KIND WORDS...` runs a module as `python -m` does. Without one
it answers many openings, a line each, by a program that was started once: what it imports costs more than what it does.
"""

import io
import resource
import runpy
import socket
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import msgspec

_HERE = ("127.0.0.1", "::1", "localhost")
# Far above what an opener needs, and far below what an endless answer fills.
_MEMORY = 2**30


class Surroundings(msgspec.Struct):
    """Ports for names, and other values for constants `module.NAME` that bound how long something takes."""

    names: dict[str, int] = {}
    set: dict[str, float] = {}


class Asked(msgspec.Struct):
    """Words and standard input of an opener."""

    words: list[str]
    given: bytes


class Said(msgspec.Struct, frozen=True):
    """Outcome of an opener: its status, its bytes, and its sentence."""

    status: int
    output: bytes
    sentence: str


def lead(surroundings: Surroundings) -> None:
    """From now on resolve names by this table alone."""
    resolve: Callable[..., Any] = socket.getaddrinfo

    def find(host: Any, port: Any, *more: Any, **named: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name in surroundings.names:
            return resolve("127.0.0.1", surroundings.names[name], *more, **named)
        if name in _HERE:
            return resolve(host, port, *more, **named)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    socket.getaddrinfo = find
    for place, value in surroundings.set.items():
        module, _, name = place.rpartition(".")
        setattr(import_module(module), name, value)


def answer_all() -> None:
    """Run the opener for each line of standard input."""
    main, given, taken = import_module("openers.__main__").main, sys.stdin.buffer, sys.stdout.buffer
    # The time is of a program, and this one is many.
    import_module("openers.deadline").SECONDS = 3600
    for line in given:
        asked = msgspec.json.decode(line, type=Asked)
        sys.stdin = io.TextIOWrapper(io.BytesIO(asked.given))
        sys.stdout, sys.stderr = (io.TextIOWrapper(io.BytesIO(), write_through=True) for _ in range(2))
        status = main(asked.words)
        output, sentence = (one.buffer.getvalue() for one in (sys.stdout, sys.stderr))
        taken.write(msgspec.json.encode(Said(status, output, sentence.decode())) + b"\n")
        taken.flush()


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    lead(msgspec.json.decode(sys.argv[1], type=Surroundings))
    if sys.argv[2:]:
        module = sys.argv[2]
        sys.argv = [module, *sys.argv[3:]]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    else:
        answer_all()
