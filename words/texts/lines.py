"""Lines in words, each with a tone that only repeats in colour what the words say. Pure."""

from dataclasses import dataclass, field
from typing import Literal

Tone = Literal["bad", "warn", "good", "quiet"]


@dataclass(frozen=True)
class Line:
    """One line; the tone only repeats in colour what the words say. `address` says that an address ends it."""

    text: str
    tone: Tone | None = None
    address: bool = field(default=False, compare=False, kw_only=True)


class Heading(Line):
    """The name of a section."""
