"""`rate-limit`: how many orders may be signed or queued per hour and day."""

import math
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Annotated, Self

from msgspec import UNSET, Meta, UnsetType

from custody.chains.types import Subject
from custody.kit.described import described
from custody.policies.kind import Config, Rule, Terms, Wants, at_most, sent_or
from custody.policies.types import Facts, InvalidPolicy, Left, Room

Count = Annotated[int, Meta(ge=1, le=2**53)]


class RateLimit(Terms, frozen=True):
    """The most orders in each window; None does not limit."""

    per_hour: int | None
    per_day: int | None

    def check(self, subject: Subject, facts: Facts) -> tuple[bool, str]:
        """Say whether one more order fits both windows, and why."""
        if _full(self.per_hour, facts.orders_last_hour):
            return False, _refusal(facts.orders_last_hour, "hour", self.per_hour)
        if _full(self.per_day, facts.orders_last_day):
            return False, _refusal(facts.orders_last_day, "day", self.per_day)
        return True, "the number of orders is within the limits"

    def tightens(self, old: Self) -> bool:
        """Say whether both limits are at most the old ones."""
        return at_most(self.per_hour, old.per_hour) and at_most(self.per_day, old.per_day)

    def wants(self) -> Wants:
        """The orders of the last hour and day."""
        return Wants(rates=True)

    def room(self, facts: Facts) -> Room | None:
        """Find when enough orders have left each full window; the window that has room last decides."""
        full = [
            Room(_wait(counted, count - most + 1, stays, facts.now), most)
            for most, count, counted, stays in self._windows(facts)
            if count >= most
        ]
        return max(full, key=lambda room: room.seconds, default=None)

    def room_left(self, facts: Facts) -> Left | None:
        """Of the window with the least room: what is left of it, and when its oldest order leaves."""
        found = [
            Left(most, most - count - 1, _wait(counted, 1, stays, facts.now))
            for most, count, counted, stays in self._windows(facts)
        ]
        return min(found, key=lambda left: (left.remaining, -left.seconds), default=None)

    def _windows(self, facts: Facts) -> Iterator[tuple[int, int, Sequence[tuple[int, int]], int]]:
        """Each window that is limited: by how many, how many it has, in which buckets, and how long they stay in it."""
        if self.per_hour is not None:
            yield self.per_hour, facts.orders_last_hour, facts.minutes, 60 + 3600
        if self.per_day is not None:
            yield self.per_day, facts.orders_last_day, facts.hours, 3600 + 86_400


class RateLimitConfig(Config, frozen=True):
    """At least one of the two is needed."""

    max_tx_per_hour: Annotated[
        Count | UnsetType | None, described("The most signed or queued in any 60 minutes.", unit="orders")
    ] = UNSET
    max_tx_per_day: Annotated[
        Count | UnsetType | None, described("The most signed or queued in any 24 hours.", unit="orders")
    ] = UNSET

    def terms(self) -> RateLimit:
        """The limits."""
        limit = RateLimit(sent_or(self.max_tx_per_hour, None), sent_or(self.max_tx_per_day, None))
        if limit.per_hour is None and limit.per_day is None:
            raise InvalidPolicy("give at least one of `maxTxPerHour`, `maxTxPerDay`")
        return limit


class RateLimitRule(Rule, frozen=True, kw_only=True, tag="rate-limit"):
    """Limits on orders signed or queued per hour and day. Further orders are refused with 429 and Retry-After."""

    config: Annotated[RateLimitConfig, described("Settings of the rule.")]


def _full(most: int | None, count: int) -> bool:
    return most is not None and count >= most


def _wait(counted: Sequence[tuple[int, int]], leaving: int, stays: int, now: datetime) -> int:
    """Seconds until so many orders have left a window; a bucket counts as long as any of its grain is in the window."""
    at = now.timestamp()
    for start, orders in sorted(counted):
        leaving -= orders
        if leaving <= 0:
            return max(1, math.ceil(start + stays - at))
    return stays


def _refusal(count: int, window: str, most: int | None) -> str:
    return f"{count} orders in the last {window} reach the limit of {most} per {window}"
