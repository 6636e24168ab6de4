"""The meaning of a field, for the contract: said beside the field, for readers of the code and of the API."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta


def described(
    text: str, *, unit: str | None = None, default: object = UNSET, format: str | None = None, such: str | None = None
) -> Meta:
    """Describe a field; the default is that of a field not sent, the format one of JSON Schema's names.

    `such` is a value as one would send it, for amounts that are unlike others of their unit.
    """
    said = {"x-service-unit": unit, "format": format, "examples": None if such is None else [such]}
    more: dict[str, object] = {name: value for name, value in said.items() if value}
    return Meta(description=text, extra_json_schema=more | ({} if default is UNSET else {"default": default}))


class InContract(msgspec.Struct, frozen=True):
    """The declaration of a struct for the contract, as `contract: ClassVar`, beyond what its decoder asks.

    `needed`: fields that a sentence asks for, not the decoder. `same`: fields that are others by another name, with the
    name that is taught. `one_of`: the structs that callers choose from.
    """

    needed: tuple[str, ...] = ()
    same: dict[str, str] = {}
    one_of: tuple[type[msgspec.Struct], ...] = ()


# Types of what answers show. They check nothing: the contract alone reads them.
Instant = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Id = Annotated[str, Meta(extra_json_schema={"format": "uuid"})]
