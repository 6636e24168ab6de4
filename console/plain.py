"""Text of others made harmless to a terminal and to a reader. Pure.

Names, reasons and typed data are written by agents, which may be hostile. What a terminal would obey (control
characters, escape sequences), what a reader would not see (zero-width marks, fillers) and what would show one thing in
place of another (bidirectional marks) is written out instead: `\\x1b`, `<U+202E>`. The one place where this is done is
the door, `harmless`, through which every answer of the API comes; so no string inside the console needs it again.
"""

import unicodedata
from typing import Any, Final

# Printable by Unicode's word, and yet nothing is seen of them.
_BLANK: Final = frozenset("\u115f\u1160\u2800\u3164\uffa0")
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
    marks = 0
    for letter in text:
        marks = marks + 1 if unicodedata.combining(letter) else 0
        hidden = not letter.isprintable() or letter in _BLANK or marks > _MARKS
        shown.append(_written_out(letter) if hidden else letter)
    return "".join(shown)


def _written_out(letter: str) -> str:
    code = ord(letter)
    if letter in _NAMED:
        return _NAMED[letter]
    return f"\\x{code:02x}" if code < 0x100 else f"<U+{code:04X}>"


def clipped(text: str, most: int) -> str:
    """At most so many characters, and how many there are when that is not all."""
    if len(text) <= most:
        return text
    return f"{text[:most]}{ELLIPSIS} ({len(text):,} characters)"


def short(name: str, most: int = 14) -> str:
    """An address or hash for a narrow place: both ends, where it is longer. Never for a decision, only for a list."""
    tail = (most - 1) // 2
    return name if len(name) <= most else f"{name[: most - 1 - tail]}{ELLIPSIS}{name[-tail:]}"
