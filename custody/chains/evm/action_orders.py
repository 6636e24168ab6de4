"""Orders that become EVM transactions: transfers, batches of calls, replacements."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from custody.chains.actions import WalletAction
from custody.chains.evm.orders import EvmOrder, EvmPrepared
from custody.kit.described import described
from custody.kit.shapes import Calldata, ChainId, DecimalAmount, EvmAddress, ReferenceId, Uuid

# Calls of one batch.
MAX_CALLS: Final = 16


class TransferOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A payment in a chain's own coin, or in an ERC-20 token; the signer builds the transaction."""

    to: Annotated[
        EvmAddress, described("Recipient of the amount; of a token, too, the recipient and not the contract.")
    ]
    value: Annotated[
        DecimalAmount | None, described("The amount in wei, or in the smallest unit of the token; or `amountWei`.")
    ] = None
    amount_wei: Annotated[DecimalAmount | None, described("Another name for `value`; if both are sent, equal.")] = None
    token: Annotated[
        Annotated[str, Meta(min_length=1, max_length=42)] | None,
        described("`native`, or the address of the ERC-20 token; without it `native`."),
    ] = None
    chain_id: Annotated[ChainId | None, described("The EVM chain; without it the active one of the deployment.")] = None
    broadcast: Annotated[
        bool, described("True to have the service send the transaction to a node. Then `referenceId` is required.")
    ] = True
    reference_id: Annotated[
        ReferenceId | None,
        described("Your own reference: a transfer is made once under it, however often it is asked for."),
    ] = None
    sponsor: Annotated[bool, described("True to have another account pay the fee; refused in this version.")] = False


class OneCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """One call of a batch."""

    to: Annotated[EvmAddress, described("The recipient, or the contract that is called.")]
    value: Annotated[DecimalAmount, described("The amount in wei.")] = "0"
    data: Annotated[Calldata | None, described("The calldata in hex.")] = None
    gas_limit: Annotated[
        DecimalAmount | None,
        described(
            "The gas limit; without it an estimate. Give it where a call needs an earlier one of the batch.",
            such="100000",
        ),
    ] = None


class CallsOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Up to 16 calls that are judged as one, and become as many transactions with consecutive nonces."""

    calls: Annotated[
        Annotated[list[OneCall], Meta(min_length=1, max_length=MAX_CALLS)], described("The calls, in their order.")
    ]
    chain_id: Annotated[ChainId | None, described("The EVM chain; without it the active one of the deployment.")] = None
    broadcast: Annotated[
        bool, described("True to have the service send the transactions to a node. Then `referenceId` is required.")
    ] = True
    reference_id: Annotated[
        ReferenceId | None,
        described("Your own reference: a batch is made once under it, however often it is asked for."),
    ] = None
    sponsor: Annotated[bool, described("True to have another account pay the fees; refused in this version.")] = False


class EvmTransfer(EvmOrder, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """A transfer as the transaction that it becomes, and as what was asked for. Made by the signer alone."""

    action: WalletAction


class ReplacementFees(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The fees of a replacement; if absent, those a node suggests, raised enough to be accepted."""

    max_fee_per_gas: Annotated[
        DecimalAmount | None, described("The highest price of gas in wei.", such="60000000000")
    ] = None
    max_priority_fee_per_gas: Annotated[
        DecimalAmount | None, described("The highest tip in wei.", such="2000000000")
    ] = None


class CallsPrepared(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="calls"):
    """A node's suggestion for a batch: its first nonce and its fees, and each call's gas where it could be told."""

    first: EvmPrepared
    gas_limits: list[int | None]


class EvmReplacement(EvmOrder, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """The same payment at higher fees, in the nonce of one that is stuck. Made by the signer alone."""

    replaces: Uuid
