"""Draws for a case, from its number alone: the same in every run and on every machine."""

import hashlib
import os
from collections.abc import Sequence

SEED = int(os.environ.get("TEST_SEED", "27"))
_BYTES = 4_096


class Draws:
    """A stream of choices."""

    def __init__(self, *what: object) -> None:
        self._stream = hashlib.shake_256(repr((SEED, *what)).encode()).digest(_BYTES)
        self._at = 0

    def below(self, end: int) -> int:
        """A number from 0 on; of small ones each is as likely as another."""
        if self._at + 3 > _BYTES:
            self._stream, self._at = hashlib.shake_256(self._stream).digest(_BYTES), 0
        found = int.from_bytes(self._stream[self._at : self._at + 3])
        self._at += 3
        return found % end

    def chance(self, percent: int) -> bool:
        """Draw whether something happens, at so many in a hundred cases."""
        return self.below(100) < percent

    def one[T](self, of: Sequence[T]) -> T:
        """One of them."""
        return of[self.below(len(of))]

    def some[T](self, of: Sequence[T], most: int) -> list[T]:
        """None to some of them, each once."""
        return list(dict.fromkeys(self.one(of) for _ in range(self.below(most + 1))))
