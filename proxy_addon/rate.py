"""The global request limit of one agent.

The library that the api counts with starts a thread of its own every few milliseconds, which costs one request in
twenty here; a fixed window needs none.
"""

import time
from collections.abc import Callable


class Windows:
    """Counts hits by name in fixed windows of one length."""

    def __init__(self, most: int, seconds: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._window = -1
        self._hits: dict[tuple[str, str], int] = {}

    def hit(self, name: tuple[str, str]) -> int | None:
        """Count one; gives the seconds to wait when that was one too many, else None. 0 as the limit means none."""
        if not self._most:
            return None
        now = self._turn()
        hits = self._hits[name] = self._hits.get(name, 0) + 1
        if hits <= self._most:
            return None
        return max(1, int((self._window + 1) * self._seconds - now))

    def used_up(self, name: tuple[str, str]) -> bool:
        """Say whether one more hit would be too many."""
        self._turn()
        return bool(self._most) and self._hits.get(name, 0) >= self._most

    def _turn(self) -> float:
        now = self._clock()
        if (window := int(now // self._seconds)) != self._window:
            self._window = window
            self._hits.clear()
        return now
