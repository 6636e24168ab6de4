"""Chains by their numbers: names, coins, and which of them are only for tests. Pure.

A service can be told of more chains than these; one that is not here is called by its number, never guessed.
"""

from dataclasses import dataclass
from typing import Final

_TEST: Final = " (test network)"
_CHAIN_DIGITS: Final = 16


@dataclass(frozen=True)
class Coin:
    """A unit that people count in, and its smallest part, in which the API counts."""

    symbol: str
    decimals: int
    smallest: str


@dataclass(frozen=True)
class Chain:
    """One chain."""

    name: str
    coin: Coin
    test: bool = False

    @property
    def shown(self) -> str:
        """Its name, and that it is a test network where it is one."""
        return self.name + (_TEST if self.test else "")


def _wei(symbol: str) -> Coin:
    return Coin(symbol, 18, "wei")


ETH: Final = _wei("ETH")
SOL: Final = Coin("SOL", 9, "lamports")
BTC: Final = Coin("BTC", 8, "sat")
# No chain's: what things are worth by the operator's prices.
DOLLARS: Final = Coin("USD", 6, "millionths of a dollar")
# The coins of EVM chains together, which have no name in common; or that of one of which it is not known which.
EVM: Final = _wei("coins")
CHAINS: Final = {
    1: Chain("Ethereum", ETH),
    10: Chain("OP Mainnet", ETH),
    56: Chain("BNB Smart Chain", _wei("BNB")),
    137: Chain("Polygon", _wei("POL")),
    8453: Chain("Base", ETH),
    42161: Chain("Arbitrum One", ETH),
    11155111: Chain("Sepolia", ETH, test=True),
    84532: Chain("Base Sepolia", ETH, test=True),
    31337: Chain("Local chain", ETH, test=True),
    101: Chain("Solana", SOL),
    102: Chain("Solana Devnet", SOL, test=True),
}


@dataclass(frozen=True)
class BitcoinNetwork:
    """One network of Bitcoin; its addresses begin with `prefix`, and in base58 with one of two bytes."""

    name: str
    caip2: str
    prefix: str
    p2pkh: int
    p2sh: int
    shown: str


# By their names in rules and wallet scopes.
BITCOIN_NETWORKS: Final = {
    one.name: one
    for one in (
        BitcoinNetwork("mainnet", "bip122:000000000019d6689c085ae165831e93", "bc", 0x00, 0x05, "Bitcoin"),
        BitcoinNetwork(
            "testnet", "bip122:000000000933ea01ad0ee984209779ba", "tb", 0x6F, 0xC4, f"Bitcoin testnet{_TEST}"
        ),
        BitcoinNetwork("signet", "bip122:00000008819873e925422c1ff0f99f7c", "tb", 0x6F, 0xC4, f"Bitcoin signet{_TEST}"),
        BitcoinNetwork(
            "regtest", "bip122:0f9188f13cb7b2c71f2a335e3a4fc328", "bcrt", 0x6F, 0xC4, f"Bitcoin regtest{_TEST}"
        ),
    )
}
# What the coins of known chains are called: a token that calls itself so is not one of them.
COINS: Final = frozenset(chain.coin.symbol for chain in CHAINS.values()) | {BTC.symbol, DOLLARS.symbol}


def chain_name(chain_id: int | None) -> str:
    """Name a chain."""
    if chain_id is None:
        return "no chain"
    chain = CHAINS.get(chain_id)
    return chain.shown if chain else f"chain {chain_id}"


def chain_of(kind: str, chain_id: int | None, caip2: str | None = None) -> str:
    """Name the chain of an order; those of Bitcoin have no number."""
    if kind != "bitcoin":
        return chain_name(chain_id)
    network = bitcoin_network(caip2)
    return network.shown if network else "Bitcoin"


def bitcoin_network(text: str | None) -> BitcoinNetwork | None:
    """The network that `bip122:<genesis>`, `bitcoin:regtest` or a wallet scope names; None of any other text."""
    family, _, rest = (text or "").partition(":")
    if family == "bip122":
        return next((one for one in BITCOIN_NETWORKS.values() if one.caip2 == text), None)
    return BITCOIN_NETWORKS.get(rest.partition(":")[0]) if family == "bitcoin" else None


def native_coin(asset: str | None, chain_id: int | None) -> Coin | None:
    """The coin that an asset such as `evm:native` means on a chain; None where it is no coin."""
    match asset:
        case "evm:native":
            if chain_id is None:
                return EVM
            chain = CHAINS.get(chain_id)
            # Whatever the coin of an unknown chain is called, its smallest part is the wei.
            return chain.coin if chain and chain.coin.smallest == "wei" else _wei(f"coins of {chain_name(chain_id)}")
        case "solana:native":
            return SOL
        case "bitcoin":
            return BTC
        case "usd":
            return DOLLARS
        case "solana:rent":
            return SOL
        case _:
            return native_coin("evm:native", number) if (number := coin_chain(asset)) is not None else None


def coin_chain(asset: str | None) -> int | None:
    """The EVM chain whose coin alone an asset is, such as 137 of `evm:137:native`; None for every other asset."""
    family, _, rest = (asset or "").partition(":")
    number, _, kind = rest.partition(":")
    known = family == "evm" and kind == "native" and number.isascii() and number.isdecimal()
    return int(number) if known and len(number) <= _CHAIN_DIGITS else None
