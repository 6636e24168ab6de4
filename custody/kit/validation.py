"""Sentences about invalid input: each names the field and says what it must be.

The decoder's messages name Python's types and patterns, so only the place of the mistake is taken from them. The type
that was to be decoded tells what is valid, as it does for the contract.
"""

import difflib
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import inspect

from custody.kit.field_names import FIELD_NAMES

_SAID: Final = re.compile(r"(?P<said>.*) - at (?P<key>`key` in )?`\$(?P<path>[^`]*)`\Z", re.DOTALL)
_FIELD: Final = re.compile(r"Object (contains unknown|missing required) field `(.*)`", re.DOTALL)
_STEP: Final = re.compile(r"\.([^.\[]+\.?(?=[.\[]|\Z))|\[([0-9]+|\.\.\.)\]")
_UNIT: Final = re.compile(r"\bin (wei|lamports)\b")
# An amount as one would send it, by its unit: a coin, a thousandth of a SOL. Of most tokens a million is one.
_SUCH: Final = {"wei": "1000000000000000000", "lamports": "1000000"}
_SHOWN: Final = 128
# A type with more fields than this has none listed in the sentence about an unknown field.
_LISTED: Final = 16
_GOT: Final = {
    "str": "a text",
    "int": "a number",
    "float": "a number with a fraction",
    "bool": "true or false",
    "null": "null",
    "array": "a list",
    "object": "an object",
}
_TEXT: Final = "printable ASCII characters"
# Each pattern of a field that callers send, and whether its length goes without saying.
PATTERNS: Final[dict[str, tuple[str, bool]]] = {
    r"^(0|[1-9][0-9]*)\Z": ('a whole number{of} as a decimal string, such as "{such}"', True),
    r"^[0-9]*\Z": ("digits", False),
    r"^(tenant|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})\Z": ("a UUID in lower case, or `tenant`", True),
    r"^0x[0-9a-fA-F]{40}\Z": ("an EVM address: 0x and 40 hex digits", True),
    r"^[1-9A-HJ-NP-Za-km-z]+\Z": ("a Solana address in base58", False),
    r"^[0-9A-Za-z]+\Z": ("letters and digits", False),
    r"^[A-Za-z]+\Z": ("letters", False),
    r"^[A-Za-z0-9_+/-]+\Z": ("an IANA name, such as Europe/Berlin", False),
    r"^([01][0-9]|2[0-3]):[0-5][0-9]\Z": ("a time such as 22:00", True),
    r"^[A-Za-z0-9_-]{87}\Z": ("65 bytes in base64url without padding", True),
    r"^[A-Za-z0-9_-]{43}\Z": ("32 bytes in base64url without padding", True),
    r"^[A-Za-z0-9_-]{22}\Z": ("16 bytes in base64url without padding", True),
    r"^[A-Za-z0-9+/]{43}=\Z": ("32 bytes in standard base64", True),
    r"^[A-Za-z0-9+/]+={0,2}\Z": ("standard base64", False),
    r"^[\x20-\x7e]*\Z": ("printable ASCII characters", False),
    r"^[a-z-]+\Z": ("lower-case letters and hyphens", False),
    r"^[a-z_.]+\Z": ("lower-case letters, dots and underscores", False),
    r"^[A-Za-z0-9_\-.:]+\Z": ("letters, digits, dots, colons, hyphens and underscores", False),
    r"^\.*[A-Za-z0-9_\-:][A-Za-z0-9_\-.:]*\Z": (
        "letters, digits, dots, colons, hyphens and underscores, but not dots alone",
        False,
    ),
    r"^[A-Za-z0-9_-]+\Z": ("letters, digits, hyphens and underscores", False),
    r"^[A-Za-z0-9_.:-]+\Z": ("letters, digits, dots, colons, hyphens and underscores", False),
    r"^[A-Za-z0-9_.\[\]]+\Z": ("letters, digits, dots, underscores and brackets", False),
    r"^[A-Za-z0-9_+\-/]+\Z": ("letters, digits, plus signs, hyphens, underscores and slashes", False),
    r"^[A-Za-z][A-Za-z0-9-]*\Z": ("a letter, then letters, digits and hyphens", False),
    r"^[a-z0-9][a-z0-9_-]{2,63}\Z": ("3 to 64 lower-case letters, digits, hyphens and underscores", True),
    r"^[a-z0-9][a-z0-9_-]{0,31}\Z": (
        "1 to 32 lower-case letters, digits, hyphens and underscores, and begin with a letter or digit",
        True,
    ),
    r"^[A-Za-z0-9_\-.:~]+\Z": ("letters, digits, dots, colons, hyphens, underscores and tildes", False),
    r"^[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})+\Z": ("a domain in lower case, such as example.com", True),
    r"^[a-z][a-z0-9_-]{0,31}\Z": ("1 to 32 lower-case letters, digits, hyphens and underscores", True),
    r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z": (
        'a UUID in lower case, such as "3f2b8c1e-9d47-4a60-b7f5-2c1d8e9a0b34"',
        True,
    ),
    r"^[0-9a-f]{64}\Z": ("64 lower-case hex digits", True),
    r"^(0x)?[0-9a-fA-F]{8}\Z": ('the first 4 bytes of calldata in hex, such as "0xa9059cbb"', True),
    r"^(0x)?([0-9a-fA-F]{64})*([0-9a-fA-F]{2}){0,31}\Z": ('bytes in hex, such as "0x00ff"', False),
    r"^0x([0-9a-fA-F]{2})*\Z": ('0x and bytes in hex, such as "0x00ff"', False),
    r"^#[0-9a-fA-F]{6}\Z": ('a colour, such as "#1f6feb"', True),
    r"^[1-9][0-9]*[smhd]\Z": ('a duration in s, m, h or d, such as "15m"', True),
    r"^(\*|[A-Z]+)\Z": ('an HTTP method in capitals, or "*"', True),
    r"^[\x21-\x7e]+\Z": (f"{_TEXT} without spaces", False),
    r"^[\x21-\x7e]*\Z": (f"{_TEXT} without spaces", False),
    r"^[\x20-\x7e]+\Z": (_TEXT, False),
    r"^[^\x00]*\Z": ("a text without NUL characters", False),
    r"^[^\x00-\x1f\x7f]+\Z": ("a text in one line, without control characters", False),
    r"^[^\x00-\x1f\x7f]*\Z": ("a text in one line, without control characters", False),
    r"^[^\x00-\x08\x0b-\x1f\x7f]*\Z": ("a text without control characters", False),
}


