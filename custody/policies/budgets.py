"""Spend against each rolling limit, before and after an order. Decisions 4, 10.

`before` is the ledger's own figure; `after` is what it will be once the order is signed. They differ by less than the
order where it takes over a nonce slot, which counts once, at its largest.
"""

from collections.abc import Mapping, Sequence

import msgspec

from custody.chains.types import Subject
from custody.policies.assets import NATIVE_OF
from custody.policies.kinds.spending_limit import SpendingLimit
from custody.policies.rules import ParsedRule
from custody.policies.types import Facts, Spend, Window

_NOTHING = Spend(0, 0)


class Budget(msgspec.Struct, frozen=True, rename="camel"):
    """One limit of one rule over one window; amounts are decimal strings in the smallest unit."""

    policy_id: str
    window: Window
    asset: str
    limit: str
    before: str
    after: str


def budgets(
    rules: Sequence[ParsedRule], subject: Subject, ledger: Mapping[str, tuple[int, int]], facts: Facts,
    charges: Mapping[str, int],
) -> list[Budget]:  # fmt: skip
    """Every enabled daily and weekly limit; one without an asset limits the native one of the order's family."""
    found = []
    for rule in rules:
        limit = rule.terms
        if not rule.enabled or not isinstance(limit, SpendingLimit):
            continue
        asset = limit.asset or NATIVE_OF[subject.family]
        before, judged = ledger.get(asset, (0, 0)), facts.spend.get(asset, _NOTHING)
        charge = max(charges.get(asset, 0), facts.floor.get(asset, 0))
        if limit.per_day is not None:
            after = judged.day + charge
            found.append(Budget(rule.id, "day", asset, str(limit.per_day), str(before[0]), str(after)))
        if limit.per_week is not None:
            after = judged.week + charge
            found.append(Budget(rule.id, "week", asset, str(limit.per_week), str(before[1]), str(after)))
    return found
