"""Text of others made harmless to a terminal and to a reader. Pure.

Names, reasons and typed data are written by agents, which may be hostile. What a terminal would obey (control
characters, escape sequences), what a reader would not see (zero-width marks, fillers), what would show one thing in
place of another (bidirectional marks, and letters that run from right to left, around which a terminal moves numbers)
and what no two terminals draw equally wide (joined emoji, flags) is written out instead: `\\x1b`, `<U+202E>`. The one
place where this is done is the door, `harmless`: every answer of the API that the console reads comes through it, and
every row that the service puts into words. No string behind it needs it again.
"""

import unicodedata
from functools import lru_cache
from typing import Any, Final

# Printable by Unicode's word, and yet nothing is seen of them: fillers, blanks, variation selectors.
_BLANK: Final = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0\U00013441\U00013442\U00016fe4\U0001d159"
)
_RANGES: Final = (
    (0xFE00, 0xFE0F),
    (0xE0100, 0xE01EF),  # variation selectors
    (0x1160, 0x11FF),
    (0xD7B0, 0xD7FF),  # parts of Korean syllables, which have no width of their own
    (0x1F1E6, 0x1F1FF),
    (0x1F3FB, 0x1F3FF),  # halves of flags, colours of skin: drawn into their neighbour
)
_RIGHT_TO_LEFT: Final = frozenset({"R", "AL", "AN"})
_NAMED: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
# More marks over one letter than any language needs; they would run into the lines above.
_MARKS: Final = 3
ELLIPSIS: Final = "…"


def harmless(value: Any) -> Any:
    """A decoded JSON value with every string in it made plain, keys too."""
    match value:
        case str():
            return plain(value)
        case list():
            return [harmless(item) for item in value]
        case dict():
            return {plain(key): harmless(item) for key, item in value.items()}
        case _:
            return value


def plain(text: str) -> str:
    """The same text, with what would not be seen as itself written out."""
    if text.isascii() and text.isprintable():
        return text
    shown: list[str] = []
    marks = _MARKS
    for letter in text:
        kind = _kind(letter)
        # A mark belongs to a letter; on anything else it would change one of our characters or stand alone.
        marks = marks + 1 if kind == "mark" else 0 if kind == "letter" else _MARKS
        hidden = kind == "hidden" or (kind == "mark" and marks > _MARKS)
        shown.append(_written_out(letter) if hidden else letter)
    return "".join(shown)


@lru_cache(maxsize=8192)
def _kind(letter: str) -> str:
    """Tell whether a character is hidden, a mark over the letter before it, a letter, or another sign."""
    code, category = ord(letter), unicodedata.category(letter)
    if (
        not letter.isprintable()
        or letter in _BLANK
        or category == "Me"
        or unicodedata.bidirectional(letter) in _RIGHT_TO_LEFT
        or any(low <= code <= high for low, high in _RANGES)
    ):
        return "hidden"
    return "mark" if category in ("Mn", "Mc") else "letter" if category.startswith("L") else "sign"


def _written_out(letter: str) -> str:
    code = ord(letter)
    if letter in _NAMED:
        return _NAMED[letter]
    return f"\\x{code:02x}" if code < 0x100 else f"<U+{code:04X}>"


def clip(text: str, most: int) -> str:
    """At most so many characters, and how many there are when that is not all."""
    if len(text) <= most:
        return text
    return f"{text[:most]}{ELLIPSIS} ({len(text):,} characters)"


def short(name: str, most: int = 14) -> str:
    """An address or hash for a narrow place: both ends, where it is longer. Never for a decision, only for a list."""
    tail = (most - 1) // 2
    return name if len(name) <= most else f"{name[: most - 1 - tail]}{ELLIPSIS}{name[-tail:]}"
