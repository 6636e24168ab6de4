"""The answer of a command, first or replayed; the kinds of the api's own answers are in `answer_kinds.py`."""

from collections.abc import Callable

import msgspec


class Answered[T](msgspec.Struct, frozen=True):
    """The outcome of a command; `replayed` when an earlier request with the same Idempotency-Key got it already."""

    answer: T
    replayed: bool = False

    def to[U](self, make: Callable[[T], U]) -> "Answered[U]":
        """Another answer made of this one, and just as much a replay."""
        return Answered(make(self.answer), self.replayed)

    def __repr__(self) -> str:
        return f"Answered({type(self.answer).__name__})"
