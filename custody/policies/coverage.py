"""The effects of an order that some rule can judge; the others go to a person."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from custody.chains.evm.selectors import PERMIT2
from custody.chains.types import Call, Effect, Subject
from custody.chains.units import USD, Units
from custody.policies.assets import is_native, say_amount
from custody.policies.kind import Calls, Messages
from custody.policies.moved import NO_WORTH, deposit, lacks_price, limitless, names_of, priced_name
from custody.policies.rules import ParsedRule

_TOLD_AT_MOST = 3
# What such a call does beside the calls within, nobody can tell of a contract that no rule names.
WITHIN = "around the calls within"


class Coverage(msgspec.Struct, frozen=True):
    """The sum of what the enabled rules of a set cover."""

    assets: frozenset[str]
    calls: tuple[Calls, ...]
    recipients: bool
    messages: tuple[Messages, ...] = ()
    policy_sets: frozenset[str] = frozenset()

    def names(self, effect: Effect, subject: Subject) -> bool:
        """Say whether some rule names an asset that the effect counts towards."""
        return any(name in self.assets for name in names_of(effect, subject.chain_id))


def coverage(rules: Sequence[ParsedRule]) -> Coverage:
    """Sum up what the enabled rules of a set cover."""
    assets: frozenset[str] = frozenset()
    calls: tuple[Calls, ...] = ()
    recipients = False
    messages: tuple[Messages, ...] = ()
    policy_sets: frozenset[str] = frozenset()
    for rule in rules:
        if not rule.enabled:
            continue
        covers = rule.covers
        if covers.assets:
            assets = assets | covers.assets if assets else covers.assets
        if covers.calls is not None:
            calls += (covers.calls,)
        recipients = recipients or covers.recipients
        if covers.messages is not None:
            messages += (covers.messages,)
        if covers.policy_set is not None:
            policy_sets |= {covers.policy_set}
    return Coverage(assets, calls, recipients, messages, policy_sets)


def without_listed(rules: Sequence[ParsedRule], subject: Subject, now: datetime) -> Subject:
    """A message that an enabled rule lists does nothing that anybody must judge; every other order as it is."""
    message = subject.message
    if message is None:
        return subject
    lists = coverage(rules).messages
    if not lists or not all(listed.lists(message, now) for listed in lists):
        return subject
    return msgspec.structs.replace(subject, effects=())


def gaps(covered: Coverage, subject: Subject, worth: Mapping[str, int] = NO_WORTH) -> list[Effect]:
    """The effects no rule can judge; none when no rule limits spend, addresses or calls: then nobody asked to be asked.

    Where no rule limits spend only what is unread is uncovered: whom the rest pays or empowers, the others can tell.
    A limit in dollars is on everything that moves, so what has no price is uncovered whatever else names it.
    """
    if not (covered.assets or covered.recipients or covered.calls):
        return []
    loose = [effect for effect in subject.effects if not _covers(covered, effect, subject, worth)]
    return [*loose, *(_wrapping(call) for call in subject.calls if _is_loose(covered, call))]


def _is_loose(covered: Coverage, call: Call) -> bool:
    """Say whether a call that says what it does by the calls within is one of a contract that no rule is about."""
    if not call.wraps or not covered.assets or f"evm:{call.chain_id}:{call.contract}" in covered.assets:
        return False
    return not any(listed.permits(call) for listed in covered.calls)


def _wrapping(call: Call) -> Effect:
    return Effect("unread", None, 0, to=call.contract, label=WITHIN, call=call)


def must_ask(covered: Coverage, effect: Effect, subject: Subject) -> bool:
    """Say whether a tenant that lets uncovered effects pass is asked all the same.

    A limit on a token is void if an unlimited approval of that token passes, and so is every rule that an unread effect
    may evade: one that names addresses, one that lists calls, one that limits what those bytes may touch. One in
    dollars is about everything.
    """
    if USD in covered.assets:
        return True
    if effect.kind != "unread":
        return covered.names(effect, subject)
    if covered.recipients or covered.calls or _touches(covered, effect, subject):
        return True
    # Any contract may have an allowance from before the limit, and nobody said that this one is trusted.
    chain = subject.chain_id if effect.call is None else effect.call.chain_id
    tokens = (asset.split(":") for asset in covered.assets)
    return any(place[0] == "evm" and place[-1] != "native" and chain in (None, int(place[1])) for place in tokens)


def describe(effects: Sequence[Effect], units: Units, chain_id: int | None) -> str:
    """The effects as a person reads them."""
    shown = ", ".join(_describe(effect, units, chain_id) for effect in effects[:_TOLD_AT_MOST])
    return f"{shown} and {len(effects) - _TOLD_AT_MOST} more" if len(effects) > _TOLD_AT_MOST else shown


def _covers(covered: Coverage, effect: Effect, subject: Subject, worth: Mapping[str, int]) -> bool:
    if effect.kind == "unread":
        return _lets_pass(covered, effect, subject)
    in_dollars = USD in covered.assets
    if in_dollars and lacks_price(effect, subject, worth):
        return False
    if not covered.assets or (effect.kind == "fee" and not deposit(effect)) or effect.revokes:
        return True
    if limitless(effect):
        return False
    if covered.names(effect, subject) or (in_dollars and priced_name(effect, subject.chain_id) in worth):
        return True
    if not effect.amount and (is_native(effect.asset) or subject.kind == "typed_data"):
        # Zero of a token is not exempt in calldata: the same bytes move or approve NFT number 0 elsewhere.
        return True
    return not is_native(effect.asset) and _bounds_call(covered, effect)


def _lets_pass(covered: Coverage, effect: Effect, subject: Subject) -> bool:
    """Say whether an entry lets unread bytes of its contract pass, and no other rule is about what they may do."""
    if covered.recipients or USD in covered.assets or _touches(covered, effect, subject):
        return False
    if effect.call is not None:
        return any(listed.allows_unread(effect.call) for listed in covered.calls)
    return effect.unknown and any(listed.vouches(subject) for listed in covered.calls)


def _touches(covered: Coverage, effect: Effect, subject: Subject) -> bool:
    """Say whether unread bytes may move or hand over an asset that some rule limits.

    A contract may move what it is; what it may take from us by an allowance counted when the allowance was given. Of
    Permit2, of calls that hold others which cannot be told, of calls and documents that are known to move value, and of
    those that name no contract, nobody can say what they move.
    """
    call = effect.call
    contract = call.contract if call is not None else subject.verifying_contract
    untold = not effect.unknown if call is None else call.garbled
    if contract is None or contract.lower() == PERMIT2 or untold:
        return bool(covered.assets)
    # A document may hide its chain.
    where = f":{contract.lower()}" if call is None else f":{call.chain_id}:{call.contract}"
    return any(asset.endswith(where) for asset in covered.assets)


def _bounds_call(covered: Coverage, effect: Effect) -> bool:
    call = effect.call
    return call is not None and any(listed.bounds(call, effect) for listed in covered.calls)


def _unread(effect: Effect) -> str:
    if effect.call is None:
        return "an undecoded call"
    where = f"of {effect.call.selector} on {effect.call.contract}"
    if effect.size is None or not effect.call.decoded:
        return f"an undecoded call {where}" if not effect.call.decoded else f"what is unread {effect.label} {where}"
    return f"{effect.size} unread bytes {effect.label} {where}"


def _describe(effect: Effect, units: Units, chain_id: int | None) -> str:
    if effect.unknown:
        return "typed data of an unknown kind"
    if effect.kind == "unread":
        return _unread(effect)
    if effect.nft:
        return f"an NFT {effect.kind} of {effect.asset}"
    if limitless(effect):
        return f"an unlimited approval of {effect.asset}"
    if deposit(effect):
        rent = say_amount(effect.amount, effect.asset or "an unknown asset", units, chain_id)
        most = "at most " if effect.label and effect.label.endswith("at most") else ""
        return f"rent of {most}{rent} for a new token account of {effect.to}"
    article = "an" if effect.kind == "approval" else "a"
    return (
        f"{article} {effect.kind} of {say_amount(effect.amount, effect.asset or 'an unknown asset', units, chain_id)}"
    )
