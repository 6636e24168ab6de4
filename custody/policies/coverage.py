"""Which effects of an order some rule can judge; the others go to a person. Decisions 3."""

from collections.abc import Sequence

import msgspec

from custody.chains.types import Effect, Subject
from custody.policies.assets import NATIVES, told
from custody.policies.kinds.contract_allowlist import permits
from custody.policies.kinds.contract_entries import ContractAllowlist
from custody.policies.moved import gift, limitless
from custody.policies.rules import ParsedRule

_TOLD_AT_MOST = 3


class Coverage(msgspec.Struct, frozen=True):
    """The assets that enabled limits and thresholds name, and the enabled allowlists."""

    assets: frozenset[str]
    allowlists: tuple[ContractAllowlist, ...]


def coverage(rules: Sequence[ParsedRule]) -> Coverage:
    """What the enabled rules of a set cover."""
    assets: frozenset[str] = frozenset()
    allowlists: tuple[ContractAllowlist, ...] = ()
    for rule in rules:
        if not rule.enabled:
            continue
        if rule.covers:
            assets = assets | rule.covers if assets else rule.covers
        elif isinstance(rule.terms, ContractAllowlist):
            allowlists += (rule.terms,)
    return Coverage(assets, allowlists)


def uncovered(covered: Coverage, subject: Subject) -> list[Effect]:
    """The effects no rule can judge; none when no limit or threshold is enabled, for then nobody asked to be asked."""
    if not covered.assets:
        return []
    return [effect for effect in subject.effects if not _covers(covered, effect, subject)]


def described(effects: Sequence[Effect]) -> str:
    """The effects as a person reads them."""
    shown = ", ".join(_described(effect) for effect in effects[:_TOLD_AT_MOST])
    return f"{shown} and {len(effects) - _TOLD_AT_MOST} more" if len(effects) > _TOLD_AT_MOST else shown


def _covers(covered: Coverage, effect: Effect, subject: Subject) -> bool:
    if effect.kind == "fee" and not gift(effect):
        return True
    if limitless(effect):
        return False
    if effect.kind in ("call", "opaque"):
        return _covers_call(covered, effect, subject)
    if effect.asset in covered.assets:
        return True
    if not effect.amount and (effect.asset in NATIVES or subject.kind == "typed_data"):
        # Zero of a token is not exempt in calldata: the same bytes move or approve NFT number 0 elsewhere.
        return True
    return effect.asset not in NATIVES and _vouched(covered, effect)


def _covers_call(covered: Coverage, effect: Effect, subject: Subject) -> bool:
    if effect.amount and effect.asset not in covered.assets:
        return False
    call = effect.call
    if call is None:
        return effect.kind == "call" and subject.kind == "typed_data"
    return any(True for allowlist in covered.allowlists for _ in permits(allowlist, call))


def _vouched(covered: Coverage, effect: Effect) -> bool:
    return effect.call is not None and any(
        constraint.max_amount is not None and effect.amount <= constraint.max_amount
        for allowlist in covered.allowlists
        for constraint in permits(allowlist, effect.call)
    )


def _described(effect: Effect) -> str:
    if effect.kind in ("call", "opaque"):
        where = f" of {effect.call.selector} on {effect.call.contract}" if effect.call else ""
        return f"an undecoded call{where}"
    if effect.nft:
        return f"an NFT {effect.kind} of {effect.asset}"
    if limitless(effect):
        return f"an unlimited approval of {effect.asset}"
    if gift(effect):
        return f"a fee of {told(effect.amount, effect.asset or 'an unknown asset')} paid for {effect.to}"
    article = "an" if effect.kind == "approval" else "a"
    return f"{article} {effect.kind} of {told(effect.amount, effect.asset or 'an unknown asset')}"
