"""The types of an EIP-712 document: checked, and spelled as the standard hashes them.

Names go into the hashed type string, so a name with a bracket or a comma could spell another type; only plain
identifiers pass.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NoReturn

import msgspec

from custody.chains.evm.address import keccak256
from custody.chains.evm.typed_order import TypedDataField
from custody.kit.errors import Invalid

DOMAIN_TYPE = "EIP712Domain"
MAX_TYPES = 64
MAX_FIELDS = 64
# Hashing spells every type out with all that it refers to, so the work grows with types times fields.
MAX_FIELDS_IN_ALL = 256
MAX_DEPTH = 8

_WIDTHS = range(8, 257, 8)
ATOMS = frozenset(
    ["address", "bool", "string", "bytes"]
    + [f"{sign}int{bits}" for sign in ("u", "") for bits in _WIDTHS]
    + [f"bytes{size}" for size in range(1, 33)]
)
# A struct with such a name would read as an elementary type that does not exist.
_RESERVED = re.compile(r"(u?int|u?fixed|bytes)[0-9x]*|address|bool|string|byte|function|mapping")
# The colon is not in the standard, but exchanges in daily use have it in their type names.
_TYPE_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$:]*")
_FIELD_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_FIELD_TYPE = re.compile(r"([^\[\]]+)((?:\[(?:[1-9][0-9]{0,4})?\])*)")


class BadTypedData(Invalid):
    """Not a valid EIP-712 document."""


def refuse(sentence: str) -> NoReturn:
    """Refuse the document, saying what to fix."""
    raise BadTypedData(sentence)


class Kind(msgspec.Struct, frozen=True):
    """The type of a field: an elementary type or struct, and its array sizes from the inside out (None: any)."""

    base: str
    sizes: tuple[int | None, ...] = ()

    def __str__(self) -> str:
        return self.base + "".join(f"[{size or ''}]" for size in self.sizes)

    @property
    def item(self) -> "Kind":
        """The type of one element of this array."""
        return Kind(self.base, self.sizes[:-1])


class Schema(msgspec.Struct, frozen=True):
    """The struct types that a document uses."""

    structs: Mapping[str, Mapping[str, Kind]]

    def reachable(self, name: str) -> set[str]:
        """A struct type and everything it is made of."""
        found, waiting = set[str](), [name]
        while waiting:
            current = waiting.pop()
            if current not in found:
                found.add(current)
                waiting += [kind.base for kind in self.structs[current].values() if kind.base in self.structs]
        return found

    def encode_type(self, name: str) -> str:
        """The standard's `encodeType`: the type itself, then what it refers to, sorted."""
        return "".join(self.definition(each) for each in [name, *sorted(self.reachable(name) - {name})])

    def type_hash(self, name: str) -> bytes:
        """The standard's `typeHash`."""
        return keccak256(self.encode_type(name).encode())

    def definition(self, name: str) -> str:
        """One struct type by itself, as `encodeType` spells it."""
        fields = ",".join(f"{kind} {field}" for field, kind in self.structs[name].items())
        return f"{name}({fields})"


def read_schema(types: Mapping[str, Sequence[TypedDataField]], name: str) -> Schema:
    """Check a struct type and all that it refers to; other types are not hashed, and so nobody reads them."""
    structs: dict[str, dict[str, Kind]] = {}
    waiting = [name]
    while waiting:
        current = waiting.pop()
        if current not in structs:
            structs[current] = _read_struct(current, types[current], types)
            waiting += [kind.base for kind in structs[current].values() if kind.base in types]
    return Schema(structs)


def check_types(types: Mapping[str, Sequence[TypedDataField]]) -> None:
    """Count the types and their fields, and read none of them."""
    # EIP712Domain may be among them, with fields of its own choice.
    if len(types) - (DOMAIN_TYPE in types) > MAX_TYPES:
        refuse(f"types has more than {MAX_TYPES} entries.")
    if sum(len(fields) for name, fields in types.items() if name != DOMAIN_TYPE) > MAX_FIELDS_IN_ALL:
        refuse(f"types has more than {MAX_FIELDS_IN_ALL} fields in all.")
    if len(types.get(DOMAIN_TYPE, ())) > MAX_FIELDS:
        refuse(f"types.{DOMAIN_TYPE} has more than {MAX_FIELDS} fields.")


def _read_struct(
    name: str, fields: Sequence[TypedDataField], types: Mapping[str, Sequence[TypedDataField]]
) -> dict[str, Kind]:
    if not _TYPE_NAME.fullmatch(name) or _RESERVED.fullmatch(name):
        refuse(f"{name!r} cannot name a struct type.")
    # A domain without fields is hashed like any other.
    if not (name != DOMAIN_TYPE) <= len(fields) <= MAX_FIELDS:
        refuse(f"Type {name} must have between 1 and {MAX_FIELDS} fields.")
    read: dict[str, Kind] = {}
    for field in fields:
        if not _FIELD_NAME.fullmatch(field.name):
            refuse(f"Type {name} has a field {field.name!r}, which is not an identifier.")
        if field.name in read:
            refuse(f"Type {name} has two fields named {field.name!r}.")
        read[field.name] = _read_kind(field.type, f"{name}.{field.name}", types)
    return read


def _read_kind(text: str, where: str, types: Mapping[str, Sequence[TypedDataField]]) -> Kind:
    match = _FIELD_TYPE.fullmatch(text)
    if match is None or (match[1] not in ATOMS and match[1] not in types):
        refuse(f"{where} has type {text!r}, which is neither elementary nor in types.")
    sizes = tuple(int(size) if size else None for size in match[2][1:-1].split("][")) if match[2] else ()
    if len(sizes) > MAX_DEPTH:
        refuse(f"{where} nests arrays deeper than {MAX_DEPTH}.")
    return Kind(match[1], sizes)
