"""The orders of an agent, each of its family, and what a node was asked beforehand.

A new kind adds its order and its question, which `Question` lists; `ORDERS` follows from that list.
"""

from typing import Annotated, Any, Final, get_args, get_type_hints

import msgspec

from custody.chains.bitcoin.orders import PsbtOrder
from custody.chains.evm.action_orders import CallsOrder, CallsPrepared, EvmReplacement, EvmTransfer, TransferOrder
from custody.chains.evm.orders import EvmOrder, EvmPrepared
from custody.chains.evm.typed_order import TypedDataOrder
from custody.chains.message_orders import EvmMessageOrder, SolanaMessageOrder
from custody.chains.payment_orders import EvmPaymentOrder, SolanaPaymentOrder
from custody.chains.solana.orders import SolanaOrder, SolanaPrepared
from custody.kit.described import described


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


class EvmPaymentQuestion(_Question, frozen=True, tag="x402"):
    """The simulation of a payment by the EVM wallet."""

    request: EvmPaymentOrder


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


class SolanaPaymentQuestion(_Question, frozen=True, tag="solana_x402"):
    """The simulation of a payment by the Solana wallet."""

    request: SolanaPaymentOrder


Question = (
    EvmQuestion
    | TypedDataQuestion
    | EvmMessageQuestion
    | EvmPaymentQuestion
    | SolanaQuestion
    | SolanaMessageQuestion
    | SolanaPaymentQuestion
    | TransferQuestion
    | PsbtQuestion
)


type PaymentOrders = EvmPaymentOrder | SolanaPaymentOrder
type Order = EvmOrder | TypedDataOrder | SolanaOrder | PsbtOrder | EvmMessageOrder | SolanaMessageOrder | PaymentOrders
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


def load_order(kind: str, text: str) -> Order:
    """An order as it was kept: an `EvmReplacement` if it names what it replaces, an `EvmTransfer` if an action."""
    names = msgspec.json.decode(text, type=_Names)
    order = EvmReplacement if names.replaces else EvmTransfer if names.action is not None else ORDERS[kind]
    return msgspec.json.decode(text, type=order)


def kind_of(order: Order) -> str:
    """The name of an order's kind."""
    return next(kind for kind, order_type in ORDERS.items() if isinstance(order, order_type))
