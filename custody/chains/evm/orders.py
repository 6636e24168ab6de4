"""EVM transactions as they are asked for, and what a node suggests for one."""

from typing import Annotated

import msgspec
from msgspec import Meta

from custody.kit.described import described
from custody.kit.shapes import Calldata, ChainId, DecimalAmount, EvmAddress, ReferenceId

Nonce = Annotated[int, Meta(ge=0, le=2**53)]


class EvmOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """An EVM transaction to sign: built by the signer from these fields, never from raw bytes."""

    to: Annotated[EvmAddress, described("The recipient, or the contract that is called.")]
    value: Annotated[DecimalAmount, described("The amount in wei.")]
    data: Annotated[Calldata | None, described("The calldata in hex.")] = None
    chain_id: Annotated[ChainId | None, described("The chain; without it the active one of the deployment.")] = None
    broadcast: Annotated[
        bool, described("True to have the service send the signed transaction to a node; false returns it.")
    ] = True
    nonce: Annotated[Nonce | None, described("The nonce; without it the next one.")] = None
    gas_limit: Annotated[DecimalAmount | None, described("The gas limit; without it an estimate.", such="100000")] = (
        None
    )
    max_fee_per_gas: Annotated[
        DecimalAmount | None,
        described("The highest price of gas in wei; without it what a node suggests.", such="30000000000"),
    ] = None
    max_priority_fee_per_gas: Annotated[
        DecimalAmount | None, described("The highest tip in wei; without it what a node suggests.", such="1000000000")
    ] = None
    reference_id: Annotated[ReferenceId | None, described("Your own reference, to find the transaction by.")] = None


class EvmPrepared(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="evm"):
    """A node's suggestion for an EVM order. Untrusted: the signer caps every figure.

    `base_fee` None means the chain has no EIP-1559 blocks; then `max_fee` is the legacy gas price.
    """

    pending_nonce: int
    gas_limit: int
    max_fee: int
    priority_fee: int
    legacy: bool = False
