"""Spend against each rolling limit, before and after an order, and the alerts that it raises.

`before` is the ledger's own figure; `after` is what it will be once the order is signed. They differ by less than the
order where it takes over a nonce slot, which counts once, at its largest.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from custody.chains.types import Subject
from custody.policies.kind import Family, Limit
from custody.policies.rules import ParsedRule
from custody.policies.types import Alert, Facts, Spend, Window

_NOTHING = Spend(0, 0)


class Budget(msgspec.Struct, frozen=True, rename="camel"):
    """One limit of one rule over one window; amounts are decimal strings in the smallest unit."""

    policy_id: str
    window: Window
    asset: str
    limit: str
    before: str
    after: str


def limits(rules: Sequence[ParsedRule], family: Family) -> Iterator[tuple[ParsedRule, Limit]]:
    """Every rolling limit of the enabled rules, as it applies to orders of a chain family."""
    for rule in rules:
        if rule.enabled:
            for limit in rule.terms.limits(family):
                yield rule, limit


def budgets(
    rules: Sequence[ParsedRule],
    subject: Subject,
    ledger: Mapping[str, tuple[int, int]],
    facts: Facts,
    charges: Mapping[str, int],
) -> list[Budget]:
    """Every enabled daily and weekly limit."""
    found = []
    for rule, limit in limits(rules, subject.family):
        asset, day = limit.asset, limit.window == "day"
        before, judged = ledger.get(asset, (0, 0)), facts.spend.get(asset, _NOTHING)
        charge = max(charges.get(asset, 0), facts.floor.get(asset, 0))
        after = (judged.day if day else judged.week) + charge
        found.append(Budget(rule.id, limit.window, asset, str(limit.most), str(before[0 if day else 1]), str(after)))
    return found


def alerts(rules: Sequence[ParsedRule], family: Family, charges: Mapping[str, int], facts: Facts) -> tuple[Alert, ...]:
    """The shares of limits that counting these charges would cross."""
    found: list[Alert] = []
    for _, limit in limits(rules, family):
        spend = facts.spend.get(limit.asset, _NOTHING)
        spent = spend.day if limit.window == "day" else spend.week
        before, after = spent + facts.floor.get(limit.asset, 0), spent + charges.get(limit.asset, 0)
        found += [
            Alert(limit.window, limit.asset, after, limit.most, percent)
            for percent in limit.alert_percents
            if before * 100 < percent * limit.most <= after * 100
        ]
    # Two limits of one size would say the same thing twice.
    return tuple(dict.fromkeys(found))
