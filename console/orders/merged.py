"""Transactions of several agents as one list, newest first, though the service lists them agent by agent. Pure.

Of each agent the newest pages are loaded. The list goes down only as far as everything is known of all of them, so
that nothing can be missing in the middle of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from words.shapes import Transaction, TransactionPage


@dataclass
class _Loaded:
    rows: dict[str, Transaction] = field(default_factory=dict)
    total: int = 0
    at_least: bool = False

    @property
    def has_more(self) -> bool:
        return len(self.rows) < self.total

    @property
    def oldest(self) -> str:
        return min((row.created_at for row in self.rows.values()), default="")


class Merged:
    """The loaded rows of each agent, merged into one list."""

    def __init__(self, agents: Sequence[str]) -> None:
        self._loaded = {agent: _Loaded() for agent in agents}

    @property
    def agents(self) -> list[str]:
        """Those of whom it is."""
        return list(self._loaded)

    @property
    def total(self) -> int:
        """Number of rows in all."""
        return sum(loaded.total for loaded in self._loaded.values())

    @property
    def at_least(self) -> bool:
        """True if there may be more than `total`."""
        return any(loaded.at_least for loaded in self._loaded.values())

    def take(self, agent: str, page: TransactionPage, offset: int) -> None:
        """A page of one agent came. A newest page that does not reach what is loaded replaces it: there is a gap."""
        loaded = self._loaded[agent]
        fresh = {row.id: row for row in page.transactions}
        if offset == 0 and (page.total <= len(fresh) or not fresh.keys() & loaded.rows.keys()):
            loaded.rows = {}
        loaded.rows |= fresh
        # An empty page behind the end says that there is no more, whatever was counted.
        loaded.total, loaded.at_least = (page.total, page.at_least) if fresh else (len(loaded.rows), False)

    def rows(self) -> list[Transaction]:
        """Newest first, as far down as nothing is missing."""
        edge = self._edge()
        every = [row for loaded in self._loaded.values() for row in loaded.rows.values()]
        return sorted((row for row in every if row.created_at >= edge), key=lambda row: row.created_at, reverse=True)

    def next(self) -> list[tuple[str, int]]:
        """Choose the agents to ask for more, and from where, so that the list goes further down."""
        edge = self._edge()
        return [
            (agent, len(loaded.rows))
            for agent, loaded in self._loaded.items()
            if loaded.has_more and loaded.oldest == edge
        ]

    def _edge(self) -> str:
        return max((loaded.oldest for loaded in self._loaded.values() if loaded.has_more), default="")
