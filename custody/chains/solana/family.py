"""Solana: an address is the public key itself."""

import base64
import re
from typing import Final

from custody.chains import base58
from custody.chains.family import Chain, WalletFamily
from custody.chains.units import SOLANA_RENT

SOLANA_NATIVE: Final = "solana:native"
_BYTES: Final = 32


def _chain(chain_id: int, name: str, reference: str) -> Chain:
    return Chain(
        id=chain_id,
        family="solana",
        name=name,
        symbol="SOL",
        decimals=9,
        confirmations=1,
        max_fee_per_transaction=10_000_000,
        caip2_reference=reference,
    )


class Solana(WalletFamily):
    """Addresses have one spelling; a mint is the same account on no two clusters, so it needs no chain beside it."""

    name = "solana"
    title = "Solana"
    native_asset = SOLANA_NATIVE
    unit = "lamports"
    chain_name = re.compile(r"solana:[-_a-zA-Z0-9]{1,32}\Z")
    order_kinds = ("solana", "solana_message", "solana_x402")
    capabilities = ("sign-solana",)
    chains = (
        _chain(101, "Solana", "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp"),
        _chain(102, "Solana Devnet", "EtWTRABZaYq6iMfeYKouRu166VU2xqa1"),
    )
    hash_is_signature = True

    def is_address(self, text: str) -> bool:
        """Say whether it is 32 bytes in base58."""
        raw = base58.decode(text)
        return raw is not None and len(raw) == _BYTES

    def caip2(self, chain: Chain) -> str:
        """Such as `solana:<genesis>`."""
        return f"solana:{chain.caip2_reference or chain.id}"

    def parse_asset(self, text: str) -> str | None:
        """`solana:<mint>`."""
        mint = text.removeprefix("solana:")
        return text if mint != text and self.is_address(mint) else None

    def whole(self, asset: str) -> str | None:
        """The lamports, of rent."""
        return SOLANA_NATIVE if asset == SOLANA_RENT else None

    def part(self, asset: str, chain_id: int | None, *, deposit: bool) -> str | None:
        """The rent, of the lamports."""
        return SOLANA_RENT if asset == SOLANA_NATIVE and deposit else None

    def encode(self, raw: bytes) -> str:
        """In base64."""
        return base64.b64encode(raw).decode()