class _Place(NamedTuple):
    """A value that may stand somewhere: its type, the unit of an amount, what it must be, an example."""

    node: inspect.Type
    unit: str = ""
    must: str = ""
    such: str = ""


class Wrong(msgspec.Struct, frozen=True):
    """The place of a mistake, the words on it, and the fields to name; `sentence` is both."""

    place: str
    says: str
    fields: list[str]

    def sentence(self, whole: str) -> str:
        """The sentence; `whole` is what a mistake without a field is one of, such as `The body`."""
        return f"{self.place or whole} {self.says}."


def explain(problem: msgspec.ValidationError, shape: Any) -> Wrong:
    """Explain a value that does not decode into `shape`."""
    found = _SAID.match(str(problem))
    said, path = (found["said"], found["path"]) if found else (str(problem), "")
    nodes = _at(shape, path)
    if found and found["key"]:
        nodes = [_Place(one.node.key_type) for one in nodes if isinstance(one.node, inspect.DictType)]
    place = path.lstrip(".")
    if field := _FIELD.match(said):
        return _misfit(field[1] == "missing required", field[2][:_SHOWN], place, path, shape)
    where = f"A key of {place}" if found and found["key"] else place
    return Wrong(where, f"must be {expectation(nodes, said)}{_not(said)}", [place] if place else [])


def must_be(shape: Any) -> str:
    """Say what a value of this type must be."""
    return f"must be {expectation(_at(shape, ''), '')}"


def expectation(nodes: Sequence[_Place], said: str) -> str:
    """Say what would pass in place of a value that the decoder refused with `said`."""
    literals: list[str] = []
    phrases: list[str] = []
    for one in nodes:
        if isinstance(one.node, inspect.LiteralType):
            literals += [msgspec.json.encode(value).decode() for value in one.node.values]
        elif (phrase := one.must or _phrase(one, "of length" in said)) not in phrases and phrase:
            phrases.append(phrase)
    if literals:
        phrases.insert(0, f"one of {', '.join(literals)}" if len(literals) > 1 else literals[0])
    return " or ".join(phrases) or "a value that the contract allows here"


def _not(said: str) -> str:
    got = _GOT.get(said.rpartition(", got `")[2].rstrip("`"))
    return f", not {got}" if got else ""


def _misfit(missing: bool, name: str, place: str, path: str, shape: Any) -> Wrong:
    """A field that is missing, or is there and should not be."""
    full = f"{place}.{name}" if place else name
    if missing:
        return Wrong(full, f"is missing; it must be {expectation(_at(shape, f'{path}.{name}'), '')}", [name])
    known = _names(shape, path)
    plain = {_plain(one): one for one in known}
    alike = difflib.get_close_matches(_plain(name), plain, n=1, cutoff=0.8)
    # Never to leave it out: of an order, something else could be signed without it.
    if meant := _meaning(shape, path, _plain(name)):
        says = f"is no field here; {meant}"
    elif alike:
        says = f'is no field here; call it "{plain[alike[0]]}"'
    elif 0 < len(known) <= _LISTED:
        says = f"is no field here. The fields are {', '.join(known)}"
    else:
        says = "is no field here"
    return Wrong(full, says, [name])


