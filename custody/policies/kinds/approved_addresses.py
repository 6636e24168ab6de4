"""`approved-addresses`: who may receive, or who may not. Spec 1/2.4, decisions 3."""

from typing import Any, Literal

import msgspec

from custody.chains.types import Effect, Subject
from custody.policies.addresses import Family, parse_addresses, same
from custody.policies.assets import NATIVES
from custody.policies.moved import gift
from custody.policies.types import Facts

Mode = Literal["whitelist", "blacklist"]


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The config as sent."""

    addresses: list[str]
    mode: Mode = "whitelist"


class ApprovedAddresses(msgspec.Struct, frozen=True):
    """The list per chain family, each address in its one spelling."""

    mode: Mode
    listed: dict[Family, frozenset[str]]


def parse(config: dict[str, Any]) -> ApprovedAddresses:
    """Read the config strictly, or raise."""
    sent = msgspec.convert(config, Config)
    return ApprovedAddresses(sent.mode, parse_addresses(sent.addresses))


def check(rule: ApprovedAddresses, subject: Subject, facts: Facts) -> tuple[bool, str]:
    """Say whether everyone the order pays, empowers or blindly calls is acceptable, and why."""
    listed = rule.listed[subject.family]
    parties = _parties(subject)
    if None in parties:
        return False, "it cannot be told who would receive"
    if rule.mode == "blacklist":
        # A blocked contract stays blocked when it is only called, so the places are compared as well.
        parties += [subject.destination, subject.verifying_contract]
    for party in parties:
        if party is None:
            continue
        is_listed = same(party, subject.family) in listed
        if is_listed and rule.mode == "blacklist":
            return False, f"{party} is a blocked address"
        if not is_listed and rule.mode == "whitelist":
            return False, f"{party} is not an approved address"
    return True, "every recipient is acceptable" if parties else "the order has no recipient"


def tightens(old: ApprovedAddresses, new: ApprovedAddresses) -> bool:
    """Say whether whatever passes `new` also passes `old`."""
    if new.mode != old.mode:
        return False
    narrow, wide = (new, old) if old.mode == "whitelist" else (old, new)
    return all(narrow.listed[family] <= wide.listed[family] for family in narrow.listed)


def _parties(subject: Subject) -> list[str | None]:
    parties: list[str | None] = []
    for effect in subject.effects:
        parties += _of(effect, subject)
    if not parties and subject.kind != "typed_data":
        return [subject.destination]
    return parties


def _of(effect: Effect, subject: Subject) -> list[str | None]:
    if effect.kind == "transfer":
        # A token call carries a native value of 0 to the token contract; its recipient is the one in the call.
        nothing = not effect.amount and not effect.nft and effect.asset in NATIVES
        return [] if nothing else [effect.to]
    if effect.kind == "approval":
        return [effect.spender]
    if effect.kind == "fee":
        return [effect.to] if gift(effect) else []
    if effect.call is not None:
        return [effect.call.contract, subject.destination or subject.verifying_contract]
    if effect.kind == "call" and subject.kind == "typed_data":
        return []
    return [subject.destination or subject.verifying_contract]
