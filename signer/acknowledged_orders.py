"""The newest orders that this signer acknowledged, kept beside the database: does it still have them? Promise P7.

A database that went back, by a failover that lost commits or a copy that was put in its place, knows nothing of
signatures that are in clients' hands, and would have their nonces signed again. Each new connection is asked. Ids alone
are kept; what is lost with the host's memory is what was signed in the last second.
"""

import os
import time
from pathlib import Path
from typing import Any, Final, NamedTuple, TextIO

from custody.kit.logs import logger
from custody.kit.refs import AgentRef

log = logger(__name__)
MOST: Final = 1_000
COMPACT_AFTER: Final = 10_000
_LINE_SECONDS: Final = 1.0
_MISSING: Final = "SELECT orders_missing($1, $2, $3, $4)"


class _Order(NamedTuple):
    tenant: str
    agent: str
    incarnation: str
    id: str


class AcknowledgedOrders:
    """The last order of each of the agents that signed lately. `are_lost`: the database lacks some."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last: dict[AgentRef, _Order] = {}
        self._file: TextIO | None = None
        self._appended = 0
        self._written = 0.0
        self.are_lost = False

    def load(self) -> None:
        """Read what was noted, and write it back compacted."""
        if self._path.exists():
            for line in self._path.read_text().splitlines():
                parts = line.split(" ")
                if len(parts) == 5 and parts[4] == ".":
                    self._keep(_Order(*parts[:4]))
        self._compact()

    def remember(self, ref: AgentRef, incarnation: str, tx_id: str) -> None:
        """Note an order whose write was acknowledged; one a second is written down."""
        order = _Order(ref.tenant, ref.agent, incarnation, tx_id)
        self._keep(order)
        if self._file is None or time.monotonic() - self._written < _LINE_SECONDS:
            return
        self._file.write(" ".join(order) + " .\n")
        self._file.flush()
        self._written, self._appended = time.monotonic(), self._appended + 1
        if self._appended > COMPACT_AFTER:
            self._compact()

    async def look(self, connection: Any) -> None:
        """Look for them over a new connection."""
        orders = list(self._last.values())
        if not orders or self.are_lost:
            return
        missing = await connection.fetchval(_MISSING, *(list(column) for column in zip(*orders, strict=True)))
        if missing:
            self.are_lost = True
            log.error("the database went back: it lacks orders that were acknowledged", extra={"missing": missing})

    def accept(self) -> bool:
        """Go on without them, because an operator said so; whether any were lost."""
        were_lost, self.are_lost = self.are_lost, False
        self._last.clear()
        self._compact()
        return were_lost

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _keep(self, order: _Order) -> None:
        ref = AgentRef(order.tenant, order.agent)
        self._last.pop(ref, None)
        self._last[ref] = order
        if len(self._last) > MOST:
            del self._last[next(iter(self._last))]

    def _compact(self) -> None:
        fresh = self._path.with_suffix(".new")
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.writelines(" ".join(order) + " .\n" for order in self._last.values())
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)
        self.close()
        self._file = self._path.open("a")
        self._appended = 0