def _meaning(shape: Any, path: str, plain: str) -> str:
    """Say what another program's field is called here, or why it is none, in each struct that may stand here."""
    structs = [one.node for one in _at(shape, path) if isinstance(one.node, inspect.StructType)]
    found = [_NAMES[one.cls.__name__][plain] for one in structs if plain in _NAMES.get(one.cls.__name__, {})]
    return "; or ".join(dict.fromkeys(map(str, found)))


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


_NAMES: Final = {
    struct: {_plain(name): meaning for name, meaning in names.items()} for struct, names in FIELD_NAMES.items()
}


def _names(shape: Any, path: str) -> list[str]:
    names: dict[str, None] = {}
    for one in _at(shape, path):
        if isinstance(one.node, inspect.StructType):
            names |= dict.fromkeys(field.encode_name for field in one.node.fields)
    return list(names)


@cache
def _info(shape: Any) -> inspect.Type:
    return inspect.type_info(shape)


def _at(shape: Any, path: str) -> list[_Place]:
    """Find what may stand at a path; nothing where the path leads out of what is declared."""
    nodes = list(_flat(_Place(_info(shape))))
    for name, index in _STEP.findall(path):
        nodes = [flat for one in nodes for inner in _inner(one.node, name, index) for flat in _flat(_Place(inner))]
    return nodes


def _flat(place: _Place) -> Iterator[_Place]:
    node, unit, must, such = place
    if isinstance(node, inspect.Metadata):
        said, schema = (node.extra or {}).get("must", must).removeprefix("be "), node.extra_json_schema or {}
        yield from _flat(_Place(node.type, _unit(schema) or unit, said, str(schema.get("examples", [such])[0])))
    elif isinstance(node, inspect.UnionType):
        for one in node.types:
            yield from _flat(_Place(one, unit, must, such))
    elif not isinstance(node, inspect.NoneType):
        yield place


def _unit(schema: dict[str, Any]) -> str:
    """The unit of an amount, declared or in the words of its description."""
    if unit := schema.get("x-service-unit"):
        return str(unit)
    named = _UNIT.search(str(schema.get("description", "")))
    return named[1] if named else ""


def _inner(node: inspect.Type, name: str, index: str) -> Iterator[inspect.Type]:
    if isinstance(node, inspect.StructType) and name:
        if name == node.tag_field:
            yield inspect.LiteralType((node.tag,))
        yield from (field.type for field in node.fields if field.encode_name == name)
    elif isinstance(node, inspect.DictType):
        yield node.value_type
    elif isinstance(node, inspect.ListType | inspect.VarTupleType):
        yield node.item_type
    elif isinstance(node, inspect.TupleType) and index.isdigit() and int(index) < len(node.item_types):
        yield node.item_types[int(index)]


def _phrase(place: _Place, of_length: bool) -> str:
    node, unit = place.node, place.unit
    match node:
        case inspect.StrType(pattern=None):
            return "a text" + _size(node, "of", "characters")
        case inspect.StrType(pattern=pattern):
            words, short = PATTERNS.get(str(pattern), ("a text in the form that the contract shows", False))
            of = f" in the {unit.replace('`', '')}" if unit.startswith("smallest") else f" of {unit}" if unit else ""
            told = short and (not of_length or node.min_length == node.max_length)
            words = words.replace("{of}", of).replace("{such}", place.such or _SUCH.get(unit, "1000000"))
            return words + ("" if told else _size(node, ", of", "characters"))
        case inspect.IntType():
            return "a whole number" + _range(node)
        case inspect.FloatType():
            return "a number"
        case inspect.BoolType():
            return "true or false"
        case inspect.ListType() | inspect.VarTupleType():
            return "a list" + _size(node, "of", "items")
        case inspect.TupleType():
            return f"a list of {len(node.item_types)} items"
        case inspect.DictType():
            return "an object" + _size(node, "with", "fields")
        case inspect.StructType():
            return "an object"
        case _:
            return ""


type _Sized = inspect.StrType | inspect.ListType | inspect.VarTupleType | inspect.DictType


def _size(node: _Sized, word: str, what: str) -> str:
    """Say how long it may be, if that is bounded."""
    least, most = node.min_length or 0, node.max_length
    word = word if word.startswith(",") else f" {word}"
    if most is None:
        return f"{word} at least {least} {what}" if least else ""
    if least == most:
        return f"{word} {most} {what}"
    return f"{word} {least} to {most} {what}" if least else f"{word} at most {most} {what}"


def _range(node: inspect.IntType) -> str:
    if node.ge is not None and node.le is not None:
        return f" from {node.ge} to {node.le}"
    return f" of at least {node.ge}" if node.ge is not None else f" of at most {node.le}" if node.le is not None else ""
