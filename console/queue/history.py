"""What was decided: pages of a list that only grows, and only at its beginning. Pure."""

from collections.abc import Sequence
from typing import Final

from console.queue.queue import OVERLAP, Item, Outcome, outcome_of
from console.wire.shapes import Approval

# This many rows before the last that is read, more is asked for.
NEAR: Final = 30


class History:
    """The items of one status, as far as they were read."""

    def __init__(self, status: str, me: str | None) -> None:
        self.status = status
        self.total = 0
        self._me = me
        self._items: dict[str, Approval] = {}

    def take(self, page: Sequence[Approval], total: int) -> None:
        """Take a page, from wherever in the list."""
        self._items.update((one.id, one) for one in page)
        self.total = total

    @property
    def read(self) -> int:
        """How many were read."""
        return len(self._items)

    @property
    def next_offset(self) -> int:
        """Where to read on; what came in front meanwhile moves the rest back."""
        return max(0, len(self._items) - OVERLAP)

    def wants_more(self, position: int) -> bool:
        """Whether somebody at this row is about to see the end of what was read."""
        return position >= len(self._items) - NEAR and len(self._items) < self.total

    def listed(self, ended: dict[str, Outcome]) -> list[Item]:
        """The items, with what has become of them meanwhile."""
        return [Item(one, outcome_of(one, self._me) or ended.get(one.id)) for one in self._items.values()]
