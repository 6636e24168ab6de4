"""Lines in words, each with a tone that only repeats in colour what the words say. Pure."""

from dataclasses import dataclass
from typing import Literal

Tone = Literal["bad", "warn", "good", "quiet"]


@dataclass(frozen=True)
class Line:
    """One line; the tone only repeats in colour what the words say."""

    text: str
    tone: Tone | None = None


class Heading(Line):
    """The name of a section."""
