"""Refuse streams whose pieces hold a few bytes each: they cost by the piece and carry next to nothing."""

import time
from typing import Final

from custody.kit.errors import Invalid

# A minute may bring more chunks or frames than this only if they hold so many bytes each, on average.
MAX_FRAGMENTS: Final = 65_536
MIN_AVERAGE_BYTES: Final = 8
_WINDOW_SECONDS: Final = 60.0


class TooFragmented(Invalid):
    """The body arrived in too many chunks of a few bytes each; send larger ones."""


class Fragmentation:
    """Counts the chunks or frames of one stream."""

    __slots__ = ("_bytes", "_ends", "_fragments")

    def __init__(self) -> None:
        self._bytes = self._fragments = 0
        self._ends = time.monotonic() + _WINDOW_SECONDS

    def __repr__(self) -> str:
        return "Fragmentation()"

    def count(self, size: int) -> None:
        """Count one of this size. Raises TooFragmented."""
        self._fragments += 1
        self._bytes += size
        if self._fragments <= MAX_FRAGMENTS:
            return
        now = time.monotonic()
        if now < self._ends and self._bytes < MIN_AVERAGE_BYTES * self._fragments:
            raise TooFragmented
        # Either the minute is over, or they are large enough.
        self._bytes = self._fragments = 0
        self._ends = now + _WINDOW_SECONDS
