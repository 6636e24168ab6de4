"""The chains of this deployment as callers see them."""

from typing import Annotated

import msgspec

from custody.chains.built_in import FAMILIES
from custody.chains.family import Chain
from custody.chains.table import ChainTable
from custody.kit.described import described


class ChainSeen(msgspec.Struct, frozen=True, rename="camel"):
    """A chain whose orders this deployment signs."""

    chain_id: Annotated[int, described("The chain's id, as orders name it.")]
    family: Annotated[str, described("The family of its wallets: `evm` or `solana`.")]
    name: Annotated[str, described("A name for people.")]
    symbol: Annotated[str, described("The symbol of its native coin.")]
    decimals: Annotated[int, described("The decimals of its native coin.")]
    asset: Annotated[
        str,
        described(
            "The native coin as effects name it, and rules. On an EVM chain rules may also say `evm:<chainId>:native`."
        ),
    ]
    is_default: Annotated[bool, described("True if orders that name no chain are for this one.")]
    has_node: Annotated[
        bool, described("True if this deployment has a node of it, for estimates, balances and broadcasts.")
    ]


def to_public(chains: ChainTable) -> list[ChainSeen]:
    """Every chain, the default one first."""
    return [_to_public(chain, chains) for chain in sorted(chains.all, key=lambda one: (one != chains.active, one.id))]


def _to_public(chain: Chain, chains: ChainTable) -> ChainSeen:
    return ChainSeen(
        chain_id=chain.id,
        family=chain.family,
        name=chain.name,
        symbol=chain.symbol,
        decimals=chain.decimals,
        asset=FAMILIES[chain.family].native_asset,
        is_default=chain == chains.active,
        has_node=bool(chain.rpc_urls),
    )
