"""Sets of rules as tenants write them, drawn near to an order, so that the two meet."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from custody.policies.kinds import PolicyRule
from custody.policies.kinds.contract_entries import EntryConfig
from custody.policies.rules import ParsedRule, parse
from tests.execution.draws import Draws

# Where an entry can say that what is not read of its calls may pass.
UNREAD = "unread" in EntryConfig.__struct_fields__
type Sent = dict[str, Any]


def read(sent: Sequence[Sent]) -> tuple[ParsedRule, ...]:
    """The rules as they are judged."""
    numbers: Iterator[int] = iter(range(1_000))
    return parse(msgspec.convert(sent, list[PolicyRule]), lambda: f"rule-{next(numbers)}")


class Near(msgspec.Struct, frozen=True):
    """Material that rules are drawn from: assets, people, and calls that the order makes or might."""

    assets: Sequence[str]
    people: Sequence[str]
    calls: Sequence[tuple[str, str]]
    chains: Sequence[Any]
    amounts: Sequence[int] = ()


def draw_rules(draws: Draws, near: Near) -> list[Sent]:
    """One to four rules."""
    kinds = [draws.one((_limit, _limit, _threshold, _addresses, _addresses, _calls, _calls))]
    kinds += [draws.one((_limit, _threshold, _addresses, _calls, _calls, _chains)) for _ in range(draws.below(3))]
    if not near.calls:
        kinds = [kind for kind in kinds if kind is not _calls] or [_limit]
    rules = [kind(draws, near) for kind in kinds]
    return [rule | {"enabled": True} for rule in rules]


def _limit(draws: Draws, near: Near) -> Sent:
    names = draws.some(("maxPerTransaction", "maxPerDay", "maxPerWeek"), 2) or ["maxPerDay"]
    config: Sent = {name: str(draws.one((0, 4, 10, 60, 60, 200, 200, *near.amounts))) for name in names}
    asset = draws.one((*near.assets, None))
    return {"type": "spending-limit", "config": config if asset is None else config | {"asset": asset}}


def _threshold(draws: Draws, near: Near) -> Sent:
    config: Sent = {"threshold": str(draws.one((0, 4, 10, 60, 60, 200, *near.amounts)))}
    asset = draws.one((*near.assets, None))
    return {"type": "auto-approve-threshold", "config": config if asset is None else config | {"asset": asset}}


def _addresses(draws: Draws, near: Near) -> Sent:
    mode, most = draws.one((("whitelist", 9), ("blacklist", 4), ("blacklist", 4)))
    return {"type": "approved-addresses", "config": {"mode": mode, "addresses": draws.some(near.people, most)}}


def _chains(draws: Draws, near: Near) -> Sent:
    return {"type": "allowed-chains", "config": {"chains": [draws.one(near.chains)]}}


def _calls(draws: Draws, near: Near) -> Sent:
    entries: dict[str, Sent] = {}
    for contract, selector in near.calls:
        if not draws.chance(85):
            continue
        entry = entries.setdefault(contract, {"address": contract, "selectors": [], "constraints": {}})
        if selector in entry["selectors"]:
            continue
        entry["selectors"].append(selector)
        if draws.chance(45):
            entry["constraints"][selector] = _constraint(draws, near)
    if UNREAD:
        for entry in entries.values():
            if draws.chance(25):
                entry["unread"] = "allow"
    return {"type": "contract-allowlist", "config": {"contracts": list(entries.values())}}


# What an entry may say of a call, and how many people each list names at most; those without are amounts.
_FIELDS = (
    ("maxAmount", None),
    ("maxAmount", None),
    ("maxNativeValueWei", None),
    ("recipientAllowlist", 7),
    ("recipientBlocklist", 3),
    ("spenderAllowlist", 7),
    ("spenderBlocklist", 3),
)


def _constraint(draws: Draws, near: Near) -> Sent:
    return {
        field: str(draws.one((0, 5, 60, 200))) if most is None else draws.some(near.people, most)
        for field, most in draws.some(_FIELDS, 2)
    }
