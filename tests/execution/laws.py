"""Laws that must hold between a verdict and what was then seen to happen.

`Seen` is what an execution says, in the terms of no decoder: who holds less, who holds more, who may now take how much.
Law A: none of it is more than the ledger counted for an asset that a rule names, nor anybody's whom a rule forbids.
Law B: an order that has more in it is judged no more leniently, and one that hides what it has is not signed sooner.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from custody.policies.types import Decision, Facts, Spend, Verdict

RANK: Mapping[Decision, int] = {"sign": 0, "queue": 1, "refuse": 2}
# Power over all that one of our contracts holds.
EVERYTHING = "*"
_NOTHING = Spend(0, 0)
ENDLESS = 2**256


class Power(msgspec.Struct, frozen=True):
    """A power to take from now on; `more` than before, of an asset."""

    who: str
    asset: str
    more: int


class Act(msgspec.Struct, frozen=True):
    """A call that was made in our name."""

    contract: str
    selector: str
    value: int


class Seen(msgspec.Struct, frozen=True):
    """Effects of an order: `lost` by us without fees; who `gained` what; what others `used` of their powers."""

    lost: Mapping[str, int]
    gained: Mapping[tuple[str, str], int]
    powers: Sequence[Power]
    used: Mapping[tuple[str, str], int]
    acts: Sequence[Act]
    fee: int = 0
    # The accounts in which somebody gained, where accounts have addresses of their own.
    where: Mapping[str, frozenset[str]] = {}

    @property
    def nothing(self) -> bool:
        """True if nothing left us and nobody may take more."""
        return not any(amount > 0 for amount in self.lost.values()) and not self.powers


class Family(msgspec.Struct, frozen=True):
    """A chain family's names for its things. `names` gives all names of an asset that a rule may limit."""

    native: str
    names: Mapping[str, tuple[str, ...]]
    chain: Sequence[Any]


type Sent = dict[str, Any]


class _Asked(msgspec.Struct, frozen=True):
    """A signature and all that is known of it."""

    rules: Sequence[Sent]
    lists: Sequence[Sequence[Sent]]
    facts: Facts
    verdict: Verdict
    seen: Seen
    family: Family
    typed: str | None
    trusted: frozenset[str]


def find_breaches(
    sent: Sequence[Sent], facts: Facts, verdict: Verdict, seen: Seen, family: Family, typed: str | None = None
) -> list[str]:
    """Find breaches of law A in a signature; `typed` is the contract of typed data."""
    rules = [rule for rule in sent if rule["enabled"]]
    lists = [rule["config"]["contracts"] for rule in rules if rule["type"] == "contract-allowlist"]
    asked = _Asked(rules, lists, facts, verdict, seen, family, typed, _trusted_contracts(lists, seen.acts, typed))
    return [
        why
        for part in (_sums, _find_uncovered, _people, _find_unlisted, _find_unconstrained, _chain)
        for why in part(asked)
    ]


def milder(before: Verdict, after: Verdict, *, hidden: bool = False) -> bool:
    """Tell whether law B objects to the second verdict, whose order does the same and more.

    Where what it does is hidden as a whole no rule can refuse it, and a person is asked; signed it may not be.
    """
    if hidden:
        return after.decision == "sign" != before.decision
    return RANK[after.decision] < RANK[before.decision]


def _sum_taken(asset: str, asked: _Asked) -> int:
    """Sum what of an asset is gone or may be taken, without what was counted before or trusted in so many words.

    An allowance counted when it was granted, so a contract that is trusted uses what was counted.
    """
    seen, trusted = asked.seen, asked.trusted
    lost = max(0, seen.lost.get(asset, 0)) - sum(seen.used.get((contract, asset), 0) for contract in trusted)
    matters = (asset,) if trusted else (asset, EVERYTHING)
    return max(0, lost) + sum(one.more for one in seen.powers if one.asset in matters)


def _limits(asked: _Asked) -> list[tuple[str, Sent]]:
    """The limits and thresholds, each with the name of its asset."""
    return [
        (rule["config"].get("asset") or asked.family.native, rule["config"])
        for rule in asked.rules
        if rule["type"] in ("spending-limit", "auto-approve-threshold")
    ]


def _sums(asked: _Asked) -> Iterator[str]:
    """Nothing that a rule names left or may leave beyond what was counted, and what the rule says."""
    for name, config in _limits(asked):
        asset = next((one for one, names in asked.family.names.items() if name in names), name)
        taken = _sum_taken(asset, asked)
        if not taken:
            continue
        counted = asked.verdict.charges.get(name, 0)
        if taken > counted:
            yield f"{taken} of {name} left or may leave, and {counted} was counted"
        spent = asked.facts.spend.get(name, _NOTHING)
        before = {"maxPerTransaction": 0, "maxPerDay": spent.day, "maxPerWeek": spent.week, "threshold": 0}
        for field, earlier in before.items():
            if field in config and taken + earlier > int(config[field]):
                yield f"{taken} of {name} after {earlier} is above the {field} of {config[field]}"


