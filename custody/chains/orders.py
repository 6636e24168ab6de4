"""What an agent asks to have signed, and what a node was asked beforehand. Spec 1/4.3, decisions 4."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from custody.kit.shapes import Calldata, ChainId, DecimalAmount, EvmAddress, ReferenceId, SolanaAddress, Uuid

Nonce = Annotated[int, Meta(ge=0, le=2**53)]


class EvmOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """An EVM transaction to sign: built by the signer from these fields, never from raw bytes."""

    to: EvmAddress
    value: DecimalAmount
    data: Calldata | None = None
    chain_id: ChainId | None = None
    broadcast: bool = True
    nonce: Nonce | None = None
    gas_limit: DecimalAmount | None = None
    max_fee_per_gas: DecimalAmount | None = None
    max_priority_fee_per_gas: DecimalAmount | None = None
    reference_id: ReferenceId | None = None


class EvmReplacement(EvmOrder, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """The same payment at higher fees, in the nonce of one that is stuck. Made by the signer alone."""

    replaces: Uuid


class ReplacementFees(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What a caller wants a replacement to pay; absent: what a node suggests, and enough to be taken."""

    max_fee_per_gas: DecimalAmount | None = None
    max_priority_fee_per_gas: DecimalAmount | None = None


class TypedDataField(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One field of an EIP-712 struct type."""

    name: Annotated[str, Meta(min_length=1, max_length=128)]
    type: Annotated[str, Meta(min_length=1, max_length=128)]


class TypedDataOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """An EIP-712 document with eth_signTypedData_v4 semantics."""

    domain: dict[str, Any]
    types: dict[str, list[TypedDataField]]
    primary_type: Annotated[str, Meta(min_length=1, max_length=128)]
    value: dict[str, Any]
    reference_id: ReferenceId | None = None


class SolanaOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A serialized Solana transaction, and what the caller says it does; the two must agree."""

    transaction: Annotated[str, Meta(min_length=4, max_length=1_644)]
    to: SolanaAddress
    value: DecimalAmount
    chain_id: ChainId = 101
    broadcast: bool = True
    reference_id: ReferenceId | None = None


class _Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    """An order that is only asked about; its kind says which of the signing routes it would go to."""


class EvmQuestion(_Question, frozen=True, tag="evm"):
    """What would become of an EVM transaction."""

    request: EvmOrder


class TypedDataQuestion(_Question, frozen=True, tag="typed_data"):
    """What would become of an EIP-712 document."""

    request: TypedDataOrder


class SolanaQuestion(_Question, frozen=True, tag="solana"):
    """What would become of a Solana transaction."""

    request: SolanaOrder


Question = EvmQuestion | TypedDataQuestion | SolanaQuestion


class EvmPrepared(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a node suggested for an EVM order. Untrusted: the signer caps every figure.

    `base_fee` None means the chain has no EIP-1559 blocks; then `max_fee` is the legacy gas price.
    """

    pending_nonce: int
    gas_limit: int
    max_fee: int
    priority_fee: int
    legacy: bool = False


class SolanaPrepared(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A recent blockhash (base58) and the last block height at which it is valid. Untrusted."""

    blockhash: str
    last_valid_height: int


class _Names(msgspec.Struct):
    """Which of the two kinds of EVM order a stored text is."""

    replaces: str | None = None


def stored_evm(text: str) -> EvmOrder:
    """An EVM order as it was kept: an `EvmReplacement` if it names what it replaces."""
    kind = EvmReplacement if msgspec.json.decode(text, type=_Names).replaces else EvmOrder
    return msgspec.json.decode(text, type=kind)
