"""Counts in windows of a fixed length, in this process' own memory. Every hit takes the same time, however many count.

A window begins with its name's first hit. There is room for a fixed number of names, and none is dropped while its
window lasts: when it is full, further names share spare counters until windows end. So nobody who comes under many
names takes away what was counted of others, or finds a way around the limit.
"""

from typing import Final

# Names in one kind of window.
MAX_NAMES: Final = 50_000
SPARE_COUNTERS: Final = 1_024
# At each hit so many windows that are over are dropped.
_DROPPED: Final = 64


class Windows:
    """One kind of window: all of them last equally long, so the one that began first ends first."""

    def __init__(self, seconds: float, most: int = MAX_NAMES) -> None:
        self._seconds = seconds
        self._most = most
        # By name: when the window ends, and how often it was hit. In the order in which they end.
        self._counts: dict[str | int, tuple[float, int]] = {}

    def hit(self, name: str, now: float, times: int = 1) -> tuple[int, float]:
        """Count hits: how many there were in this window, and when it ends."""
        for _ in range(_DROPPED):
            oldest = next(iter(self._counts), None)
            if oldest is None or self._counts[oldest][0] > now:
                break
            del self._counts[oldest]
        place: str | int = name
        if name not in self._counts and len(self._counts) >= self._most:
            place = hash(name) % SPARE_COUNTERS
        ends, count = self._counts.get(place, (0.0, 0))
        if ends <= now:
            # Taken out first: what is put in goes to the end.
            self._counts.pop(place, None)
            ends, count = now + self._seconds, 0
        self._counts[place] = ends, count + times
        return count + times, ends

    def of(self, name: str, now: float) -> tuple[int, float]:
        """The same without a hit."""
        ends, count = self._counts.get(name, (0.0, 0))
        return (count, ends) if ends > now else (0, now)

    def __len__(self) -> int:
        return len(self._counts)
