"""The function that carries out each command; a worker that lacks one, or has two, does not start."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import msgspec

from custody.kit.answers import Answered
from custody.protocol.command import Command, WorkerName, commands_of
from custody.worker.call import Call
from custody.worker.state import Worker

type CarryOut[W: Worker] = Callable[[W, Any, Call[Any]], Awaitable[Any]]
type Table[W: Worker] = Mapping[type[Command[Any]], CarryOut[W]]


class Handler[W: Worker](msgspec.Struct, frozen=True):
    """A command and the function that carries it out."""

    command: type[Command[Any]]
    carry_out: CarryOut[W]


def on[W: Worker, A](
    command: type[Command[A]], carry_out: Callable[[W, Any, Call[Any]], Awaitable[A | Answered[A]]]
) -> Handler[W]:
    """One line of a worker's table; the function returns what the command declares, or that as a replay."""
    return Handler(command, carry_out)


def table_of[W: Worker](handlers: Iterable[Handler[W]], *served: WorkerName) -> Table[W]:
    """The handlers by command; TypeError unless each command of the workers that are served here has exactly one."""
    table: dict[type[Command[Any]], CarryOut[W]] = {}
    for handler in handlers:
        if handler.command in table:
            raise TypeError(f"{handler.command.__name__} is carried out twice")
        table[handler.command] = handler.carry_out
    declared = {command for worker in served for command in commands_of(worker)}
    if declared != table.keys():
        raise TypeError(f"not both declared and carried out: {sorted(c.__name__ for c in declared ^ table.keys())}")
    return table
