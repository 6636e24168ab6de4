"""Limit text messages per hour: each costs the operator money, and premium numbers pay an attacker."""

import math
import time
from collections import Counter
from typing import Final

from custody.kit.errors import TooMany

HOUR: Final = 3600.0
# A plus sign and seven digits: one range of one provider's numbers, in most countries.
PREFIX_CHARACTERS: Final = 8
PREFIX_PER_HOUR: Final = 20


class TooManyMessages(TooMany):
    """Too many text messages were sent within the hour; retry later, or use another second factor."""


class Hourly:
    """Counts messages of one process in hours that follow each other; `most` 0 counts nothing.

    It stands beside the limits for each person and number, which a crowd of either walks around. Numbers that are only
    being enrolled have half of it: anybody may sign up and enrol, and must not leave nothing to people who step up.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._ends_at = float("-inf")
        self._sent = 0
        self._by_prefix: Counter[str] = Counter()
        self._enrolling: Counter[str] = Counter()

    def count(self, number: str, *, enrols: bool = False) -> None:
        """Count one message, or raise TooManyMessages with the seconds until the next hour begins."""
        if not self._most:
            return
        now, prefix = time.monotonic(), number[:PREFIX_CHARACTERS]
        if now >= self._ends_at:
            self._ends_at, self._sent = now + HOUR, 0
            self._by_prefix.clear()
            self._enrolling.clear()
        full = self._sent >= self._most or self._by_prefix[prefix] >= PREFIX_PER_HOUR
        if enrols and not full:
            share = math.ceil(self._most / 2)
            full = self._enrolling.total() >= share or self._enrolling[prefix] >= PREFIX_PER_HOUR // 2
        if full:
            raise TooManyMessages(retry_after=math.ceil(self._ends_at - now))
        self._sent += 1
        self._by_prefix[prefix] += 1
        self._enrolling[prefix] += enrols
