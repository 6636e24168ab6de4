"""Fair slots: places that agents of many tenants want, each with a limit, the last ones kept for tenants with few.

The reserve is what makes it fair. With shares alone a handful of tenants take everything between them, and anyone who
comes next finds nothing.
"""

from collections import Counter
from collections.abc import Hashable
from typing import Literal

import msgspec

# Who asks, and the group that it asks in: a tenant and one of its agents.
Who = tuple[Hashable, Hashable]
# What stands in the way: somebody's own share is used up, or so much is taken by others that the rest is kept back.
Lack = Literal["share", "room"]


class Bounds(msgspec.Struct, frozen=True):
    """The number of places, and the most for one and for one group. The last `reserve` are for groups
    that have no more than `few` then."""

    places: int
    of_one: int
    of_group: int
    reserve: int
    few: int


class FairSlots:
    """Counts the places of each agent and tenant, and says which may have more."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._taken = 0
        self._of_one: Counter[Who] = Counter()
        self._of_group: Counter[Hashable] = Counter()

    @property
    def taken(self) -> int:
        """Places that are not free."""
        return self._taken

    def of_group(self, group: Hashable) -> int:
        """Places that a group has."""
        return self._of_group[group]

    def lacks(self, who: Who, amount: int = 1) -> Lack | None:
        """Why there are not so many places for somebody; None when there are."""
        bounds, group = self._bounds, self._of_group[who[0]] + amount
        if self._of_one[who] + amount > bounds.of_one or group > bounds.of_group:
            return "share"
        kept_back = 0 if group <= bounds.few else bounds.reserve
        return "room" if self._taken + amount > bounds.places - kept_back else None

    def take(self, who: Who, amount: int = 1) -> Lack | None:
        """Take so many places, or none of them and say why."""
        if (lack := self.lacks(who, amount)) is None:
            self._taken += amount
            self._of_one[who] += amount
            self._of_group[who[0]] += amount
        return lack

    def give_back(self, who: Who, amount: int = 1) -> None:
        """Release places. A holder without places is forgotten."""
        self._taken -= amount
        self._of_one[who] -= amount
        self._of_group[who[0]] -= amount
        if not self._of_one[who]:
            del self._of_one[who]
        if not self._of_group[who[0]]:
            del self._of_group[who[0]]
