"""Fields that may be sent in two spellings, camelCase and snake_case."""

from typing import Any

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
