"""The version of each agent's ledger when this signer last acknowledged an order, kept beside the database. Promise P7.

A database that went back, by a failover that lost commits or a copy put in its place, knows nothing of signatures in
clients' hands, and would have their nonces signed again. Every new connection is asked, and one at each look at the
signer's health. An agent's version only rises, so a deletion or a freeze is no such thing.
"""

import os
import time
from pathlib import Path
from typing import Any, Final, NamedTuple, TextIO

import asyncpg

from custody.kit.logs import logger
from custody.kit.refs import AgentRef

log = logger(__name__)
MOST: Final = 1_000
COMPACT_AFTER: Final = 10_000
_LINE_SECONDS: Final = 1.0
_BEHIND: Final = "SELECT agents_behind($1, $2, $3, $4)"


class _Seen(NamedTuple):
    tenant: str
    agent: str
    incarnation: str
    version: int


class AcknowledgedOrders:
    """The versions of the agents that signed lately. `are_lost`: the database lacks what was acknowledged."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last: dict[AgentRef, _Seen] = {}
        self._file: TextIO | None = None
        self._appended, self._written = 0, 0.0
        self.are_lost = False

    def load(self) -> None:
        """Read what was noted, and write it back compacted."""
        if self._path.exists():
            for line in self._path.read_text().splitlines():
                parts = line.split(" ")
                if len(parts) == 5 and parts[4] == "." and parts[3].isdigit():
                    self._keep(_Seen(parts[0], parts[1], parts[2], int(parts[3])))
        self._compact()

    def remember(self, ref: AgentRef, incarnation: str, version: int) -> None:
        """Note the version that an acknowledged write left; one a second is written down."""
        self._keep(seen := _Seen(ref.tenant, ref.agent, incarnation, version))
        if self._file is None or time.monotonic() - self._written < _LINE_SECONDS:
            return
        self._written, self._appended = time.monotonic(), self._appended + 1
        try:
            self._file.write(_line(seen))
            self._file.flush()
            if self._appended > COMPACT_AFTER:
                self._compact()
        except OSError as problem:
            # What was signed is signed; it is in memory.
            log.error("an acknowledged order was not noted beside the database", extra={"reason": problem.strerror})

    async def look(self, connection: Any) -> None:
        """Look for them over a connection."""
        seen = list(self._last.values())
        if not seen or self.are_lost:
            return
        try:
            behind = await connection.fetchval(_BEHIND, *(list(column) for column in zip(*seen, strict=True)))
        except asyncpg.UndefinedFunctionError:
            return  # of an older version, as the look at the schema says
        if behind:
            self.are_lost = True
            log.error("the database went back: it lacks orders that were acknowledged", extra={"agents": behind})

    def accept(self) -> bool:
        """Go on without them, because an operator said so; whether any were lost."""
        were_lost, self.are_lost = self.are_lost, False
        self._last.clear()
        self._compact()
        return were_lost

    def close(self) -> None:
        """Write down all of it, and close the file."""
        self._compact()
        if self._file is not None:
            self._file.close()

    def _keep(self, seen: _Seen) -> None:
        ref = AgentRef(seen.tenant, seen.agent)
        self._last.pop(ref, None)
        self._last[ref] = seen
        if len(self._last) > MOST:
            del self._last[next(iter(self._last))]

    def _compact(self) -> None:
        fresh = self._path.with_suffix(".new")
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.writelines(map(_line, self._last.values()))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)
        if self._file is not None:
            self._file.close()
        self._file = self._path.open("a")
        self._appended = 0


def _line(seen: _Seen) -> str:
    return f"{seen.tenant} {seen.agent} {seen.incarnation} {seen.version} .\n"
