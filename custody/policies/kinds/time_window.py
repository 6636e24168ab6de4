"""`time-window`: at which hours, on which days, from when and until when orders may be signed."""

from datetime import UTC, datetime, tzinfo
from typing import Annotated, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from msgspec import UNSET, Meta, UnsetType

from custody.chains.types import Subject
from custody.kit.described import described
from custody.policies.kind import Config, Rule, Terms, moment_sent, sent_or
from custody.policies.types import Facts, InvalidPolicy

Day = Annotated[int, Meta(ge=0, le=6)]
DEFAULT_ZONE = "UTC"
EVERY_HOUR, EVERY_DAY = frozenset(range(24)), frozenset(range(7))
_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")


class TimeWindow(Terms, frozen=True):
    """The hours and days (0 = Sunday) that are open, on the clocks of one zone, from one moment until another."""

    hours: frozenset[int]
    days: frozenset[int]
    timezone: str
    zone: tzinfo
    begin: datetime | None = None
    end: datetime | None = None

    def check(self, subject: Subject, facts: Facts) -> tuple[bool, str]:
        """Say whether the window is open now, and why."""
        if facts.now.tzinfo is None:
            return False, "the time is unknown"
        if self.begin is not None and facts.now < self.begin:
            return False, f"until {_spell(self.begin)} nothing is signed under these rules"
        if self.end is not None and facts.now >= self.end:
            return False, f"since {_spell(self.end)} nothing is signed under these rules"
        local = facts.now.astimezone(self.zone)
        day = (local.weekday() + 1) % 7
        moment = f"{_DAYS[day]} {local.hour:02}:{local.minute:02} ({self.timezone})"
        if day not in self.days:
            return False, f"{moment} is not on an allowed day"
        if local.hour not in self.hours:
            return False, f"{moment} is outside the allowed hours"
        return True, f"{moment} is within the window"

    def tightens(self, old: Self) -> bool:
        """Say whether no hour or day is new, and it begins no earlier and ends no later.

        Two zones are never compared, for their clocks shift apart, unless the old window is open at any hour.
        """
        if old.begin is not None and (self.begin is None or self.begin < old.begin):
            return False
        if old.end is not None and (self.end is None or self.end > old.end):
            return False
        if (old.hours, old.days) == (EVERY_HOUR, EVERY_DAY):
            return True
        return self.timezone == old.timezone and self.hours <= old.hours and self.days <= old.days


class Hours(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """From the start hour up to, but without, the end hour; a span may pass midnight."""

    start: Annotated[int, Meta(ge=0, le=23), described("The first hour of the span.", unit="hour of the day")]
    end: Annotated[int, Meta(ge=1, le=24), described("The hour at which the span is over.", unit="hour of the day")]


class TimeWindowConfig(Config, frozen=True):
    """At least one of hours, days, `notBefore` and `notAfter` is needed."""

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

    not_before: Annotated[
        Annotated[str, Meta(max_length=40)] | UnsetType | None,
        described("Nothing is signed before this moment, a date and time with a zone.", format="date-time"),
    ] = UNSET
    not_after: Annotated[
        Annotated[str, Meta(max_length=40)] | UnsetType | None,
        described("Nothing is signed from this moment on, a date and time with a zone.", format="date-time"),
    ] = UNSET

    def terms(self) -> TimeWindow:
        """The open hours and days, and the moments between which they count."""
        spans, days = sent_or(self.allowed_hours, ()), sent_or(self.allowed_days, ())
        begin, end = moment_sent(self.not_before, "notBefore"), moment_sent(self.not_after, "notAfter")
        if not (spans or days or begin or end):
            raise InvalidPolicy(
                "give `allowedHours`, `allowedDays`, `notBefore` or `notAfter`; without any, the rule restricts nothing"
            )
        if begin is not None and end is not None and begin >= end:
            raise InvalidPolicy("`notBefore` must be earlier than `notAfter`; otherwise nothing is ever signed")
        hours = {hour for span in spans for hour in _open(span)}
        zone = sent_or(self.timezone, DEFAULT_ZONE)
        return TimeWindow(frozenset(hours) or EVERY_HOUR, frozenset(days) or EVERY_DAY, zone, _zone(zone), begin, end)


class TimeWindowRule(Rule, frozen=True, kw_only=True, tag="time-window"):
    """At which hours, on which days and between which moments orders may be signed. Otherwise they are refused."""

    config: Annotated[TimeWindowConfig, described("Settings of the rule.")]


def _spell(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC" if moment.second else f"{moment:%Y-%m-%d %H:%M} UTC"


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
