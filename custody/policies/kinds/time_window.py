"""`time-window`: at which hours and on which days orders may be signed. Decisions 3."""

from datetime import UTC, tzinfo
from typing import Annotated, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from msgspec import Meta

from custody.chains.types import Subject
from custody.policies.types import Facts, InvalidPolicy

_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")


class Hours(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """From the start hour up to, but without, the end hour."""

    start: Annotated[int, Meta(ge=0, le=23)]
    end: Annotated[int, Meta(ge=1, le=24)]


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The config as sent."""

    allowed_hours: Annotated[tuple[Hours, ...], Meta(max_length=24)] = ()
    allowed_days: Annotated[tuple[Annotated[int, Meta(ge=0, le=6)], ...], Meta(max_length=7)] = ()
    timezone: Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_+\-/]+\Z")] = "UTC"


class TimeWindow(msgspec.Struct, frozen=True):
    """The hours and days (0 = Sunday) that are open, on the clocks of one zone."""

    hours: frozenset[int]
    days: frozenset[int]
    timezone: str
    zone: tzinfo


def parse(config: dict[str, Any]) -> TimeWindow:
    """Read the config strictly, or raise."""
    sent = msgspec.convert(config, Config)
    if not sent.allowed_hours and not sent.allowed_days:
        raise InvalidPolicy("give `allowedHours` or `allowedDays`; with neither nothing would be restricted")
    hours = {hour for span in sent.allowed_hours for hour in _open(span)}
    return TimeWindow(
        frozenset(hours or range(24)), frozenset(sent.allowed_days or range(7)), sent.timezone, _zone(sent.timezone)
    )


def check(window: TimeWindow, subject: Subject, facts: Facts) -> tuple[bool, str]:
    """Say whether the window is open now, and why."""
    if facts.now.tzinfo is None:
        return False, "it cannot be told what time it is"
    local = facts.now.astimezone(window.zone)
    day = (local.weekday() + 1) % 7
    moment = f"{_DAYS[day]} {local.hour:02}:{local.minute:02} ({window.timezone})"
    if day not in window.days:
        return False, f"{moment} is not on an allowed day"
    if local.hour not in window.hours:
        return False, f"{moment} is outside the allowed hours"
    return True, f"{moment} is within the window"


def tightens(old: TimeWindow, new: TimeWindow) -> bool:
    """Say whether whatever passes `new` also passes `old`. Two zones are never compared: their clocks shift apart."""
    return new.timezone == old.timezone and new.hours <= old.hours and new.days <= old.days


def _open(span: Hours) -> list[int]:
    if span.start == span.end:
        raise InvalidPolicy("`allowedHours` has a span without length; the whole day is {start: 0, end: 24}")
    if span.start < span.end:
        return list(range(span.start, span.end))
    return [*range(span.start, 24), *range(span.end)]


def _zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC  # needs no time zone data, which slim machines do not have
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as problem:
        raise InvalidPolicy(
            f"`timezone` {name!r} is not known here; use an IANA name such as Europe/Berlin "
            "(a machine without time zone data knows only UTC)"
        ) from problem
