"""`spending-limit`: how much of one asset may move per transaction, day and week. Spec 1/2.4, decisions 3."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from custody.chains.types import Subject
from custody.kit.shapes import DecimalAmount
from custody.policies.assets import NATIVE_OF, parse_asset, parse_optional_amount, told
from custody.policies.moved import moved
from custody.policies.types import Alert, Facts, InvalidPolicy, Spend, Window

Percent = Annotated[int, Meta(ge=1, le=100)]
NOTHING = Spend(day=0, week=0)
_EDGE = "(the hour at the edge of the window counts in full)"


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The config as sent."""

    max_per_transaction: DecimalAmount | None = None
    max_per_tx: DecimalAmount | None = None
    max_per_day: DecimalAmount | None = None
    max_per_week: DecimalAmount | None = None
    asset: str | None = None
    alert_percents: Annotated[tuple[Percent, ...], Meta(max_length=20)] = (80, 100)


class SpendingLimit(msgspec.Struct, frozen=True):
    """The limits in the smallest unit; `asset` None means the native asset of whatever chain family is asked."""

    per_transaction: int | None
    per_day: int | None
    per_week: int | None
    asset: str | None
    alert_percents: tuple[int, ...]


def parse(config: dict[str, Any]) -> SpendingLimit:
    """Read the config strictly, or raise."""
    sent = msgspec.convert(config, Config)
    if sent.max_per_transaction is not None and sent.max_per_tx is not None:
        raise InvalidPolicy("give `maxPerTransaction` or its alias `maxPerTx`, not both")
    single = sent.max_per_tx if sent.max_per_transaction is None else sent.max_per_transaction
    if single is None and sent.max_per_day is None and sent.max_per_week is None:
        raise InvalidPolicy("give at least one of `maxPerTransaction`, `maxPerDay`, `maxPerWeek`")
    return SpendingLimit(
        parse_optional_amount(single, "maxPerTransaction"),
        parse_optional_amount(sent.max_per_day, "maxPerDay"),
        parse_optional_amount(sent.max_per_week, "maxPerWeek"),
        None if sent.asset is None else parse_asset(sent.asset),
        tuple(sorted(set(sent.alert_percents))),
    )


def check(limit: SpendingLimit, subject: Subject, facts: Facts) -> tuple[bool, str]:
    """Say whether the order fits all limits of its asset, and why."""
    asset = limit.asset or NATIVE_OF[subject.family]
    amount = moved(subject).get(asset, 0)
    if not amount:
        return True, f"the order moves no {asset}"
    if limit.per_transaction is not None and amount > limit.per_transaction:
        return False, f"{told(amount, asset)} exceeds the limit of {told(limit.per_transaction, asset)} per transaction"
    counted = max(amount, facts.floor.get(asset, 0))
    spend = facts.spend.get(asset, NOTHING)
    if limit.per_day is not None and spend.day + counted > limit.per_day:
        return False, _exceeded(asset, (counted, spend.day, limit.per_day), ("24 hours", "day"))
    if limit.per_week is not None and spend.week + counted > limit.per_week:
        return False, _exceeded(asset, (counted, spend.week, limit.per_week), ("7 days", "week"))
    return True, f"{told(amount, asset)} is within the limits"


def alerts(limit: SpendingLimit, asset: str, charge: int, facts: Facts) -> list[Alert]:
    """The shares of the daily and weekly limit that counting `charge` of the asset would cross."""
    floor = facts.floor.get(asset, 0)
    spend = facts.spend.get(asset, NOTHING)
    found: list[Alert] = []
    if limit.per_day is not None:
        found += _crossed("day", asset, (spend.day + floor, spend.day + charge, limit.per_day), limit.alert_percents)
    if limit.per_week is not None:
        found += _crossed(
            "week", asset, (spend.week + floor, spend.week + charge, limit.per_week), limit.alert_percents
        )
    return found


def tightens(old: SpendingLimit, new: SpendingLimit) -> bool:
    """Say whether whatever passes `new` also passes `old`, with no alert fewer."""
    return (
        new.asset == old.asset
        and _lower(old.per_transaction, new.per_transaction)
        and _lower(old.per_day, new.per_day)
        and _lower(old.per_week, new.per_week)
        and set(old.alert_percents) <= set(new.alert_percents)
    )


def _crossed(window: Window, asset: str, spent: tuple[int, int, int], percents: tuple[int, ...]) -> list[Alert]:
    before, after, most = spent
    if not percents or after * 100 < percents[0] * most:
        return []
    return [
        Alert(window, asset, after, most, percent)
        for percent in percents
        if before * 100 < percent * most <= after * 100
    ]


def _lower(old: int | None, new: int | None) -> bool:
    return old is None or (new is not None and new <= old)


def _exceeded(asset: str, amounts: tuple[int, int, int], words: tuple[str, str]) -> str:
    now, before, most = amounts
    window, per = words
    return (
        f"{told(now, asset)} now and {told(before, asset)} in the last {window} would exceed the limit of "
        f"{told(most, asset)} per {per} {_EDGE}"
    )
