"""What is asked about a typed-data document before it is signed."""

from typing import Annotated

import msgspec

from custody.chains.orders import (
    EvmQuestion,
    PsbtQuestion,
    Question,
    SolanaQuestion,
    TransferQuestion,
    TypedDataQuestion,
)
from custody.chains.typed_body import TypedDataBody
from custody.kit.described import described


class TypedDataSimulation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="typed_data"):
    """The simulation of an EIP-712 document."""

    request: Annotated[TypedDataBody, described("The order, as the signing route takes it.")]


QuestionBody = EvmQuestion | TypedDataSimulation | SolanaQuestion | TransferQuestion | PsbtQuestion


def question_of(body: QuestionBody) -> Question:
    """What is asked, as it is judged."""
    return TypedDataQuestion(body.request.order()) if isinstance(body, TypedDataSimulation) else body
