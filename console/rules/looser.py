"""Differences by which a changed set of rules may let pass more than the set before it, in words. Pure.

Careful: what is not surely as strict is named, so a clever rewrite is named too. Of an agent without rules it takes
that everything was signed. Nothing here decides anything; the service judges by itself where a set may only be
tightened.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from console.rules.rule_limits import amounts_of
from console.rules.rule_places import chain_shown
from console.rules.rule_terms import Names, show
from console.rules.rules_in_words import COVERING, KINDS
from words.shapes import PolicyRule
from words.texts.amounts import whole
from words.texts.moments import clock, moment
from words.texts.plain import clip

_NAME_CHARACTERS: Final = 64
_SHOWN: Final = 10
_HOURS: Final = 24
_DAYS: Final = 7
_AMOUNTS: Final[Mapping[str, str]] = {
    "maxPerTransaction": "in one transaction",
    "maxPerDay": "in any 24 hours",
    "maxPerWeek": "in any 7 days",
    "maxTotal": "in its whole life",
    "maxRentPerDay": "of rent in any 24 hours",
    "threshold": "without a person",
}
_COUNTS: Final[Mapping[str, str]] = {"maxTxPerHour": "orders in any hour", "maxTxPerDay": "orders in any day"}
_COUNTED: Final[Mapping[str, str]] = {"refused": "of refused orders", "failed": "of failed orders"}
# Rules that cover what they list, whatever limits there are.
_LISTING: Final = frozenset({"contract-allowlist", "message-allowlist", "policy-set"})
# Where one of these is, a person is asked for what cannot be read of an order, whatever is limited.
_ASKING: Final = frozenset({"approved-addresses", "contract-allowlist"})
_UNCOMPARED: Final = "changed in a way that is not compared here: it may let more pass"


def looser(now: Sequence[PolicyRule], then: Sequence[PolicyRule], names: Names | None = None) -> list[str]:
    """Name what may pass under the new set and did not under the old one; empty where it only tightens."""
    names = names or Names()
    found: list[str] = []
    for rule in now:
        if not rule.enabled:
            found += _of_disabled(rule, then, names)
        elif not any(_is_as_strict(rule, other, names) for other in then):
            found += [f"{_title(rule.type)}: {why}." for why in _why(rule, then, names)]
    return [*found, *_newly_covered(now, then)]


def is_voted_on(now: Sequence[PolicyRule]) -> bool:
    """Tell whether loosening a set needs votes."""
    return any(rule.enabled and rule.type == "approval-quorum" for rule in now)


def _of_disabled(rule: PolicyRule, then: Sequence[PolicyRule], names: Names) -> list[str]:
    """Say what becomes of a disabled rule: a signer that names it is confined by it."""
    alike = [other for other in then if (other.id, other.type) == (rule.id, rule.type)]
    if alike and not any(_differences(rule, alike[0], names)):
        return []
    what = "changes" if alike else "goes"
    return [f"{_title(rule.type)}: a disabled rule {what}, and signers that name it are confined by it."]


def _is_as_strict(rule: PolicyRule, other: PolicyRule, names: Names) -> bool:
    return other.enabled and other.type == rule.type and not any(_differences(rule, other, names))


def _why(rule: PolicyRule, then: Sequence[PolicyRule], names: Names) -> list[str]:
    """Say what became of a rule: of the one with its id, else of the first of its type."""
    alike = [other for other in then if other.type == rule.type]
    other = next((one for one in alike if one.id is not None and one.id == rule.id), alike[0] if alike else None)
    if other is None:
        return ["removed"]
    return [*_differences(rule, other, names)] if other.enabled else ["disabled"]


def _differences(old: PolicyRule, new: PolicyRule, names: Names) -> Iterator[str]:
    """Say where the new rule is not surely as strict as the old one of its type."""
    was, becomes = dict(old.config), dict(new.config)
    yield from _end(was.pop("until", None), becomes.pop("until", None))
    compare = _COMPARED.get(old.type)
    if msgspec.to_builtins(was) == msgspec.to_builtins(becomes):
        return
    try:
        yield from compare(was, becomes, names) if compare else [_UNCOMPARED]
    except (TypeError, ValueError, AttributeError, KeyError):
        # Whatever stands there is none of the forms that are known.
        yield _UNCOMPARED


def _end(was: Any, becomes: Any) -> Iterator[str]:
    if was is None or was == becomes:
        return
    ends, ended = moment(becomes if isinstance(becomes, str) else None), moment(was if isinstance(was, str) else None)
    if ends is None or ended is None or ends > ended:
        yield f"ends later: {clock(ends) if ends else 'never'}, was {clock(ended) if ended else show(was)}"


def _begin(was: Any, becomes: Any) -> Iterator[str]:
    if was is None or was == becomes:
        return
    begins, began = moment(becomes if isinstance(becomes, str) else None), moment(was if isinstance(was, str) else None)
    if begins is None or began is None or begins < began:
        yield f"begins earlier: {clock(begins) if begins else 'at once'}, was {clock(began) if began else show(was)}"


def _amounts(was: dict[str, Any], becomes: dict[str, Any], names: Names) -> Iterator[str]:
    asset = was.pop("asset", None) or ""
    if (becomes.pop("asset", None) or "") != asset:
        yield "counts another asset"
        return
    for found in (was, becomes):
        # Two names of one limit.
        found.setdefault("maxPerTransaction", found.pop("maxPerTx", None))
    one, other = _of_each(was, _AMOUNTS), _of_each(becomes, _AMOUNTS)
    for name, most in one.items():
        least = whole(other.get(name))
        if least is None or least > (whole(most) or 0):
            what = amounts_of(other[name], asset, names)[0] if name in other else "any amount"
            yield f"{what} {_AMOUNTS[name]}, was {amounts_of(most, asset, names)[0]}"
    yield from _rest(was, becomes)


def _counts(was: dict[str, Any], becomes: dict[str, Any], _: Names) -> Iterator[str]:
    one, other = _of_each(was, _COUNTS), _of_each(becomes, _COUNTS)
    for name, most in one.items():
        if name not in other or other[name] > most:
            what = f"{other[name]:,}" if name in other else "any number of"
            yield f"{what} {_COUNTS[name]}, was {most:,}"
    yield from _rest(was, becomes)


def _delays(was: dict[str, Any], becomes: dict[str, Any], names: Names) -> Iterator[str]:
    one, other = was.pop("minutes"), becomes.pop("minutes")
    if other < one:
        yield f"waits for {other:,} minutes, was {one:,}"
    least, most = was.pop("above", None), becomes.pop("above", None)
    asset, counted = was.pop("asset", None) or "", becomes.pop("asset", None) or ""
    if most is not None and least is not None and asset != counted:
        yield "counts another asset"
    elif most is not None and (least is None or (whole(most) or 0) > (whole(least) or 0)):
        said = "every order waited" if least is None else f"was {amounts_of(least, asset, names)[0]}"
        yield f"up to {amounts_of(most, counted, names)[0]} it need not wait, {said}"
    yield from _rest(was, becomes)


def _breakers(was: dict[str, Any], becomes: dict[str, Any], _: Names) -> Iterator[str]:
    one, other = was.pop("minutes"), becomes.pop("minutes")
    if other < one:
        yield f"counts {other:,} minutes, was {one:,}"
    for name, most in _of_each(was, _COUNTED).items():
        more = becomes.pop(name, None)
        if more is None or more > most:
            yield f"{'no number' if more is None else f'{more:,}'} {_COUNTED[name]} freezes the agent, was {most:,}"
    # One more count freezes sooner.
    _of_each(becomes, _COUNTED)
    yield from _rest(was, becomes)


def _checks(was: dict[str, Any], becomes: dict[str, Any], _: Names) -> Iterator[str]:
    one, other = was.pop("url"), becomes.pop("url")
    if other != one:
        yield f"asks {clip(other, 2 * _NAME_CHARACTERS)}, was {clip(one, 2 * _NAME_CHARACTERS)}"
    for key in sorted({*becomes.pop("publicKeys")} - {*was.pop("publicKeys")}):
        yield f"believes another key: {clip(key, _NAME_CHARACTERS)}"
    if was.pop("onFailure", "ask") == "refuse" and becomes.pop("onFailure", "ask") != "refuse":
        yield "an order without an answer waits for a person, was refused"
    becomes.pop("onFailure", None)
    # How long is waited loosens nothing.
    was.pop("timeoutSeconds", None)
    becomes.pop("timeoutSeconds", None)
    yield from _rest(was, becomes)


def _addresses(was: dict[str, Any], becomes: dict[str, Any], names: Names) -> Iterator[str]:
    mode = was.pop("mode", "whitelist")
    if becomes.pop("mode", "whitelist") != mode:
        yield "turns a list of approved addresses into one of blocked ones, or the other way round"
        return
    one, other = _by_address(was.pop("addresses")), _by_address(becomes.pop("addresses"))
    more = other.items() - one.items() if mode == "whitelist" else one.items() - other.items()
    for _, address in sorted(more)[:_SHOWN]:
        yield f"{'approves' if mode == 'whitelist' else 'blocks no longer'} {names.address(address)}"
    if len(more) > _SHOWN:
        yield f"and {len(more) - _SHOWN:,} more addresses"
    yield from _rest(was, becomes)


def _recipients(was: dict[str, Any], becomes: dict[str, Any], names: Names) -> Iterator[str]:
    one, other = (_by_address(found.pop("known", None) or []) for found in (was, becomes))
    more = sorted(other.items() - one.items())
    yield from (f"no person is asked about {names.address(address)}" for _, address in more[:_SHOWN])
    if len(more) > _SHOWN:
        yield f"nor about {len(more) - _SHOWN:,} more addresses"
    yield from _rest(was, becomes)


def _chains(was: dict[str, Any], becomes: dict[str, Any], _: Names) -> Iterator[str]:
    one, other = (list(map(str, found.pop("chains"))) for found in (was, becomes))
    yield from (f"also on {chain_shown(chain)}" for chain in other if chain not in one)
    yield from _rest(was, becomes)


def _times(was: dict[str, Any], becomes: dict[str, Any], _: Names) -> Iterator[str]:
    if was.pop("timezone", "UTC") != becomes.pop("timezone", "UTC"):
        yield "on the clocks of another zone"
    hours, days = _hours(was), _days(was)
    if not _hours(becomes) <= hours:
        yield "more hours"
    if not _days(becomes) <= days:
        yield "more days"
    yield from _begin(was.pop("notBefore", None), becomes.pop("notBefore", None))
    yield from _end(was.pop("notAfter", None), becomes.pop("notAfter", None))
    yield from _rest(was, becomes)


def _days(found: dict[str, Any]) -> set[int]:
    return set(found.pop("allowedDays", None) or range(_DAYS))


def _hours(found: dict[str, Any]) -> set[int]:
    spans = found.pop("allowedHours", None) or [{"start": 0, "end": _HOURS}]
    hours: set[int] = set()
    for span in spans:
        start, end = span["start"], span["end"]
        hours |= set(range(start, end)) if start < end else {*range(start, _HOURS), *range(end)}
    return hours


def _rest(was: dict[str, Any], becomes: dict[str, Any]) -> Iterator[str]:
    """Name fields that are not compared one by one, such as alerts and scopes."""
    yield from (
        f"{clip(name, _NAME_CHARACTERS)} is {show(becomes.get(name))}, was {show(was.get(name))}"
        for name in sorted({*was, *becomes})
        if was.get(name) != becomes.get(name)
    )


def _of_each(found: dict[str, Any], known: Mapping[str, str]) -> dict[str, Any]:
    return {name: value for name in known if (value := found.pop(name, None)) is not None}


def _by_address(addresses: list[str]) -> dict[str, str]:
    return {(one.lower() if one[:2].lower() == "0x" else one): one for one in addresses}


def _newly_covered(now: Sequence[PolicyRule], then: Sequence[PolicyRule]) -> list[str]:
    """Name what a person sees now because no rule covers it, and need no longer see."""
    before, after = _covering(now), _covering(then)
    # Where nothing covers anything no person is asked for what is not covered; votes are for that too.
    is_asked = bool(before) or is_voted_on(now)
    native = "" in before
    found = [
        f"A first limit or threshold for {clip(asset, 2 * _NAME_CHARACTERS) or 'native coins'}: up to it no person is "
        "asked any more."
        for asset in sorted(after - before)
        if is_asked and not (native and (asset == "bitcoin" or asset.endswith(":native")))
    ]
    known = [(rule.type, msgspec.to_builtins(rule.config)) for rule in now if rule.enabled]
    is_asked = is_asked or any(rule.enabled and rule.type in _ASKING for rule in now)
    listed = [rule for rule in then if is_asked and rule.enabled and rule.type in _LISTING]
    return found + [
        f"{_title(rule.type)}: what it lists is covered, so no person need be asked for it."
        for rule in listed
        if (rule.type, msgspec.to_builtins(rule.config)) not in known
    ]


def _covering(rules: Sequence[PolicyRule]) -> set[str]:
    return {str(rule.config.get("asset") or "") for rule in rules if rule.enabled and rule.type in COVERING}


def _title(kind: str) -> str:
    return KINDS[kind][0] if kind in KINDS else clip(kind, _NAME_CHARACTERS)


_COMPARED: Final = {
    "spending-limit": _amounts,
    "auto-approve-threshold": _amounts,
    "rate-limit": _counts,
    "approved-addresses": _addresses,
    "allowed-chains": _chains,
    "new-recipient": _recipients,
    "delay": _delays,
    "circuit-breaker": _breakers,
    "external-check": _checks,
    "time-window": _times,
}
