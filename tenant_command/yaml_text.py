"""Data as YAML, of which the same data always gives the same bytes. Pure.

A text is in quotes wherever some program could read something else in it, and what a terminal would obey or nobody
would see is written as its number.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from words.texts.plain import plain

# Begins with a letter, has nothing that means something in YAML, and is no word of YAML 1.1 or 1.2.
_BARE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./-]+)*")
_WORDS: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"})
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def yaml_text(data: Any, *heading: str) -> str:
    """The document, with comments above it."""
    lines = [*(f"# {line}" if line else "#" for line in heading), *_lines(data)]
    return "\n".join(lines) + "\n"


def _lines(value: Any) -> Iterator[str]:
    match value:
        case dict() if value:
            for name, one in value.items():
                yield from _after(f"{_scalar(name)}:", one)
        case list() if value:
            for one in value:
                first, *rest = _lines(one)
                yield f"- {first}"
                yield from (f"  {line}" for line in rest)
        case _:
            yield _scalar(value)


def _after(name: str, value: Any) -> Iterator[str]:
    if value and isinstance(value, dict | list):
        yield name
        yield from (f"  {line}" for line in _lines(value))
    else:
        yield f"{name} {_scalar(value)}"


def _scalar(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case dict():
            return "{}"
        case list():
            return "[]"
        case _:
            return _text(value)


def _text(text: str) -> str:
    if _BARE.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return f'"{"".join(map(_letter, text))}"'


def _letter(letter: str) -> str:
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    if plain(letter) == letter and letter.isprintable() and letter < "\ud800":
        return letter
    code = ord(letter)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
