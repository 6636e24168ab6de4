"""Symbols and decimals, for sentences: of coins as the table of chains has them, of tokens as the operator names them.

What a token says of itself is in none of them: anyone can make one with the symbol of another.
"""

from collections.abc import Mapping
from typing import Annotated, Final

import msgspec
from msgspec import Meta

Symbol = Annotated[str, Meta(min_length=1, max_length=16, pattern=r"^[\x21-\x7e]+\Z")]
Decimals = Annotated[int, Meta(ge=0, le=36)]
DomainName = Annotated[str, Meta(min_length=1, max_length=128)]
# What Solana's new token accounts cost, in lamports. No rule names it as its asset: `maxRentPerDay` limits it.
SOLANA_RENT: Final = "solana:rent"
# What an order is worth, in millionths of a dollar. No chain has it: a rule may limit it as if it were an asset.
USD: Final = "usd"
# A coin is written in its smallest unit below a millionth of it.
_SMALL = 6


class Token(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A token that the operator names, with name and version of its EIP-712 domain where payments need them."""

    address: str
    symbol: Symbol
    decimals: Decimals
    eip712_name: DomainName | None = None
    eip712_version: DomainName | None = None


class Unit(msgspec.Struct, frozen=True):
    """The unit of an asset's amounts; `small` is the name of its smallest unit, if it has one."""

    symbol: str
    decimals: int
    small: str | None = None

    def tell(self, amount: int) -> str:
        """An amount, exactly: `0.5 ETH`, `300 wei`."""
        if self.small is not None and 0 < amount < 10 ** (self.decimals - _SMALL):
            return f"{amount} {self.small}"
        whole, rest = divmod(amount, 10**self.decimals)
        fraction = f"{rest:0{self.decimals}d}".rstrip("0") if rest else ""
        return f"{whole}{'.' + fraction if fraction else ''} {self.symbol}"


class Units(msgspec.Struct, frozen=True):
    """The units of a deployment: coins by chain, tokens by asset."""

    coins: Mapping[int, Unit] = {}
    tokens: Mapping[str, Unit] = {}


NO_UNITS = Units()
