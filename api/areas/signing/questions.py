"""Questions about an order before it is signed, where callers write it otherwise than it is judged."""

from typing import Annotated

import msgspec

from custody.chains.message_orders import EvmMessageOrder, SolanaMessageOrder
from custody.chains.orders import (
    EvmMessageQuestion,
    EvmQuestion,
    PsbtQuestion,
    Question,
    SolanaMessageQuestion,
    SolanaQuestion,
    TransferQuestion,
    TypedDataQuestion,
)
from custody.chains.typed_body import TypedDataBody
from custody.kit.described import described

# A message for the wallet of either family, as the signing route takes it.
MessageBody = EvmMessageOrder | SolanaMessageOrder


class TypedDataSimulation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="typed_data"):
    """The simulation of an EIP-712 document."""

    request: Annotated[TypedDataBody, described("The order, as the signing route takes it.")]


class MessageSimulation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="message"):
    """The simulation of a message."""

    request: Annotated[MessageBody, described("The order, as the signing route takes it.")]


QuestionBody = EvmQuestion | TypedDataSimulation | SolanaQuestion | TransferQuestion | PsbtQuestion | MessageSimulation


def question_of(body: QuestionBody) -> Question:
    """Build the question as it is judged."""
    if isinstance(body, MessageSimulation):
        return message_question(body.request)
    return TypedDataQuestion(body.request.order()) if isinstance(body, TypedDataSimulation) else body


def message_question(order: MessageBody) -> EvmMessageQuestion | SolanaMessageQuestion:
    """A message, as a question of its kind."""
    return EvmMessageQuestion(order) if isinstance(order, EvmMessageOrder) else SolanaMessageQuestion(order)
