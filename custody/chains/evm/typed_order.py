"""EIP-712 documents as they are asked for."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from custody.kit.described import described
from custody.kit.shapes import ReferenceId


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
