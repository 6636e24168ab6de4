"""Processor time that processes have used so far, from `/proc`."""

import os
from collections.abc import Iterator
from pathlib import Path

_MICROSECONDS = 1_000_000 / os.sysconf("SC_CLK_TCK")


def usage(pid: int) -> float:
    """Microseconds of one process with all its threads."""
    fields = _fields(pid)
    return (int(fields[11]) + int(fields[12])) * _MICROSECONDS


def used_by_family(pid: int) -> float:
    """Microseconds of a server and its children: the living, and those that ended and that it has waited for.

    Postgres has a child for each connection, so this is what a load cost it, also of connections that are closed.
    """
    while True:
        ended = _children_usage(pid)
        try:
            found = usage(pid) + ended + sum(used_by_family(child) for child in _children(pid))
        except (FileNotFoundError, ProcessLookupError):
            # A child was gone before it was looked at; of a server that is gone itself the next look says so.
            continue
        # A child that ended while we looked was counted twice or not at all.
        if _children_usage(pid) == ended:
            return found


def _children_usage(pid: int) -> float:
    fields = _fields(pid)
    return (int(fields[13]) + int(fields[14])) * _MICROSECONDS


def _children(pid: int) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                if int(_fields(int(entry.name))[1]) == pid:
                    yield int(entry.name)
            except (FileNotFoundError, ProcessLookupError):
                continue


def _fields(pid: int) -> list[str]:
    """Behind the name, which may hold anything; the first is the state."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
