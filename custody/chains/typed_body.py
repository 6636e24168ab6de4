"""A typed-data document as callers write it, and as it is signed.

Wallets call the struct that is signed `message`, this API called it `value`: either is taken, and one thing comes out.
"""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from custody.chains.evm.typed_order import TypedDataField, TypedDataOrder
from custody.chains.evm.typed_schema import BadTypedData
from custody.kit.described import described
from custody.kit.shapes import ReferenceId

# Up to here every program reads the same number from JSON; many round what is larger.
MAX_EXACT: Final = 2**53


class TypedDataBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """An EIP-712 document with eth_signTypedData_v4 semantics; exactly one of `message` and `value`.

    Integers are JSON numbers up to 2^53, or strings in decimal or 0x hex.
    """

    domain: Annotated[dict[str, Any], described("The EIP-712 domain. Fields that are not hashed are ignored.")]
    types: Annotated[
        dict[str, list[TypedDataField]],
        described("The struct types by name. Without `EIP712Domain` the standard's fields of the domain are hashed."),
    ]
    primary_type: Annotated[
        str, Meta(min_length=1, max_length=128), described("The name of the type of `message`, or `value`.")
    ]
    message: Annotated[
        dict[str, Any] | UnsetType, described("The struct to sign. Problems in it are reported as of `value`.")
    ] = UNSET
    value: Annotated[dict[str, Any] | UnsetType, described("Another name for `message`; give one of the two.")] = UNSET
    reference_id: Annotated[ReferenceId | None, described("Your own reference, to find the transaction by.")] = None

    def order(self) -> TypedDataOrder:
        """The order as it is judged, signed and kept; BadTypedData where the two names or a number leave a doubt."""
        if self.message is UNSET and self.value is UNSET:
            raise BadTypedData("message is missing; it must be the struct to sign, an object.", fields=["message"])
        if self.message is not UNSET and self.value is not UNSET:
            raise BadTypedData("message and value are two names of one field; send one.", fields=["message", "value"])
        name: Literal["message", "value"] = "value" if self.message is UNSET else "message"
        signed: dict[str, Any] = getattr(self, name)
        _refuse_inexact(self.domain, "domain")
        _refuse_inexact(signed, name)
        return TypedDataOrder(self.domain, self.types, self.primary_type, signed, self.reference_id)


def _refuse_inexact(document: dict[str, Any], name: str) -> None:
    """Refuse a number that other readers of the same JSON may round."""
    waiting: list[Any] = [document]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict | list):
            waiting += part.values() if isinstance(part, dict) else part
        elif isinstance(part, int) and abs(part) > MAX_EXACT:
            said = (
                f'{name} has the number {part}, beyond 2^53, where many programs round; send it as a string, "{part}".'
            )
            raise BadTypedData(said, fields=[name])
