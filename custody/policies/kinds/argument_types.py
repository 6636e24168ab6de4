"""The types and names of a call's arguments, or of the fields of typed data, as a rule declares them.

Both are written as EIP-712 spells a type: `swap(Order order,uint256 least)Order(address token,uint256 amount)`. None is
taken on trust: of a call it must have the selector under which it stands, of typed data be the document's whole type.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import msgspec

from custody.chains.evm import abi
from custody.policies.types import InvalidPolicy

# Of a declaration: how deep it may nest, and the values that it has, each array of a fixed length counted through.
MAX_DEPTH: Final = 8
MAX_VALUES: Final = 256
# Of calldata: longer arguments are not read, and so no condition on them holds. Reading these takes half a millisecond.
MAX_ARGUMENTS: Final = 16 * 1024
_REMEMBERED: Final = 128
# Exchanges in daily use have the colon in names of types.
_TYPE_NAME, _NAME = "[A-Za-z_$][A-Za-z0-9_$:]{0,63}", "[A-Za-z_$][A-Za-z0-9_$]{0,63}"
_STRUCT = re.compile(rf"({_TYPE_NAME})\(([^()]{{1,4096}})\)")
_FIELD = re.compile(rf"({_TYPE_NAME})((?:\[(?:[1-9][0-9]{{0,2}})?\]){{0,4}}) ({_NAME})\Z")
_SHOWN: Final = 64


class Shape(msgspec.Struct, frozen=True, cache_hash=True):
    """One type: an elementary one, a struct by its fields, or an array of `count` items (None: any number).

    `spelled` is how a selector spells it, without names. A `dynamic` one has no fixed length: an offset stands for it.
    """

    spelled: str
    fields: tuple[tuple[str, "Shape"], ...] = ()
    item: "Shape | None" = None
    count: int | None = None
    dynamic: bool = False
    values: int = 1


_ATOMS = {name: Shape(name, dynamic=name not in abi.WORDS) for name in (*abi.WORDS, "bytes", "string")}


def read_declaration(text: str) -> tuple[str, Shape]:
    """Read a declaration, or raise InvalidPolicy; gives the name of the function or of the type, and what it holds."""
    structs: dict[str, str] = {}
    end = 0
    while (found := _STRUCT.match(text, end)) is not None:
        structs.setdefault(found[1], found[2])
        end = found.end()
    if end != len(text) or not structs:
        raise InvalidPolicy(
            f"{text[:_SHOWN]!r} must be spelled as `swap(Order order)Order(address token,uint256 amount)`"
        )
    name = next(iter(structs))
    return name, _struct(name, structs, MAX_DEPTH + 1)


@lru_cache(_REMEMBERED)
def read_arguments(shape: Shape, body: bytes) -> dict[str, Any] | None:
    """The arguments by name; None for bytes that are not their one canonical encoding, whole and clean.

    Remembered, because the judge asks several times for one call.
    """
    if len(body) > MAX_ARGUMENTS:
        return None
    try:
        read = abi.decode([part for _, field in shape.fields for part in _row(field)], body)
        values = iter(read.values)
        return None if read.dirty or read.behind else {name: _tree(field, values) for name, field in shape.fields}
    except (abi.NotCanonical, UnicodeDecodeError):
        return None


def _row(shape: Shape) -> list[abi.Type]:
    """Spell a type as the reader of calldata takes it: what has a fixed length stands in one row of words."""
    if shape.item is not None:
        inner = _row(shape.item)
        parts: list[abi.Type] = [inner] if shape.count is None else inner * shape.count
        return parts if shape.count is None or not shape.dynamic else [tuple(parts)]
    parts = [part for _, field in shape.fields for part in _row(field)] or [shape.spelled]
    return [tuple(parts)] if shape.fields and shape.dynamic else parts


def _tree(shape: Shape, row: Iterator[Any]) -> Any:
    """Take a value out of a row of words, as `_row` laid it out."""
    if shape.item is None and not shape.fields:
        return next(row).decode() if shape.spelled == "string" else next(row)
    inner = next(row) if shape.dynamic else ()
    row = iter(inner) if shape.dynamic else row
    if shape.item is None:
        return {name: _tree(field, row) for name, field in shape.fields}
    count = shape.count if shape.count is not None else len(inner) // len(_row(shape.item))
    return [_tree(shape.item, row) for _ in range(count)]


def _struct(name: str, structs: dict[str, str], depth: int) -> Shape:
    """Build a struct. Counting as it goes: one that holds others many times is not built to its end."""
    if not depth:
        raise InvalidPolicy(f"{name!r} holds itself, or is nested deeper than {MAX_DEPTH}")
    fields: dict[str, Shape] = {}
    values = 0
    for text in structs[name].split(","):
        found = _FIELD.match(text)
        if found is None or not (found[1] in structs or found[1] in _ATOMS) or found[3] in fields:
            raise InvalidPolicy(f"{name!r} has {text[:_SHOWN]!r} where a known type and a name of its own must be")
        shape = _struct(found[1], structs, depth - 1) if found[1] in structs else _ATOMS[found[1]]
        for size in re.findall(r"\[([0-9]*)\]", found[2]):
            count = int(size) if size else None
            dynamic = count is None or shape.dynamic
            shape = Shape(f"{shape.spelled}[{size}]", (), shape, count, dynamic, shape.values * (count or 1))
        fields[found[3]] = shape
        values += shape.values
        if values > MAX_VALUES:
            raise InvalidPolicy(f"{name!r} holds more than {MAX_VALUES} values")
    spelled = ",".join(field.spelled for field in fields.values())
    dynamic = any(field.dynamic for field in fields.values())
    return Shape(f"({spelled})", tuple(fields.items()), dynamic=dynamic, values=values)
