"""Things laid out as lines of names and values. Pure."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from words.texts.plain import clip

# What one value, one nest and one thing may take of the screen.
MOST_CHARACTERS: Final = 600
MOST_DEPTH: Final = 6
MOST_LINES: Final = 400
Field = tuple[str, str]


def laid_out(fields: Sequence[Field]) -> str:
    """One line for each, the values under one another."""
    width = max((len(name) for name, _ in fields), default=0)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in fields)


def pluralize(number: int, one: str, many: str) -> str:
    """So many of something."""
    return f"{number:,} {one if number == 1 else many}"


def indent(value: Any) -> list[str]:
    """A decoded JSON value as indented lines, each of a bounded length, and a last one that says if there are more."""
    lines = list(_lines(value, 0))
    left = len(lines) - MOST_LINES
    return lines if left <= 0 else [*lines[:MOST_LINES], f"… ({left:,} more lines)"]


def _lines(value: Any, depth: int) -> Iterator[str]:
    blank = "  " * depth
    if depth >= MOST_DEPTH and isinstance(value, dict | list):
        yield f"{blank}… (more inside)"
    elif isinstance(value, dict):
        for key, one in value.items():
            name = clip(str(key), 80)
            if isinstance(one, dict | list) and one:
                yield f"{blank}{name}:"
                yield from _lines(one, depth + 1)
            else:
                yield f"{blank}{name}: {_word(one)}"
    elif isinstance(value, list):
        for one in value:
            if isinstance(one, dict | list) and one:
                yield f"{blank}-"
                yield from _lines(one, depth + 1)
            else:
                yield f"{blank}- {_word(one)}"
    else:
        yield f"{blank}{_word(value)}"


def _word(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return "empty"
    return clip(str(value), MOST_CHARACTERS)
