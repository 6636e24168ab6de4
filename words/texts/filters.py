"""The little language of filter lines: `field:value` after `field:value`. Pure.

Each field stands once. A value with blanks goes in double quotes. What cannot be understood is said at its field, and
nothing is searched: a filter that was silently left out would show more than was asked for.
"""

import shlex
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

# From the values of one field to parameters of the API.
Reader = Callable[[str], dict[str, str]]
_SPANS: Final = {"m": "minutes", "h": "hours", "d": "days"}


class BadFilter(Exception):
    """A filter line cannot be understood; the sentence says which part and what would be."""

    def __init__(self, sentence: str) -> None:
        self.sentence = sentence
        super().__init__(sentence)


def read(line: str, fields: Mapping[str, Reader]) -> dict[str, str]:
    """The API's parameters for a line, or BadFilter. A field that ends in a dot takes any name after it."""
    try:
        words = shlex.split(line)
    except ValueError:
        raise BadFilter('A quotation mark is open: write name:"two words".') from None
    found: dict[str, str] = {}
    for word in words:
        name, colon, value = word.partition(":")
        start = name[: name.index(".") + 1] if "." in name else name
        reader = fields.get(name) or fields.get(start)
        if not colon or reader is None:
            raise BadFilter(
                f"{word[:40]} is not a filter here. Known filters: {', '.join(_prompt(one) for one in fields)}."
            )
        if not value:
            raise BadFilter(f"{name}: write a value after the colon.")
        given = {f"{parameter}{name[len(start) :]}": one for parameter, one in reader(value).items()}
        if twice := sorted(found.keys() & given.keys()):
            raise BadFilter(f"{name}: there is already a filter for {twice[0]}.")
        found |= given
    return found


def exactly(parameter: str) -> Reader:
    """The value as it is."""
    return lambda value: {parameter: value}


def one_of(name: str, parameter: str, **choices: str) -> Reader:
    """One of these words, each with what the API calls it."""

    def reader(value: str) -> dict[str, str]:
        if value not in choices:
            raise BadFilter(f"{name}: {value[:40]} is not one of {', '.join(choices)}.")
        return {parameter: choices[value]}

    return reader


def beginning(parameter: str, prefix_parameter: str) -> Reader:
    """The value, or with `*` at its end everything that begins so."""
    return lambda value: {prefix_parameter: value[:-1]} if value.endswith("*") else {parameter: value}


def kind_and_id(kinds: frozenset[str] | None, kind_parameter: str, id_parameter: str) -> Reader:
    """`kind`, `kind:id`, and, where the kinds are known, an id alone."""

    def reader(value: str) -> dict[str, str]:
        kind, colon, name = value.partition(":")
        if kinds is not None and kind not in kinds:
            return {id_parameter: value}
        return {kind_parameter: kind} | ({id_parameter: name} if colon and name else {})

    return reader


def time(name: str, parameter: str, now: Callable[[], datetime], *, end: bool = False) -> Reader:
    """A day, a time in UTC unless it says otherwise, or how long ago: `2026-01-31`, `2026-01-31T12:00`, `3h`."""

    def reader(value: str) -> dict[str, str]:
        found = _ago(value, now()) or _moment(value, end=end)
        if found is None:
            raise BadFilter(
                f"{name}: write a day (2026-01-31), a time (2026-01-31T12:00) or how long ago (30m, 3h, 7d)."
            )
        return {parameter: found.isoformat(timespec="milliseconds").replace("+00:00", "Z")}

    return reader


def _ago(value: str, now: datetime) -> datetime | None:
    number, unit = value[:-1], value[-1]
    if unit not in _SPANS or not number.isdecimal() or len(number) > 5:
        return None
    return (now - timedelta(**{_SPANS[unit]: int(number)})).astimezone(UTC)


def _moment(value: str, *, end: bool) -> datetime | None:
    try:
        found = datetime.fromisoformat(value)
        if end and "T" not in value and ":" not in value:
            found += timedelta(days=1, milliseconds=-1)
        return found.replace(tzinfo=found.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _prompt(field: str) -> str:
    return f"{field}<path>:" if field.endswith(".") else f"{field}:"
