"""Outcomes that must be remembered although they are no success: returned, because raising would undo them."""

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
