"""EVM chains: one address for all of them."""

import re
from typing import Final

from custody.chains.evm.address import parse_address
from custody.chains.family import GWEI, Chain, WalletFamily

EVM_NATIVE: Final = "evm:native"
_TOKEN: Final = re.compile(r"evm:([1-9][0-9]{0,15}):(0x[0-9a-fA-F]{40})\Z")
_COIN: Final = re.compile(r"evm:([1-9][0-9]{0,15}):native\Z")


class Evm(WalletFamily):
    """Addresses are compared in lower case, and shown with their checksum."""

    name = "evm"
    title = "EVM"
    native_asset = EVM_NATIVE
    unit = "wei"
    chain_name = re.compile(r"eip155:([1-9][0-9]{0,15})\Z")
    order_kinds = ("evm", "typed_data", "evm_message", "x402")
    capabilities = ("sign", "sign-typed-data", "sign-message")
    chains = (
        Chain(id=1, name="Ethereum", symbol="ETH"),
        Chain(id=10, name="OP Mainnet", symbol="ETH"),
        # The least gas price that validators' own settings have; the base fee is 0.
        Chain(id=56, name="BNB Smart Chain", symbol="BNB", min_priority_fee_per_gas=GWEI // 20),
        # PIP-35: no node's pool takes a lower tip, though nodes have suggested one.
        Chain(
            id=137,
            name="Polygon",
            symbol="POL",
            max_fee_per_gas=5_000 * GWEI,
            max_priority_fee_per_gas=1_000 * GWEI,
            min_priority_fee_per_gas=25 * GWEI,
        ),
        Chain(id=8453, name="Base", symbol="ETH"),
        Chain(id=42161, name="Arbitrum One", symbol="ETH", default_gas=1_000_000),
        Chain(id=11155111, name="Sepolia", symbol="ETH"),
        Chain(id=84532, name="Base Sepolia", symbol="ETH"),
        Chain(id=31337, name="Local chain", symbol="ETH", confirmations=1),
    )

    def is_address(self, text: str) -> bool:
        """Say whether it begins like one; length and checksum are checked by `parse_address`."""
        return text.startswith(("0x", "0X"))

    def parse_address(self, text: str) -> str:
        """The address in lower case, or BadAddress."""
        return parse_address(text)

    def spell(self, address: str) -> str:
        """In lower case."""
        return address.lower()

    def caip2(self, chain: Chain) -> str:
        """Such as `eip155:1`."""
        return f"eip155:{chain.id}"

    def parse_asset(self, text: str) -> str | None:
        """`evm:<chainId>:<token>`, with the token in lower case, or `evm:<chainId>:native`, the coin of one chain."""
        if _COIN.match(text):
            return text
        token = _TOKEN.match(text)
        return self.token_asset(int(token[1]), parse_address(token[2])) if token else None

    def token_asset(self, chain_id: int, token: str) -> str:
        """`evm:<chainId>:<token>`."""
        return f"evm:{chain_id}:{token}"

    def whole(self, asset: str) -> str | None:
        """The coins of all chains together, of the coin of one."""
        return None if coin_chain(asset) is None else EVM_NATIVE

    def part(self, asset: str, chain_id: int | None, *, deposit: bool) -> str | None:
        """The coin of one chain, of the coins of all."""
        return coin_of(chain_id) if asset == EVM_NATIVE and chain_id is not None else None

    def encode(self, raw: bytes) -> str:
        """In hex."""
        return "0x" + raw.hex()


def coin_of(chain_id: int) -> str:
    """`evm:<chainId>:native`: the coin of one chain, of which `evm:native` is the sum over all."""
    return f"evm:{chain_id}:native"


def coin_chain(asset: str) -> int | None:
    """The chain whose coin an asset is; None for every other asset, `evm:native` too."""
    found = _COIN.match(asset)
    return int(found[1]) if found else None
