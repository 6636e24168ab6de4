"""A document to be signed, as indented lines: what it says comes before the types by which it says it. Pure.

All of it is its author's, also how long each part is. So each part has lines of its own, and no other part can use up
those of the message; omitted parts of the message are named in red.
"""

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any, Final

from words.orders.addresses import checksum_address
from words.texts.amounts import quote
from words.texts.fields import pluralize
from words.texts.lines import Line
from words.texts.plain import clip

# Those of the signing libraries and of the API, and those of wallets.
_MESSAGE: Final = ("value", "message")
_MESSAGE_LINES: Final = 200
_HEAD: Final = ("primaryType", "domain")
_HEAD_LINES: Final = 40
_TYPES: Final = "types"
_TYPES_LINES: Final = 60
_OTHER_LINES: Final = 40
_MOST_DEPTH: Final = 8
_NAME: Final = 80
_VALUE: Final = 600
# Further than this what is left out is not counted.
_COUNTED: Final = 10_000
_Field = tuple[int, str, Any]


def document_lines(data: object) -> list[Line]:
    """All of it as far as it is no longer than a few screens, and of each part how much is not shown."""
    if not isinstance(data, dict):
        return [*_head(_walk("document", data, 0), _MESSAGE_LINES), *_as_list(unread(data))]
    named = {str(name): value for name, value in data.items()}
    others = [name for name in named if name not in (*_HEAD, *_MESSAGE, _TYPES)]
    return [
        Line("document:" if named else "document: nothing"),
        *_part(named, _HEAD, _HEAD_LINES),
        *_head(_fields(named, _MESSAGE), _MESSAGE_LINES),
        *_as_list(unread(data)),
        *_part(named, others, _OTHER_LINES),
        *_part(named, (_TYPES,), _TYPES_LINES),
    ]


def unread(data: object) -> Line | None:
    """Warn of the part of its message that the details do not show; None where they show it whole."""
    if data is None or isinstance(data, str):
        return None
    walk = _fields(data, _MESSAGE) if isinstance(data, dict) else _walk("document", data, 0)
    cut = sum(not _line(*field)[1] for field in islice(walk, _MESSAGE_LINES))
    left = _rest(walk)
    if not left and not cut:
        return None
    parts = [f"{left} left out"] if left else []
    parts += [f"{pluralize(cut, 'line', 'lines')} cut short"] if cut else []
    return Line(f"Not all of the message is shown in the details: {', '.join(parts)}.", "bad")


def _part(named: dict[str, Any], names: Iterable[str], most: int) -> list[Line]:
    walk = _fields(named, names)
    said = _head(walk, most)
    left = _rest(walk)
    return [*said, Line(f"  …and {left} more, not shown here.", "warn")] if left else said


def _head(walk: Iterator[_Field], most: int) -> list[Line]:
    return [Line(_line(*field)[0]) for field in islice(walk, most)]


def _rest(walk: Iterator[_Field]) -> str:
    left = sum(1 for _ in islice(walk, _COUNTED))
    return f"at least {left:,} lines" if left == _COUNTED else pluralize(left, "line", "lines") if left else ""


def _fields(named: dict[Any, Any], names: Iterable[str]) -> Iterator[_Field]:
    return chain.from_iterable(_walk(name, named[name], 1) for name in names if name in named)


def _walk(name: str, value: Any, depth: int) -> Iterator[_Field]:
    """One after the other all that stands in it, each of which makes a line."""
    yield depth, name, value
    if isinstance(value, dict | list) and depth < _MOST_DEPTH:
        for key, one in value.items() if isinstance(value, dict) else enumerate(value, 1):
            yield from _walk(str(key), one, depth + 1)


def _line(depth: int, name: str, value: Any) -> tuple[str, bool]:
    """Its line, and whether that shows it whole; names and values are its author's, so each is quoted and clipped."""
    shown = name if name.isidentifier() and len(name) <= _NAME else quote(name, _NAME)
    begin = f"{'  ' * depth}{shown}:"
    if isinstance(value, dict | list) and depth < _MOST_DEPTH:
        return (begin if value else f"{begin} nothing"), len(name) <= _NAME
    text = checksum_address(value) if isinstance(value, str) else str(value)
    inner = quote(text, _VALUE) if isinstance(value, str) else clip(text, _VALUE)
    return f"{begin} {inner}", len(name) <= _NAME and len(text) <= _VALUE


def _as_list(said: Line | None) -> list[Line]:
    return [said] if said else []
