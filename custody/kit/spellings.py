"""Fields that may be sent in two spellings, camelCase and snake_case."""

from typing import Any

from msgspec import Meta

from custody.kit.described import described
from custody.kit.errors import Invalid


class AliasConflict(Invalid):
    """A field was sent in both spellings with different values; send one of them."""


def either(name: str, first: Any, second: Any, *, absent: object = None) -> Any:
    """The value of a field with two spellings, or `absent`; AliasConflict where they differ."""
    if first is absent:
        return second
    if second is not absent and first != second:
        raise AliasConflict(f"{name} and its other spelling differ; send one of them.", fields=[name])
    return first


def both_spellings(field: str) -> str:
    """Spell a field for the wire, as a `rename`: `two_words` becomes twoWords, its twin `two_words_` two_words."""
    if field.endswith("_"):
        return field.removesuffix("_")
    first, *others = field.split("_")
    return first + "".join(map(str.capitalize, others))


def same_as(name: str) -> Meta:
    """Describe a field that is another one under a second name."""
    return described(f"The same as `{name}`.")
