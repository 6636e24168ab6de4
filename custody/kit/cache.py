"""A bounded cache whose entries end: the one form in which a process remembers what it would otherwise ask for.

An entry is not found once it is older than `seconds`, whatever else happens, so a revocation that nobody heard of
holds after that time. When there are too many, the least recently used goes first.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import NamedTuple


class Entry[V](NamedTuple):
    """A value, and when it was so, by the clock of its cache."""

    value: V
    at: float


class Cache[K: Hashable, V]:
    """Values by key, at most `size` of them, each for `seconds`; `clock` must never go back."""

    def __init__(self, size: int, seconds: float = math.inf, clock: Callable[[], float] = time.monotonic) -> None:
        self._size = size
        self._seconds = seconds
        self._clock = clock
        self._entries: OrderedDict[K, Entry[V]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: K) -> bool:
        return self.entry(key) is not None

    def get(self, key: K) -> V | None:
        """The value, or None where there is none that is young enough."""
        entry = self.entry(key)
        return None if entry is None else entry.value

    def entry(self, key: K) -> Entry[V] | None:
        """The value with its time, for callers that also ask for its age."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if self._clock() - entry.at >= self._seconds:
            del self._entries[key]
            return None
        self._entries.move_to_end(key)
        return entry

    def put(self, key: K, value: V, at: float | None = None) -> None:
        """Remember a value; `at` says when it was read, where that was earlier than now."""
        self._entries[key] = Entry(value, self._clock() if at is None else at)
        self._entries.move_to_end(key)
        if len(self._entries) > self._size:
            self._entries.popitem(last=False)

    def drop(self, key: K) -> None:
        """Forget one, if it is there."""
        self._entries.pop(key, None)

    def drop_where(self, doomed: Callable[[K], bool]) -> None:
        """Forget all whose keys are so."""
        for key in [key for key in self._entries if doomed(key)]:
            del self._entries[key]

    def keys_where(self, wanted: Callable[[V], bool]) -> list[K]:
        """The keys of values that are so."""
        return [key for key, entry in self._entries.items() if wanted(entry.value)]

    def drop_ended(self) -> None:
        """Forget what would not be found any more: for secrets, which should not stay in memory."""
        ended = self._clock() - self._seconds
        for key in [key for key, entry in self._entries.items() if entry.at <= ended]:
            del self._entries[key]

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
