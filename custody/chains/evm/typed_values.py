"""The values of an EIP-712 document: each must fit its Solidity type exactly.

Values are first read into one normal form; hashing and judging both work on that, so they cannot disagree about
what a string of digits means.
"""

import re
from collections.abc import Mapping
from typing import Any

from custody.chains.evm.address import BadAddress, keccak256, parse_address
from custody.chains.evm.typed_schema import MAX_DEPTH, Kind, Schema, refuse

# An integer, a boolean, lower-case text of an address, text, bytes; or lists and mappings of these.
type Value = int | str | bytes | list[Value] | dict[str, Value]

_DECIMAL = re.compile(r"-?(0|[1-9][0-9]{0,77})")
_HEX_NUMBER = re.compile(r"0x[0-9a-fA-F]{1,64}")
_HEX_BYTES = re.compile(r"0x(?:[0-9a-fA-F]{2})*")


def fit_struct(schema: Schema, name: str, value: Any, where: str, depth: int = 1) -> dict[str, Value]:
    """Read what an object has for each field of the struct type; further keys are not hashed, and so not read."""
    if depth > MAX_DEPTH:
        refuse(f"{where} nests structs deeper than {MAX_DEPTH}.")
    if not isinstance(value, dict):
        refuse(f"{where} must be an object of type {name}.")
    fields = schema.structs[name]
    if missing := [field for field in fields if field not in value]:
        refuse(f"{where} lacks {missing[0]!r} of type {name}.")
    return {field: _fit(schema, kind, value[field], f"{where}.{field}", depth) for field, kind in fields.items()}


def hash_struct(schema: Schema, name: str, value: Mapping[str, Value], hashes: dict[str, bytes]) -> bytes:
    """The standard's `hashStruct`; `hashes` keeps the type hashes already made."""
    if name not in hashes:
        hashes[name] = schema.type_hash(name)
    words = [_encode(schema, kind, value[field], hashes) for field, kind in schema.structs[name].items()]
    return keccak256(hashes[name] + b"".join(words))


def only_hashed(schema: Schema, kind: Kind, value: Any) -> Any:
    """Reduce a value that fits to what is hashed, spelled as it was given."""
    if kind.sizes:
        return [only_hashed(schema, kind.item, item) for item in value]
    fields = schema.structs.get(kind.base)
    return value if fields is None else {name: only_hashed(schema, each, value[name]) for name, each in fields.items()}


def _fit_atom(kind: str, value: Any, where: str) -> Value:
    """Read one value of an elementary type."""
    if kind == "bool":
        return value if isinstance(value, bool) else refuse(f"{where} must be true or false.")
    if kind.startswith(("uint", "int")):
        return _fit_integer(kind, value, where)
    if not isinstance(value, str):
        refuse(f"{where} must be a string, as type {kind} needs.")
    if kind == "string":
        return _fit_text(value, where)
    return _fit_address(value, where) if kind == "address" else _fit_bytes(kind, value, where)


def _fit(schema: Schema, kind: Kind, value: Any, where: str, depth: int) -> Value:
    if not kind.sizes:
        known = kind.base in schema.structs
        return fit_struct(schema, kind.base, value, where, depth + 1) if known else _fit_atom(kind.base, value, where)
    size = kind.sizes[-1]
    if not isinstance(value, list) or (size is not None and len(value) != size):
        refuse(f"{where} must be an array of type {kind}" + (f" with {size} elements." if size else "."))
    return [_fit(schema, kind.item, item, f"{where}[{index}]", depth) for index, item in enumerate(value)]


def _fit_integer(kind: str, value: Any, where: str) -> int:
    number = _number(value)
    if number is None:
        refuse(f"{where} must be an integer: a JSON number without fraction, or a string in decimal or 0x hex.")
    bits = int(kind.removeprefix("u").removeprefix("int"))
    lowest, highest = (0, 2**bits - 1) if kind.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return number if lowest <= number <= highest else refuse(f"{where} does not fit {kind}.")


def _number(value: Any) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _DECIMAL.fullmatch(value) and value != "-0":
        return int(value)
    return int(value, 16) if isinstance(value, str) and _HEX_NUMBER.fullmatch(value) else None


def _fit_text(value: str, where: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        refuse(f"{where} is not valid Unicode.")
    return value


def _fit_address(value: str, where: str) -> str:
    try:
        return parse_address(value)
    except BadAddress as problem:
        refuse(f"{where}: {problem.message}")


def _fit_bytes(kind: str, value: str, where: str) -> bytes:
    if not _HEX_BYTES.fullmatch(value):
        refuse(f"{where} must be 0x and an even number of hex digits.")
    content = bytes.fromhex(value[2:])
    size = kind.removeprefix("bytes")
    return content if not size or len(content) == int(size) else refuse(f"{where} must have exactly {size} bytes.")


def _encode(schema: Schema, kind: Kind, value: Value, hashes: dict[str, bytes]) -> bytes:
    if isinstance(value, list):
        return keccak256(b"".join(_encode(schema, kind.item, item, hashes) for item in value))
    if isinstance(value, dict):
        return hash_struct(schema, kind.base, value, hashes)
    return _encode_atom(kind.base, value)


def _encode_atom(kind: str, value: bytes | str | int) -> bytes:
    """The 32 bytes that stand for a value that `_fit_atom` returned."""
    if isinstance(value, bytes):
        return keccak256(value) if kind == "bytes" else value.ljust(32, b"\0")
    if isinstance(value, str):
        return bytes.fromhex(value[2:]).rjust(32, b"\0") if kind == "address" else keccak256(value.encode())
    return value.to_bytes(32, signed=value < 0)
