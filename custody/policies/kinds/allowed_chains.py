"""`allowed-chains`: on which chains orders may be signed."""

from typing import Annotated, Self

from msgspec import Meta

from custody.chains import families
from custody.chains.evm.family import Evm
from custody.chains.types import Subject
from custody.kit.described import described
from custody.kit.shapes import ChainId
from custody.policies.kind import Config, Rule, Terms
from custody.policies.types import Facts, InvalidPolicy


def _parse_chain(text: str) -> str | None:
    """The CAIP-2 name of a chain of any family; None for what names none."""
    return next((name for family in families.all_families() if (name := family.parse_chain(text)) is not None), None)


class AllowedChains(Terms, frozen=True):
    """Ids that name a chain of any family, ids of EVM chains only, and CAIP-2 names."""

    ids: frozenset[int]
    evm_ids: frozenset[int]
    names: frozenset[str]

    def check(self, subject: Subject, facts: Facts) -> tuple[bool, str]:
        """Say whether the order's chain is allowed, and why."""
        chain = subject.chain_id
        if chain is None and subject.kind == "typed_data":
            return False, "the typed data names no chain, so it would be valid on every chain"
        if chain is None and subject.caip2 is None and subject.message is not None:
            return False, "the message names no chain; send `chainId`, the chain that it is meant for"
        if chain is not None and (chain in self.ids or (subject.family == "evm" and chain in self.evm_ids)):
            return True, f"chain {chain} is allowed"
        name = subject.caip2
        if name is not None and self.names and (_parse_chain(name) or name) in self.names:
            return True, f"chain {name} is allowed"
        return False, f"chain {name if chain is None else chain} is not allowed"

    def tightens(self, old: Self) -> bool:
        """Say whether no chain is new."""
        return self.ids <= old.ids and self.evm_ids <= old.evm_ids | old.ids and self.names <= old.names


class AllowedChainsConfig(Config, frozen=True):
    """One list."""

    chains: Annotated[
        tuple[ChainId | str, ...],
        Meta(min_length=1),
        described(
            "Chains by number, or by name: `eip155:1`, `solana:<genesis>`, `bip122:<genesis>`, `bitcoin:mainnet`, "
            "`bitcoin:testnet`, `bitcoin:signet`, `bitcoin:regtest`."
        ),
    ]

    def terms(self) -> AllowedChains:
        """The chains by number and by name."""
        ids, evm_ids, names = set(), set(), set()
        for chain in self.chains:
            if isinstance(chain, int):
                ids.add(chain)
            elif eip155 := Evm.chain_name.match(chain):
                evm_ids.add(int(eip155[1]))
            elif (name := _parse_chain(chain)) is not None:
                names.add(name)
            else:
                raise InvalidPolicy(
                    f"`chains` entry {chain[:128]!r} is neither a number nor like eip155:1, solana:<genesis>, "
                    "bip122:<genesis> or bitcoin:regtest"
                )
        return AllowedChains(frozenset(ids), frozenset(evm_ids), frozenset(names))


class AllowedChainsRule(Rule, frozen=True, kw_only=True, tag="allowed-chains"):
    """On which chains orders may be signed. On any other chain an order is refused."""

    config: Annotated[AllowedChainsConfig, described("Settings of the rule.")]
