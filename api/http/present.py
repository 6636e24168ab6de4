"""A parameter of a query has a value of its kind, or it is left out.

`null`, `None` and nothing at all are values like others. They are what JavaScript and Python write for "no filter", and
read as one a search would answer with everything.
"""

import functools
import operator
import typing
from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Any

import msgspec

# What clients write where they mean to leave a parameter out.
_NOTHING = frozenset({"", "null", "none", "nil", "undefined"})


@functools.cache
def present(shape: Any) -> Any:
    """The same shape of a query, in which no value means that a parameter was not sent."""
    fields = [(field.name, _present(field.type), _default(field)) for field in msgspec.structs.fields(shape)]
    return msgspec.defstruct(shape.__name__, fields, bases=(shape,), frozen=True, kw_only=True)


def sentence_of(shape: Any, name: str, value: object, otherwise: str) -> str:
    """Why a value of a parameter is refused, and what to do: what its kind says of itself, else the sentence given."""
    field = next((field for field in msgspec.structs.fields(shape) if field.encode_name == name), None)
    if field is None:
        return otherwise
    must = _must(_present(field.type))
    sentence = otherwise if must is None else f"{name} must {must}."
    if isinstance(value, str) and value.lower() in _NOTHING and not field.required:
        return f"{sentence.removesuffix('.')}; leave {name} out if you mean none."
    return sentence


def _must(kind: Any) -> str | None:
    """Find the sentence on what values of a kind must be, at any depth of its annotations."""
    said = (part.extra or {} for part in _parts(kind) if isinstance(part, msgspec.Meta))
    return next((extra["must"] for extra in said if "must" in extra), None)


def _parts(kind: Any) -> Iterator[Any]:
    for part in typing.get_args(kind):
        yield part
        yield from _parts(part)


def _present(kind: Any) -> Any:
    if typing.get_origin(kind) is Annotated:
        inner, *said = typing.get_args(kind)
        return functools.reduce(lambda made, one: Annotated[made, one], said, _present(inner))
    if typing.get_origin(kind) in (typing.Union, UnionType):
        options = (_present(part) for part in typing.get_args(kind) if part is not NoneType)
        return functools.reduce(operator.or_, options)
    return kind


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return msgspec.field(name=field.encode_name, default_factory=field.default_factory)
    if field.default is not msgspec.NODEFAULT:
        return msgspec.field(name=field.encode_name, default=field.default)
    return msgspec.field(name=field.encode_name)
