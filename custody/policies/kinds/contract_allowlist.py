"""`contract-allowlist`: which contract calls may be made, to whom and how much. Decisions 3.

Calldata, and typed data, for anything not listed is refused. A constraint on something that was not decoded fails:
what cannot be read cannot be vouched for. Several entries may name one contract; one that permits is enough.
"""

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from custody.chains.evm.address import parse_address
from custody.chains.types import EVM_NATIVE, Call, Effect, Subject
from custody.kit.shapes import ChainId, DecimalAmount
from custody.policies.assets import parse_optional_amount
from custody.policies.moved import limitless
from custody.policies.types import Facts, InvalidPolicy

Selector = Annotated[str, Meta(min_length=8, max_length=10, pattern=r"^(0x)?[0-9a-fA-F]{8}\Z")]


class ConstraintConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What a listed call may do, as sent."""

    recipient_allowlist: list[str] | None = None
    recipient_blocklist: list[str] | None = None
    spender_allowlist: list[str] | None = None
    spender_blocklist: list[str] | None = None
    max_amount: DecimalAmount | None = None
    max_native_value_wei: DecimalAmount | None = None


class EntryConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """One listed contract, as sent."""

    address: str
    selectors: list[Selector]
    chain_id: ChainId | None = None
    constraints: dict[Selector, ConstraintConfig] = {}


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The config as sent."""

    contracts: list[EntryConfig]


class Constraint(msgspec.Struct, frozen=True):
    """What a listed call may do; None does not restrict, an empty allowlist permits nobody."""

    recipients: frozenset[str] | None = None
    no_recipients: frozenset[str] | None = None
    spenders: frozenset[str] | None = None
    no_spenders: frozenset[str] | None = None
    max_amount: int | None = None
    max_native: int | None = None


class Entry(msgspec.Struct, frozen=True):
    """One listed contract: its selectors, each with its constraint; on one chain, or on all of them."""

    address: str
    chain_id: int | None
    selectors: dict[str, Constraint]


class ContractAllowlist(msgspec.Struct, frozen=True):
    """The entries by contract address."""

    entries: dict[str, tuple[Entry, ...]]


UNCONSTRAINED = Constraint()


def parse(config: dict[str, Any]) -> ContractAllowlist:
    """Read the config strictly, or raise."""
    entries: dict[str, tuple[Entry, ...]] = {}
    for sent in msgspec.convert(config, Config).contracts:
        entry = _entry(sent)
        others = entries.get(entry.address, ())
        if any(
            other.chain_id == entry.chain_id and entry.selectors.keys() & other.selectors.keys() for other in others
        ):
            raise InvalidPolicy(f"`contracts` lists {entry.address} twice with the same selector; keep one entry")
        entries[entry.address] = (*others, entry)
    return ContractAllowlist(entries)


def check(rule: ContractAllowlist, subject: Subject, facts: Facts) -> tuple[bool, str]:
    """Say whether every call, or the typed data, is listed and keeps its constraints, and why."""
    if subject.kind == "typed_data":
        return _check_typed_data(rule, subject)
    calls = list(subject.calls)
    for effect in subject.effects:
        if effect.call is not None and effect.call not in calls:
            calls.append(effect.call)
        if effect.call is None and effect.kind in ("call", "opaque"):
            return False, "the order does something that names no contract call"
    for call in calls:
        if not any(True for _ in permits(rule, call)):
            return False, _refused(rule, call)
    return (True, "every contract call is listed") if calls else _check_plain(rule, subject)


def permits(rule: ContractAllowlist, call: Call) -> Iterator[Constraint]:
    """The constraints under which the rule lets a call through; none when it does not."""
    for entry in _entries(rule, call.contract, call.chain_id):
        constraint = entry.selectors.get(call.selector)
        if constraint is not None and _kept(constraint, call):
            yield constraint


def entries_of(rule: ContractAllowlist) -> Iterator[Entry]:
    """Every entry."""
    for entries in rule.entries.values():
        yield from entries


def tightens(old: ContractAllowlist, new: ContractAllowlist) -> bool:
    """Say whether whatever passes `new` also passes `old`, and nothing more is vouched for."""
    contained = all(any(contains(wide, entry) for wide in entries_of(old)) for entry in entries_of(new))
    return contained and all(any(_caps(entry, cap) for entry in entries_of(new)) for cap in entries_of(old))


def contains(wide: Entry, narrow: Entry) -> bool:
    """Say whether `wide` permits all that `narrow` does, and covers all that it covers."""
    if narrow.address != wide.address or wide.chain_id not in (None, narrow.chain_id):
        return False
    # Typed data must keep every constraint of an entry, so dropping a constrained selector would free it.
    kept = all(name in narrow.selectors for name, constraint in wide.selectors.items() if constraint != UNCONSTRAINED)
    return kept and all(
        name in wide.selectors and _stricter(wide.selectors[name], constraint)
        for name, constraint in narrow.selectors.items()
    )


def _entries(rule: ContractAllowlist, contract: str, chain_id: int | None) -> list[Entry]:
    return [entry for entry in rule.entries.get(contract, ()) if entry.chain_id in (None, chain_id)]


def _kept(constraint: Constraint, call: Call) -> bool:
    if constraint is UNCONSTRAINED:
        return True
    return (
        _named(call.recipient, constraint.recipients, constraint.no_recipients)
        and _named(call.spender, constraint.spenders, constraint.no_spenders)
        and (constraint.max_amount is None or (call.amount is not None and call.amount <= constraint.max_amount))
        and (constraint.max_native is None or call.native_value <= constraint.max_native)
    )


