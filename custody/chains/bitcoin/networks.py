"""The networks of Bitcoin, and what their addresses and key paths begin with."""

from collections.abc import Mapping
from typing import Final

import msgspec


class Network(msgspec.Struct, frozen=True):
    """One network. `coin` is its number in key paths (SLIP-44): 0 on mainnet, 1 on every other.

    `caip2` has the first 32 hex digits of the genesis block, as BIP-122 names it. The two bytes begin addresses in
    base58, `hrp` those in bech32.
    """

    name: str
    caip2: str
    coin: int
    hrp: str
    p2pkh: int
    p2sh: int


NETWORKS: Final[Mapping[str, Network]] = {
    one.name: one
    for one in (
        Network("mainnet", "bip122:000000000019d6689c085ae165831e93", 0, "bc", 0x00, 0x05),
        Network("testnet", "bip122:000000000933ea01ad0ee984209779ba", 1, "tb", 0x6F, 0xC4),
        Network("signet", "bip122:00000008819873e925422c1ff0f99f7c", 1, "tb", 0x6F, 0xC4),
        Network("regtest", "bip122:0f9188f13cb7b2c71f2a335e3a4fc328", 1, "bcrt", 0x6F, 0xC4),
    )
}
