"""`allowed-chains`: on which chains orders may be signed. Decisions 3."""

import re
from typing import Annotated, Any, Final

import msgspec

from custody.chains.types import Subject
from custody.kit.shapes import ChainId
from custody.policies.types import Facts, InvalidPolicy

# The first 32 hex digits of each network's genesis block, as BIP-122 names it.
_BITCOIN: Final = {
    "bitcoin:mainnet": "bip122:000000000019d6689c085ae165831e93",
    "bitcoin:testnet": "bip122:000000000933ea01ad0ee984209779ba",
    "bitcoin:signet": "bip122:00000008819873e925422c1ff0f99f7c",
    "bitcoin:regtest": "bip122:0f9188f13cb7b2c71f2a335e3a4fc328",
}
_EIP155 = re.compile(r"eip155:([1-9][0-9]{0,15})\Z")
_NAMED = re.compile(r"(?:solana:[-_a-zA-Z0-9]{1,32}|bip122:[0-9a-f]{32})\Z")


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The config as sent."""

    chains: Annotated[tuple[ChainId | str, ...], msgspec.Meta(min_length=1)]


class AllowedChains(msgspec.Struct, frozen=True):
    """Ids that name a chain of any family, ids of EVM chains only, and CAIP-2 names."""

    ids: frozenset[int]
    evm_ids: frozenset[int]
    names: frozenset[str]


def parse(config: dict[str, Any]) -> AllowedChains:
    """Read the config strictly, or raise."""
    ids, evm_ids, names = set(), set(), set()
    for chain in msgspec.convert(config, Config).chains:
        if isinstance(chain, int):
            ids.add(chain)
        elif eip155 := _EIP155.match(chain):
            evm_ids.add(int(eip155[1]))
        elif chain in _BITCOIN or _NAMED.match(chain):
            names.add(_BITCOIN.get(chain, chain))
        else:
            raise InvalidPolicy(
                f"`chains` entry {chain!r} is neither a number nor like eip155:1, solana:<genesis>, "
                "bip122:<genesis> or bitcoin:regtest"
            )
    return AllowedChains(frozenset(ids), frozenset(evm_ids), frozenset(names))


def check(rule: AllowedChains, subject: Subject, facts: Facts) -> tuple[bool, str]:
    """Say whether the order's chain is allowed, and why."""
    chain = subject.chain_id
    if chain is None and subject.kind == "typed_data":
        return False, "the typed data names no chain, so it would be valid on every chain"
    if chain is not None and (chain in rule.ids or (subject.family == "evm" and chain in rule.evm_ids)):
        return True, f"chain {chain} is allowed"
    name = subject.caip2
    if name is not None and rule.names and _BITCOIN.get(name, name) in rule.names:
        return True, f"chain {name} is allowed"
    return False, f"chain {name if chain is None else chain} is not allowed"


def tightens(old: AllowedChains, new: AllowedChains) -> bool:
    """Say whether whatever passes `new` also passes `old`."""
    return new.ids <= old.ids and new.evm_ids <= old.evm_ids | old.ids and new.names <= old.names
