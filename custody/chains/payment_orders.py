"""Payments by x402 as they are asked for: one offer of a server, and where it was made."""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from custody.kit.shapes import ChainId, ReferenceId

# Characters of each part that comes from the server; together they are no more than a demand may have.
MAX_PART: Final = 16 * 1024

_Part = Annotated[str, Meta(min_length=2, max_length=MAX_PART)]


class PaymentOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", tag_field="chainFamily"):
    """A payment that a server demands. `offer`, `resource` and `extensions` are its JSON, exactly as it came.

    `host`, `path` and `words` are shown to people who decide; a payment route of that place only refuses by them.
    """

    version: Literal[1, 2]
    offer: _Part
    chain_id: ChainId
    resource: _Part | None = None
    extensions: _Part | None = None
    method: Annotated[str, Meta(max_length=20)] | None = None
    # With its port.
    host: Annotated[str, Meta(max_length=260)] | None = None
    path: Annotated[str, Meta(max_length=2048)] | None = None
    words: Annotated[str, Meta(max_length=200)] | None = None
    reference_id: ReferenceId | None = None

    @property
    def broadcast(self) -> bool:
        """Say whether we send it to a node: whom it pays does that."""
        return False


class EvmPaymentOrder(PaymentOrder, frozen=True, forbid_unknown_fields=True, rename="camel", tag="evm"):
    """A payment by the EVM wallet, as a typed-data document."""


class SolanaPaymentOrder(PaymentOrder, frozen=True, forbid_unknown_fields=True, rename="camel", tag="solana"):
    """A payment by the Solana wallet, as a transaction for which somebody else pays the fee."""
