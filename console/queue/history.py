"""Decided items: pages of a list that only grows, and only at its beginning. Pure."""

from collections.abc import Sequence
from typing import Final

from console.queue.queue import Item, Outcome, outcome_of
from words.shapes import Approval

# This many rows before the last that is read, more is asked for.
NEAR: Final = 30


class History:
    """The items of one status, as far as they were read; `cursor` is where to read on, None at the end."""

    def __init__(self, status: str, me: str | None) -> None:
        self.status = status
        self.total = 0
        self.at_least = False
        self.cursor: str | None = None
        self._me = me
        self._items: dict[str, Approval] = {}

    def take_newest(self, page: Sequence[Approval], total: int, cursor: str | None, *, at_least: bool = False) -> None:
        """Take the first page. One that does not reach what was read replaces it: there is a gap."""
        fresh = {one.id: one for one in page}
        if not fresh.keys() & self._items.keys():
            self._items, self.cursor = {}, cursor
        self._items.update(fresh)
        self.total, self.at_least = total, at_least

    def take_more(self, page: Sequence[Approval], cursor: str | None) -> None:
        """Take the page at the cursor; it names where the next begins."""
        self._items.update((one.id, one) for one in page)
        self.cursor = cursor

    @property
    def read(self) -> int:
        """Number of items read."""
        return len(self._items)

    def wants_more(self, position: int) -> bool:
        """Tell whether somebody at this row is about to see the end of what was read."""
        return position >= len(self._items) - NEAR and self.cursor is not None

    @property
    def progress(self) -> str:
        """Share of the list that was read, in words; empty where all of it was."""
        if self.cursor is None:
            return ""
        return f"{self.read:,} of {'at least ' if self.at_least else ''}{max(self.total, self.read + 1):,} read"

    def items(self, ended: dict[str, Outcome]) -> list[Item]:
        """The items, with what has become of them meanwhile."""
        return [Item(one, outcome_of(one, self._me) or ended.get(one.id)) for one in self._items.values()]