def _find_uncovered(asked: _Asked) -> Iterator[str]:
    """Find what no rule could judge and nobody was asked about, though a limit exists: unless the tenant lets it."""
    named = {name for name, _ in _limits(asked)}
    if not named or asked.facts.uncovered == "allow":
        return
    for asset in {*asked.seen.lost, *(one.asset for one in asked.seen.powers)}:
        # Power over all that a contract holds is that contract's own to give.
        itself = any(asset == EVERYTHING or asset.endswith(contract) for contract in asked.trusted)
        if itself or not named.isdisjoint(asked.family.names.get(asset, (asset,))):
            continue
        bounds = [
            int(kept["maxAmount"])
            for act in asked.seen.acts
            for contracts in asked.lists
            for kept in _constraints(contracts, act.contract, [act.selector])
            if "maxAmount" in kept
        ]
        if (taken := _sum_taken(asset, asked)) > sum(bounds):
            yield f"{taken} of {asset}, which no rule names, left or may leave unasked"


def _people(asked: _Asked) -> Iterator[str]:
    seen = asked.seen
    # Where we lose nothing, as by a token that mints for anybody, nobody gains anything that was ours.
    gained = seen.gained.items() if any(amount > 0 for amount in seen.lost.values()) else ()
    parties = {who for (who, _), amount in gained if amount > 0} | {one.who for one in seen.powers}
    for rule in asked.rules:
        if rule["type"] != "approved-addresses":
            continue
        listed, blocks = set(rule["config"]["addresses"]), rule["config"]["mode"] == "blacklist"
        for who in parties:
            places = seen.where.get(who, frozenset((who,)))
            # An account may be approved itself; it is blocked with its owner, or itself.
            is_listed = who in listed or (not listed.isdisjoint(places) if blocks else places <= listed)
            if is_listed == blocks:
                yield f"{who} got something, and is {'blocked' if blocks else 'not approved'}"


def _find_unlisted(asked: _Asked) -> Iterator[str]:
    for contracts in asked.lists:
        listed = {(entry["address"], selector) for entry in contracts for selector in entry["selectors"]}
        for act in asked.seen.acts:
            if act.selector != "0x" and (act.contract, act.selector) not in listed:
                yield f"{act.selector} of {act.contract} was called in our name, and is not listed"


def _constraints(contracts: Sequence[Sent], contract: str, selectors: Sequence[str]) -> list[Sent]:
    """List a list's constraints on some calls of a contract; nothing of a call that it does not list."""
    return [
        entry["constraints"].get(selector, {})
        for selector in selectors
        for entry in contracts
        if entry["address"] == contract and selector in entry["selectors"]
    ]


def _find_unconstrained(asked: _Asked) -> Iterator[str]:
    """Find breaches of constraints: who got tokens of a contract, and how many, where its every call is constrained."""
    seen = asked.seen
    places = {act.contract for act in seen.acts} | ({asked.typed} if asked.typed else set())
    for contracts in asked.lists:
        for contract in places - asked.trusted:
            acts = [act for act in seen.acts if act.contract == contract]
            any_of = {
                selector for entry in contracts if entry["address"] == contract for selector in entry["selectors"]
            }
            kept = _constraints(contracts, contract, [act.selector for act in acts] or sorted(any_of))
            if not kept:
                continue
            got = {who for (who, asset), more in seen.gained.items() if more > 0 and asset.endswith(contract)}
            yield from _find_strangers(
                contract, kept, got, {one.who for one in seen.powers if one.asset.endswith(contract)}
            )
            most = [one.get("maxAmount") for one in kept]
            taken = max((_sum_taken(asset, asked) for asset in seen.lost if asset.endswith(contract)), default=0)
            if acts and None not in most and taken > sum(map(int, most)):
                yield f"{taken} of {contract} left or may leave, above the maxAmounts of {most}"
            cap = kept[0].get("maxNativeValueWei")
            if acts and acts[0] is seen.acts[0] and cap is not None and acts[0].value > int(cap):
                yield f"{acts[0].value} wei went along, above the {cap} that an entry allows"


def _find_strangers(contract: str, kept: Sequence[Sent], got: set[str], may: set[str]) -> list[str]:
    found = []
    for allowed, blocked, who in (
        ("recipientAllowlist", "recipientBlocklist", got),
        ("spenderAllowlist", "spenderBlocklist", may),
    ):
        lists = [one.get(allowed) for one in kept]
        if None not in lists and (beyond := who - {each for one in lists for each in one}):
            found.append(f"{beyond} got tokens of {contract} or power over them, and {allowed} is {lists}")
        lists = [one.get(blocked) for one in kept]
        if None not in lists and (hit := who & set.intersection(*map(set, lists))):
            found.append(f"{hit} got tokens of {contract} or power over them, and {blocked} is {lists}")
    return found


def _trusted_contracts(lists: Sequence[Sequence[Sent]], acts: Sequence[Act], typed: str | None) -> frozenset[str]:
    """The contracts of which an entry that was used lets pass what nobody can read."""
    return frozenset(
        entry["address"]
        for contracts in lists
        for entry in contracts
        if entry.get("unread") == "allow"
        and (
            typed == entry["address"]
            or any(act.contract == entry["address"] and act.selector in entry["selectors"] for act in acts)
        )
    )


def _chain(asked: _Asked) -> Iterator[str]:
    for rule in asked.rules:
        if rule["type"] == "allowed-chains" and set(asked.family.chain).isdisjoint(rule["config"]["chains"]):
            yield f"chain {asked.family.chain[0]} is not among {rule['config']['chains']}"