def _named(address: str | None, allowed: frozenset[str] | None, blocked: frozenset[str] | None) -> bool:
    if allowed is None and blocked is None:
        return True
    return (
        address is not None and (allowed is None or address in allowed) and (blocked is None or address not in blocked)
    )


def _check_typed_data(rule: ContractAllowlist, subject: Subject) -> tuple[bool, str]:
    contract = subject.verifying_contract
    if contract is None:
        return False, "the typed data names no verifying contract"
    entries = _entries(rule, contract.lower(), subject.chain_id)
    if not entries:
        return False, f"the verifying contract {contract} is not listed"
    for effect in subject.effects:
        if effect.kind == "call":
            continue
        # A permit or an authorised transfer does what a call would do, so it keeps what the entry demands of calls.
        if not any(
            all(_kept(one, _as_call(effect, contract)) for one in entry.selectors.values()) for entry in entries
        ):
            return False, f"what the typed data moves or allows is outside the constraints for {contract}"
    return True, f"the verifying contract {contract} is listed"


def _as_call(effect: Effect, contract: str) -> Call:
    amount = None if effect.kind == "opaque" or limitless(effect) else effect.amount
    return Call(0, contract, "", 0, effect.to and effect.to.lower(), effect.spender and effect.spender.lower(), amount)


def _check_plain(rule: ContractAllowlist, subject: Subject) -> tuple[bool, str]:
    """A payment without calldata is no call, but a contract's cap on native value holds for it too."""
    for effect in subject.effects:
        if effect.kind != "transfer" or effect.asset != EVM_NATIVE or effect.to is None:
            continue
        for entry in _entries(rule, effect.to.lower(), subject.chain_id):
            caps = [one.max_native for one in entry.selectors.values() if one.max_native is not None]
            if caps and effect.amount > min(caps):
                return False, f"{effect.amount} wei to {effect.to} exceeds its `maxNativeValueWei` of {min(caps)}"
    return True, "the order makes no contract call"


def _refused(rule: ContractAllowlist, call: Call) -> str:
    listed = any(call.selector in entry.selectors for entry in _entries(rule, call.contract, call.chain_id))
    what = f"the call of {call.selector} on {call.contract} (chain {call.chain_id})"
    return f"{what} is outside its constraints" if listed else f"{what} is not listed"


def _stricter(wide: Constraint, narrow: Constraint) -> bool:
    # A `maxAmount` also covers the token, so it may neither appear nor vanish, only fall.
    both = (wide.max_amount is None) == (narrow.max_amount is None)
    return (
        both
        and (wide.max_amount or 0) >= (narrow.max_amount or 0)
        and (wide.max_native is None or (narrow.max_native is not None and narrow.max_native <= wide.max_native))
        and _shrunk(wide.recipients, narrow.recipients)
        and _shrunk(wide.spenders, narrow.spenders)
        and _grown(wide.no_recipients, narrow.no_recipients)
        and _grown(wide.no_spenders, narrow.no_spenders)
    )


def _shrunk(wide: frozenset[str] | None, narrow: frozenset[str] | None) -> bool:
    return wide is None or (narrow is not None and narrow <= wide)


def _grown(wide: frozenset[str] | None, narrow: frozenset[str] | None) -> bool:
    return wide is None or (narrow is not None and wide <= narrow)


def _caps(entry: Entry, old: Entry) -> bool:
    """Say whether the native caps of an old entry, which hold for plain payments, still hold through this entry."""
    caps = [one.max_native for one in old.selectors.values() if one.max_native is not None]
    if not caps:
        return True
    still = [one.max_native for one in entry.selectors.values() if one.max_native is not None]
    reaches = entry.address == old.address and entry.chain_id in (None, old.chain_id)
    return reaches and bool(still) and min(still) <= min(caps)


def _entry(sent: EntryConfig) -> Entry:
    constraints = {_selector(name): _constraint(limits) for name, limits in sent.constraints.items()}
    names = [_selector(name) for name in sent.selectors]
    if len(constraints) < len(sent.constraints):
        raise InvalidPolicy(f"`constraints` of {sent.address} names a selector twice")
    if unknown := constraints.keys() - set(names):
        raise InvalidPolicy(f"`constraints` names {', '.join(sorted(unknown))}, which `selectors` does not list")
    if not names:
        raise InvalidPolicy(f"`selectors` of {sent.address} is empty; list the 4-byte selectors that may be called")
    selectors = {name: constraints.get(name, UNCONSTRAINED) for name in names}
    return Entry(parse_address(sent.address), sent.chain_id, selectors)


def _selector(text: str) -> str:
    return "0x" + text.lower().removeprefix("0x")


def _constraint(sent: ConstraintConfig) -> Constraint:
    return Constraint(
        _addresses(sent.recipient_allowlist),
        _addresses(sent.recipient_blocklist),
        _addresses(sent.spender_allowlist),
        _addresses(sent.spender_blocklist),
        parse_optional_amount(sent.max_amount, "maxAmount"),
        parse_optional_amount(sent.max_native_value_wei, "maxNativeValueWei"),
    )


def _addresses(sent: list[str] | None) -> frozenset[str] | None:
    return None if sent is None else frozenset(parse_address(address) for address in sent)
