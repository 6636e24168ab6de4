"""The bounds of a search in time. A plain date means that day in UTC: from its first moment, or until its last."""

import re
from datetime import datetime, timedelta
from typing import Annotated

from msgspec import Meta

from custody.kit.errors import Invalid
from custody.kit.instants import read_instant

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")
_MUST_BE = "be a date and time with a zone, such as 2026-01-31T12:00:00Z, or a date, such as 2026-01-31"
# A bound of a search, as every query takes it.
Bound = Annotated[
    str,
    Meta(
        min_length=10,
        max_length=35,
        pattern=r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
        r"(T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9]))?\Z",
        description="An RFC 3339 date and time with a zone, such as 2026-01-31T12:00:00Z, or a date, such as "
        "2026-01-31, which means that whole day in UTC. Inclusive. A + is sent as %2B.",
        extra={"must": _MUST_BE},
    ),
]


class BadTime(Invalid):
    """A time must be a date and time with a zone, such as 2026-01-31T12:00:00Z, or a date, such as 2026-01-31."""


def first_moment(name: str, text: str | None) -> datetime | None:
    """Find where a search begins, or BadTime with the parameter's name."""
    return None if text is None else _read(name, text)[0]


def last_moment(name: str, text: str | None) -> datetime | None:
    """Find where a search ends, this moment included: a day ends with its last one, and so does a millisecond.

    Answers show milliseconds, so the time that a row shows finds the row.
    """
    if text is None:
        return None
    moment, day = _read(name, text)
    if day:
        return moment + timedelta(days=1, microseconds=-1)
    return moment + timedelta(microseconds=999) if moment.microsecond % 1000 == 0 else moment


def _read(name: str, text: str) -> tuple[datetime, bool]:
    day = _DATE.match(text) is not None
    found = read_instant(f"{text}T00:00:00Z" if day else text)
    # The last year of the calendar has no room for what is added to a bound.
    if found is None or found.year == 9999:
        raise BadTime(f"{name} must {_MUST_BE}.", fields=[name])
    return found, day
