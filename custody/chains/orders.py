"""The orders of an agent, and what a node was asked beforehand.

A new kind adds its order and its question, which `Question` lists; `ORDERS` follows from that list.
"""

from typing import Annotated, Any, Final, Literal, get_args, get_type_hints

import msgspec
from msgspec import Meta

from custody.kit.described import described
from custody.kit.shapes import (
    Calldata,
    ChainId,
    DecimalAmount,
    EvmAddress,
    ReferenceId,
    SolanaAddress,
    Uuid,
    WalletScopeText,
)

Nonce = Annotated[int, Meta(ge=0, le=2**53)]
# The order travels twice, in the request that a signer of the agent signed too, and both are in one frame.
MAX_PSBT_CHARACTERS: Final = 400_000
# Calls of one batch.
MAX_CALLS: Final = 16
# Bytes of a message.
MAX_MESSAGE: Final = 16 * 1024


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


class EvmReplacement(EvmOrder, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """The same payment at higher fees, in the nonce of one that is stuck. Made by the signer alone."""

    replaces: Uuid


class WalletAction(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The act of a wallet, in the caller's terms: the transaction that it becomes may name only a contract.

    `throttled`: a rate limit refused it, so its reference is free for the same action to be asked for again. A batch of
    calls has no one recipient and amount; its row is there only if it was refused.
    """

    type: Literal["transfer", "send_calls"]
    recipient: str = ""
    amount: str = "0"
    token: str | None = None
    throttled: bool = False


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


class TypedDataField(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One field of an EIP-712 struct type."""

    name: Annotated[str, Meta(min_length=1, max_length=128), described("The field's name.")]
    type: Annotated[str, Meta(min_length=1, max_length=128), described("The field's type, such as `uint256`.")]


class TypedDataOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """An EIP-712 document with eth_signTypedData_v4 semantics."""

    domain: Annotated[dict[str, Any], described("The EIP-712 domain. Fields that are not hashed are ignored.")]
    types: Annotated[
        dict[str, list[TypedDataField]],
        described("The struct types by name. Without `EIP712Domain` the standard's fields of the domain are hashed."),
    ]
    primary_type: Annotated[str, Meta(min_length=1, max_length=128), described("The name of the type of `value`.")]
    value: Annotated[dict[str, Any], described("The message to sign.")]
    reference_id: Annotated[ReferenceId | None, described("Your own reference, to find the transaction by.")] = None


class SolanaOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A serialized Solana transaction, and the caller's statement of what it does; the two must agree."""

    transaction: Annotated[
        str, Meta(min_length=4, max_length=1_644), described("The serialized transaction in base64.")
    ]
    to: Annotated[
        SolanaAddress,
        described(
            "The recipient, as the transaction has it: of several any one, of a token account its owner; the wallet "
            "itself where the transaction pays nobody else."
        ),
    ]
    value: Annotated[
        DecimalAmount,
        described("All the lamports that the transaction transfers, to any receiver; fee and rent are not in it."),
    ]
    chain_id: Annotated[ChainId, described("101 for mainnet, 102 for devnet.")] = 101
    broadcast: Annotated[
        bool,
        described(
            "True to have the service send the signed transaction to a node; false returns it. It must be false where "
            "somebody else pays the fee and signs last."
        ),
    ] = True
    reference_id: Annotated[ReferenceId | None, described("Your own reference, to find the transaction by.")] = None


class PsbtOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A PSBT whose inputs of one address are signed. Payments are read from its bytes, and it is never broadcast."""

    wallet_scope: Annotated[
        WalletScopeText,
        described("The address that signs: `bitcoin:<network>:<type>:<account>:<change>:<index>`."),
    ]
    psbt_base64: Annotated[
        str,
        Meta(min_length=1, max_length=MAX_PSBT_CHARACTERS),
        described("The PSBT, version 0, in base64."),
    ]
    finalize: Annotated[
        bool, described("True to finish the transaction too, if every input is this wallet's and was signed.")
    ] = False
    reference_id: Annotated[ReferenceId | None, described("Your own reference, to find the transaction by.")] = None


class MessageOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", tag_field="chainFamily"):
    """A message that a wallet signs as it is; exactly one of `message` and `raw`."""

    message: Annotated[
        Annotated[str, Meta(min_length=1, max_length=MAX_MESSAGE)] | None,
        described(f"The message as text, which is signed as UTF-8; at most {MAX_MESSAGE:,} bytes."),
    ] = None
    raw: Annotated[
        Annotated[str, Meta(min_length=2, max_length=2 * MAX_MESSAGE + 2, pattern=r"^[A-Za-z0-9+/]+={0,2}\Z")] | None,
        described("The message as bytes: 0x and hex for an EVM wallet, standard base64 for a Solana wallet."),
    ] = None
    chain_id: Annotated[
        ChainId | None, described("The chain that it is meant for; a sign-in message says so itself.")
    ] = None
    reference_id: Annotated[ReferenceId | None, described("Your own reference, to find the transaction by.")] = None


class EvmMessageOrder(MessageOrder, frozen=True, forbid_unknown_fields=True, rename="camel", tag="evm"):
    """A message for the EVM wallet, which signs it as personal_sign does (EIP-191)."""


class SolanaMessageOrder(MessageOrder, frozen=True, forbid_unknown_fields=True, rename="camel", tag="solana"):
    """A message for the Solana wallet, which signs the bytes themselves."""


class _Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    """An order with its kind beside it: asked for to be signed, or only what signing would come to."""


class EvmQuestion(_Question, frozen=True, tag="evm"):
    """The simulation of an EVM transaction."""

    request: Annotated[EvmOrder, described("The order, as the signing route takes it.")]


class TypedDataQuestion(_Question, frozen=True, tag="typed_data"):
    """The simulation of an EIP-712 document."""

    request: Annotated[TypedDataOrder, described("The order, as the signing route takes it.")]


class TransferQuestion(_Question, frozen=True, tag="transfer"):
    """The simulation of a transfer."""

    request: Annotated[TransferOrder, described("The order, as the route of transfers takes it.")]


class SolanaQuestion(_Question, frozen=True, tag="solana"):
    """The simulation of a Solana transaction."""

    request: Annotated[SolanaOrder, described("The order, as the signing route takes it.")]


class PsbtQuestion(_Question, frozen=True, tag="bitcoin"):
    """The simulation of a PSBT."""

    request: Annotated[PsbtOrder, described("The order, as the signing route takes it.")]


class EvmMessageQuestion(_Question, frozen=True, tag="evm_message"):
    """The simulation of a message of the EVM wallet."""

    request: EvmMessageOrder


class SolanaMessageQuestion(_Question, frozen=True, tag="solana_message"):
    """The simulation of a message of the Solana wallet."""

    request: SolanaMessageOrder


Question = (
    EvmQuestion
    | TypedDataQuestion
    | EvmMessageQuestion
    | SolanaQuestion
    | SolanaMessageQuestion
    | TransferQuestion
    | PsbtQuestion
)


class EvmPrepared(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="evm"):
    """A node's suggestion for an EVM order. Untrusted: the signer caps every figure.

    `base_fee` None means the chain has no EIP-1559 blocks; then `max_fee` is the legacy gas price.
    """

    pending_nonce: int
    gas_limit: int
    max_fee: int
    priority_fee: int
    legacy: bool = False


class CallsPrepared(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="calls"):
    """A node's suggestion for a batch: its first nonce and its fees, and each call's gas where it could be told."""

    first: EvmPrepared
    gas_limits: list[int | None]


class SolanaPrepared(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="solana"):
    """A recent blockhash (base58) and the last block height at which it is valid. Untrusted."""

    blockhash: str
    last_valid_height: int


type Order = EvmOrder | TypedDataOrder | SolanaOrder | PsbtOrder | EvmMessageOrder | SolanaMessageOrder
type Asked = Order | TransferOrder | CallsOrder
# What a node suggested; each kind of order takes its own.
Prepared = EvmPrepared | SolanaPrepared | CallsPrepared
# The kinds as rows, answers and receipts name them. A transfer is kept as the EVM transaction that it becomes.
ORDERS: Final[dict[str, type[Order]]] = {
    str(question.__struct_config__.tag): get_type_hints(question)["request"]
    for question in get_args(Question)
    if question is not TransferQuestion
}


class _Names(msgspec.Struct):
    """The field that tells which kind of EVM order a stored text is."""

    replaces: str | None = None
    action: dict[str, Any] | None = None


def stored(kind: str, text: str) -> Order:
    """An order as it was kept: an `EvmReplacement` if it names what it replaces, an `EvmTransfer` if an action."""
    names = msgspec.json.decode(text, type=_Names)
    order = EvmReplacement if names.replaces else EvmTransfer if names.action is not None else ORDERS[kind]
    return msgspec.json.decode(text, type=order)


def kind_of(order: Order) -> str:
    """The name of an order's kind."""
    return next(kind for kind, order_type in ORDERS.items() if isinstance(order, order_type))
