"""The declaration of a chain family: names, addresses, assets, chains. No I/O, no keys."""

import re
from abc import ABC, abstractmethod

import msgspec

from custody.chains.units import Token, Unit

GWEI = 10**9


class Chain(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One chain. Fees in its family's smallest unit; `max_fee_per_transaction` caps gas limit times price.

    `min_priority_fee_per_gas` is the least tip, or legacy gas price, that its nodes take into their pools.
    """

    id: int
    family: str = "evm"
    name: str
    symbol: str
    decimals: int = 18
    rpc_urls: tuple[str, ...] = ()
    confirmations: int = 12
    max_fee_per_gas: int = 500 * GWEI
    max_priority_fee_per_gas: int = 50 * GWEI
    max_fee_per_transaction: int = 10**17
    min_priority_fee_per_gas: int = 0
    default_gas: int = 100_000
    default_max_fee_per_gas: int = 50 * GWEI
    default_priority_fee_per_gas: int = 1 * GWEI
    active: bool = False
    caip2_reference: str | None = None
    tokens: tuple[Token, ...] = ()


class Family(ABC):
    """One class for each family, in `custody/chains/<family>/family.py`; `custody/chains/built_in.py` lists them.

    Addresses and assets of every family may stand in rules; what is signed here is of a `SigningFamily`.
    """

    # As rows, chains, assets and answers name it.
    name: str
    # As people read it.
    title: str
    native_asset: str
    # The smallest unit of the native asset.
    unit: str
    # CAIP-2 names of its chains.
    chain_name: re.Pattern[str]
    # The kinds of its orders, as rows, answers and filters name them.
    order_kinds: tuple[str, ...]
    # The coin, where it is one whatever the chain.
    coin: Unit | None = None
    # Whether what an order moves is told with the network's fee in it.
    counts_fee: bool = False
    # The transaction's hash is its signature: with the message beside it, it can be sent.
    hash_is_signature: bool = False

    @abstractmethod
    def is_address(self, text: str) -> bool:
        """Say whether a text looks like an address of this family, and of no other."""

    def parse_address(self, text: str) -> str:
        """An address that looks right in its one spelling; raises Invalid where it is wrong all the same."""
        return self.spell(text)

    def spell(self, address: str) -> str:
        """The spelling in which addresses are compared."""
        return address

    def parse_asset(self, text: str) -> str | None:
        """A token of this family as effects name it; None for what is none of its assets."""
        return None

    def parse_chain(self, text: str) -> str | None:
        """The CAIP-2 name of a chain that is named in full; None for what names none of its chains."""
        return text if self.chain_name.match(text) else None

    def whole(self, asset: str) -> str | None:
        """The asset that one of its assets is a part of; what moves counts under both names."""
        return None

    def part(self, asset: str, chain_id: int | None, *, deposit: bool) -> str | None:
        """The part of an asset that moves on this chain, or as a deposit, where a rule may limit that alone."""
        return None


class SigningFamily(Family):
    """A family whose orders are signed here."""

    @abstractmethod
    def encode(self, raw: bytes) -> str:
        """Signed bytes as a caller takes them on."""


class WalletFamily(SigningFamily):
    """A family of which every agent has a wallet with one address from its beginning, and whose nodes are asked."""

    # Those known without a chains file.
    chains: tuple[Chain, ...]
    # The signing routes that an account of it offers.
    capabilities: tuple[str, ...]

    @abstractmethod
    def caip2(self, chain: Chain) -> str:
        """The CAIP-2 name of one of its chains."""

    def token_asset(self, chain_id: int, token: str) -> str:
        """A token on a chain as effects name it: its address alone, unless another chain may have the same one."""
        return f"{self.name}:{token}"
