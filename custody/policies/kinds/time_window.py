"""`time-window`: at which hours and on which days orders may be signed."""

from datetime import UTC, tzinfo
from typing import Annotated, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from msgspec import UNSET, Meta, UnsetType

from custody.chains.types import Subject
from custody.kit.described import described
from custody.policies.kind import Config, Rule, Terms, given
from custody.policies.types import Facts, InvalidPolicy

Day = Annotated[int, Meta(ge=0, le=6)]
DEFAULT_ZONE = "UTC"
_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")


class TimeWindow(Terms, frozen=True):
    """The hours and days (0 = Sunday) that are open, on the clocks of one zone."""

    hours: frozenset[int]
    days: frozenset[int]
    timezone: str
    zone: tzinfo

    def check(self, subject: Subject, facts: Facts) -> tuple[bool, str]:
        """Say whether the window is open now, and why."""
        if facts.now.tzinfo is None:
            return False, "the time is unknown"
        local = facts.now.astimezone(self.zone)
        day = (local.weekday() + 1) % 7
        moment = f"{_DAYS[day]} {local.hour:02}:{local.minute:02} ({self.timezone})"
        if day not in self.days:
            return False, f"{moment} is not on an allowed day"
        if local.hour not in self.hours:
            return False, f"{moment} is outside the allowed hours"
        return True, f"{moment} is within the window"

    def tightens(self, old: Self) -> bool:
        """Say whether no hour or day is new. Two zones are never compared: their clocks shift apart."""
        return self.timezone == old.timezone and self.hours <= old.hours and self.days <= old.days


class Hours(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """From the start hour up to, but without, the end hour; a span may pass midnight."""

    start: Annotated[int, Meta(ge=0, le=23), described("The first hour of the span.", unit="hour of the day")]
    end: Annotated[int, Meta(ge=1, le=24), described("The hour at which the span is over.", unit="hour of the day")]


class TimeWindowConfig(Config, frozen=True):
    """At least one of hours and days is needed."""

    allowed_hours: Annotated[
        Annotated[tuple[Hours, ...], Meta(max_length=24)] | UnsetType,
        described("Spans of hours; one may pass midnight. None means every hour.", default=[]),
    ] = UNSET
    allowed_days: Annotated[
        Annotated[tuple[Day, ...], Meta(max_length=7)] | UnsetType,
        described(
            "Days of the week, 0 is Sunday. None means every day. A day ends at midnight, also in a span.",
            unit="day of the week",
            default=[],
        ),
    ] = UNSET
    timezone: Annotated[
        Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_+\-/]+\Z")] | UnsetType,
        described("IANA name of the zone whose clocks count; summer time is followed.", default=DEFAULT_ZONE),
    ] = UNSET

    def terms(self) -> TimeWindow:
        """The open hours and days."""
        spans, days = given(self.allowed_hours, ()), given(self.allowed_days, ())
        if not spans and not days:
            raise InvalidPolicy("give `allowedHours` or `allowedDays`; without either, the rule restricts nothing")
        hours = {hour for span in spans for hour in _open(span)}
        zone = given(self.timezone, DEFAULT_ZONE)
        return TimeWindow(frozenset(hours or range(24)), frozenset(days or range(7)), zone, _zone(zone))


class TimeWindowRule(Rule, frozen=True, kw_only=True, tag="time-window"):
    """At which hours and on which days orders may be signed. Outside the window an order is refused."""

    config: Annotated[TimeWindowConfig, described("Settings of the rule.")]


def _open(span: Hours) -> list[int]:
    if span.start == span.end:
        raise InvalidPolicy("`allowedHours` has an empty span; the whole day is {start: 0, end: 24}")
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
            f"`timezone` {name!r} is not a known time zone; use an IANA name such as Europe/Berlin "
            "(a machine without time zone data knows only UTC)"
        ) from problem
