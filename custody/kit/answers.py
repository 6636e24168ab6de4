"""Outcomes that must be remembered although they are no success: returned, because raising would undo them."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec


class Outcome(msgspec.Struct, frozen=True):
    """An answer with a status of its own; `error` is the sentence that says why it was not done."""

    status: int
    data: Any
    error: str | None = None
    headers: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"Outcome({self.status})"


class Download(msgspec.Struct, frozen=True):
    """A file: its text, what kind of text, and headers that go with it."""

    content: str
    media: str
    headers: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"Download({self.media})"


class Streamed(msgspec.Struct, frozen=True):
    """An answer that is sent piece by piece, for as long as the caller may have it.

    `chunks` takes what looks at his credential once more, and raises when it does not serve any longer.
    """

    media: str
    chunks: Callable[[Callable[[], Awaitable[object]]], AsyncIterator[bytes]]

    def __repr__(self) -> str:
        return f"Streamed({self.media})"
