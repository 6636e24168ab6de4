"""`rate-limit`: how many orders may be signed or queued per hour and day. Decisions 3."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from custody.chains.types import Subject
from custody.policies.types import Facts, InvalidPolicy

Count = Annotated[int, Meta(ge=1, le=2**53)]


class RateLimit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The config as sent, which is also what is checked."""

    max_tx_per_hour: Count | None = None
    max_tx_per_day: Count | None = None


def parse(config: dict[str, Any]) -> RateLimit:
    """Read the config strictly, or raise."""
    limit = msgspec.convert(config, RateLimit)
    if limit.max_tx_per_hour is None and limit.max_tx_per_day is None:
        raise InvalidPolicy("give at least one of `maxTxPerHour`, `maxTxPerDay`")
    return limit


def check(limit: RateLimit, subject: Subject, facts: Facts) -> tuple[bool, str]:
    """Say whether one more order fits both windows, and why."""
    if _full(limit.max_tx_per_hour, facts.orders_last_hour):
        return False, _reached(facts.orders_last_hour, "hour", limit.max_tx_per_hour)
    if _full(limit.max_tx_per_day, facts.orders_last_day):
        return False, _reached(facts.orders_last_day, "day", limit.max_tx_per_day)
    return True, "the number of orders is within the limits"


def retry_after(limit: RateLimit, facts: Facts) -> int:
    """Seconds until the earliest moment a full window may have room: the end of its grain, a minute or an hour."""
    seconds = 1
    if _full(limit.max_tx_per_hour, facts.orders_last_hour):
        seconds = 60 - facts.now.second
    if _full(limit.max_tx_per_day, facts.orders_last_day):
        seconds = 3600 - facts.now.minute * 60 - facts.now.second
    return seconds


def tightens(old: RateLimit, new: RateLimit) -> bool:
    """Say whether whatever passes `new` also passes `old`."""
    return _lower(old.max_tx_per_hour, new.max_tx_per_hour) and _lower(old.max_tx_per_day, new.max_tx_per_day)


def _full(most: int | None, count: int) -> bool:
    return most is not None and count >= most


def _reached(count: int, window: str, most: int | None) -> str:
    return f"{count} orders in the last {window} reach the limit of {most} per {window}"


def _lower(old: int | None, new: int | None) -> bool:
    return old is None or (new is not None and new <= old)
