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
    ledger: Mapping[str, tuple[int, ...]],
    facts: Facts,
    charges: Mapping[str, int],
) -> list[Budget]:
    """Every enabled limit over a window, or over all time."""
    found = []
    for rule, limit in limits(rules, subject.family):
        asset = limit.asset
        own = rule.facts_for(facts)
        judged = own.spend.get(asset, _NOTHING)
        before = judged if rule.terms.is_shared else Spend(*ledger.get(asset, (0, 0)))
        charge = max(charges.get(asset, 0), own.floor.get(asset, 0))
        spent, after = before.within(limit.window), judged.within(limit.window) + charge
        found.append(Budget(rule.id, limit.window, asset, str(limit.most), str(spent), str(after)))
    return found


def alerts(rules: Sequence[ParsedRule], family: Family, charges: Mapping[str, int], facts: Facts) -> tuple[Alert, ...]:
    """The shares of limits that counting these charges would cross."""
    found: list[Alert] = []
    for rule, limit in limits(rules, family):
        own = rule.facts_for(facts)
        spend = own.spend.get(limit.asset, _NOTHING)
        spent = spend.within(limit.window)
        before, after = spent + own.floor.get(limit.asset, 0), spent + charges.get(limit.asset, 0)
        found += [
            Alert(limit.window, limit.asset, after, limit.most, percent)
            for percent in limit.alert_percents
            if before * 100 < percent * limit.most <= after * 100
        ]
    # Two limits of one size would say the same thing twice.
    return tuple(dict.fromkeys(found))
