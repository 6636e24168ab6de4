"""The entries of a `contract-allowlist`, read strictly. Decisions 3."""

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from custody.chains.evm.address import parse_address
from custody.kit.shapes import ChainId, DecimalAmount
from custody.policies.assets import parse_optional_amount
from custody.policies.types import InvalidPolicy

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


def entries_of(rule: ContractAllowlist) -> Iterator[Entry]:
    """Every entry."""
    for entries in rule.entries.values():
        yield from entries


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
