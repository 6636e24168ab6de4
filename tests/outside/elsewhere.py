"""A Python program for which names of the internet lie on this machine, and all others nowhere.

`python -P -m tests.outside.elsewhere '{"names": {"kms.example.com": 8443}, "set": {"module.NAME": 1}}' MODULE WORDS...`
runs a module as `python -m` does, with these ports for these names, and with other values for constants that only bound
how long something takes.
"""

import runpy
import socket
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import msgspec

_HERE = ("127.0.0.1", "::1", "localhost")


class Surroundings(msgspec.Struct):
    """Places of names, and what is shorter than usual."""

    names: dict[str, int] = {}
    set: dict[str, float] = {}


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


if __name__ == "__main__":
    lead(msgspec.json.decode(sys.argv[1], type=Surroundings))
    module = sys.argv[2]
    sys.argv = [module, *sys.argv[3:]]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
