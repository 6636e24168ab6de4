"""Which effects of an order some rule can judge; the others go to a person."""

from collections.abc import Sequence

import msgspec

from custody.chains.types import Effect, Subject
from custody.chains.units import Units
from custody.policies.assets import NATIVES, told
from custody.policies.kind import Calls
from custody.policies.moved import deposit, limitless, names_of
from custody.policies.rules import ParsedRule

_TOLD_AT_MOST = 3


class Coverage(msgspec.Struct, frozen=True):
    """What the enabled rules of a set cover together."""

    assets: frozenset[str]
    calls: tuple[Calls, ...]
    recipients: bool

    def names(self, effect: Effect, subject: Subject) -> bool:
        """Say whether some rule names an asset that the effect counts towards."""
        return any(name in self.assets for name in names_of(effect, subject.chain_id))


def coverage(rules: Sequence[ParsedRule]) -> Coverage:
    """What the enabled rules of a set cover."""
    assets: frozenset[str] = frozenset()
    calls: tuple[Calls, ...] = ()
    recipients = False
    for rule in rules:
        if not rule.enabled:
            continue
        covers = rule.covers
        if covers.assets:
            assets = assets | covers.assets if assets else covers.assets
        if covers.calls is not None:
            calls += (covers.calls,)
        recipients = recipients or covers.recipients
    return Coverage(assets, calls, recipients)


def uncovered(covered: Coverage, subject: Subject) -> list[Effect]:
    """The effects no rule can judge; none when no rule limits spend or addresses, for then nobody asked to be asked.

    Rules about addresses alone leave only typed data that cannot be read uncovered: whom the rest pays or empowers,
    they can tell.
    """
    if covered.assets:
        return [effect for effect in subject.effects if not _covers(covered, effect, subject)]
    if covered.recipients and subject.kind == "typed_data":
        return [effect for effect in subject.effects if effect.unknown and not _covers(covered, effect, subject)]
    return []


def described(effects: Sequence[Effect], units: Units, chain_id: int | None) -> str:
    """The effects as a person reads them."""
    shown = ", ".join(_described(effect, units, chain_id) for effect in effects[:_TOLD_AT_MOST])
    return f"{shown} and {len(effects) - _TOLD_AT_MOST} more" if len(effects) > _TOLD_AT_MOST else shown


def _covers(covered: Coverage, effect: Effect, subject: Subject) -> bool:
    if effect.kind == "fee" and not deposit(effect):
        return True
    if limitless(effect):
        return False
    if effect.kind == "unread":
        return _covers_call(covered, effect, subject)
    if covered.names(effect, subject):
        return True
    if not effect.amount and (effect.asset in NATIVES or subject.kind == "typed_data"):
        # Zero of a token is not exempt in calldata: the same bytes move or approve NFT number 0 elsewhere.
        return True
    return effect.asset not in NATIVES and _vouched(covered, effect)


def _covers_call(covered: Coverage, effect: Effect, subject: Subject) -> bool:
    if effect.amount and not covered.names(effect, subject):
        return False
    if effect.unknown:
        return _covers_unknown(covered, subject)
    call = effect.call
    if call is None:
        return False
    return any(listed.permits(call) for listed in covered.calls)


def _covers_unknown(covered: Coverage, subject: Subject) -> bool:
    contract = subject.verifying_contract
    # A limit on a token is void if the token takes typed data that nobody reads; the domain may hide the chain.
    if contract is not None and any(asset.endswith(f":{contract.lower()}") for asset in covered.assets):
        return False
    return any(listed.vouches(contract, subject.chain_id) for listed in covered.calls)


def _vouched(covered: Coverage, effect: Effect) -> bool:
    call = effect.call
    return call is not None and any(listed.bounds(call, effect) for listed in covered.calls)


def _described(effect: Effect, units: Units, chain_id: int | None) -> str:
    if effect.unknown:
        return "typed data of an unknown kind"
    if effect.kind == "unread":
        where = f" of {effect.call.selector} on {effect.call.contract}" if effect.call else ""
        return f"an undecoded call{where}"
    if effect.nft:
        return f"an NFT {effect.kind} of {effect.asset}"
    if limitless(effect):
        return f"an unlimited approval of {effect.asset}"
    if deposit(effect):
        rent = told(effect.amount, effect.asset or "an unknown asset", units, chain_id)
        return f"rent of {rent} for a new token account of {effect.to}"
    article = "an" if effect.kind == "approval" else "a"
    return f"{article} {effect.kind} of {told(effect.amount, effect.asset or 'an unknown asset', units, chain_id)}"
