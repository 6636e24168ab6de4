"""The kinds of values in files: how each is read, and when two of them say the same. Pure.

A kind decides what a text in a file is. Texts are taken exactly as they stand; numbers and yes or no only in their one
spelling, without quotes.
"""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from tenant_command.files import BadFile, Fields, Items, Node, Scalar

_NOTHING: Final = frozenset({"", "~", "null", "Null", "NULL"})
_WHOLE: Final = re.compile(r"0|-?[1-9][0-9]{0,18}")
_DECIMAL: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,15})\.[0-9]{1,15}")
_AMOUNT: Final = re.compile(r"0|[1-9][0-9]*")
# A plain text that one program reads as a number, a time or yes or no, and another as text.
_UNCLEAR: Final = re.compile(
    r"[-+]?(?:[0-9][0-9_,]*(?:\.[0-9_]*)?|\.[0-9_]+)(?:[eE][-+]?[0-9]+)?|[-+]?0[xob][0-9a-fA-F_]+|[-+]?\.(?:inf|nan)"
    r"|[0-9]+(?::[0-9]{1,2}){1,2}(?:\.[0-9]*)?|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt ].*)?"
    r"|y|n|yes|no|on|off|true|false|=",
    re.IGNORECASE,
)
_SHOWN: Final = 60
NOTHING: Final = object()


@dataclass(frozen=True)
class Place:
    """A place in a file, for messages."""

    file: str
    path: str = ""

    def field(self, name: str) -> "Place":
        """The place of a field."""
        return Place(self.file, f"{self.path}.{name}" if self.path else name)

    def item(self, number: int) -> "Place":
        """The place of an item of a list."""
        return Place(self.file, f"{self.path}[{number}]")

    def bad(self, line: int, problem: str) -> BadFile:
        """The failure of what stands here."""
        return BadFile(f"{self.file}, line {line}: {self.path + ' ' if self.path else 'this '}{problem}.")


class Kind:
    """A kind of value; by itself anything that YAML and JSON agree on."""

    def take(self, node: Node, place: Place) -> Any:
        """Read a value; raises BadFile."""
        match node:
            case Items():
                return [self.take(one, place.item(number)) for number, one in enumerate(node.of)]
            case Fields():
                return {name: self.take(one, place.field(name)) for name, one in node.of.items()}
            case Scalar(quoted=True):
                return node.text
            case Scalar(text=text) if text in _NOTHING:
                return None
            case Scalar(text="true" | "false" as text):
                return text == "true"
            case Scalar(text=text) if _WHOLE.fullmatch(text):
                return int(text)
            case Scalar(text=text) if _DECIMAL.fullmatch(text):
                return float(text)
        if _UNCLEAR.fullmatch(node.text):
            raise place.bad(
                node.line, f"is `{node.text[:_SHOWN]}`, which programs read differently: put it into quotes"
            )
        return node.text

    def canon(self, value: Any) -> Any:
        """The same for all spellings of one value."""
        return value

    def trim(self, value: Any) -> Any:
        """The value without what says nothing."""
        return value


@dataclass(frozen=True)
class Text(Kind):
    """A text, exactly as it stands. `folded`: case makes no difference."""

    folded: bool = False

    def take(self, node: Node, place: Place) -> Any:
        """Read it."""
        scalar = _scalar(node, place, "a text")
        if not scalar.quoted and scalar.text in _NOTHING:
            raise place.bad(scalar.line, "has no value: write it, in quotes where it looks like none")
        return scalar.text

    def canon(self, value: Any) -> Any:
        """The text, in lower case where case makes no difference."""
        return value.lower() if self.folded and isinstance(value, str) else value


@dataclass(frozen=True)
class Amount(Kind):
    """An amount in the smallest unit: digits, in quotes or not, and never rounded."""

    def take(self, node: Node, place: Place) -> Any:
        """Read it as the text that it is."""
        scalar = _scalar(node, place, "an amount")
        if not _AMOUNT.fullmatch(scalar.text):
            raise place.bad(scalar.line, f"is `{scalar.text[:_SHOWN]}`: write the amount in digits, all of them")
        return scalar.text


@dataclass(frozen=True)
class Whole(Kind):
    """A whole number."""

    def take(self, node: Node, place: Place) -> Any:
        """Read it."""
        scalar = _scalar(node, place, "a whole number")
        if scalar.quoted or not _WHOLE.fullmatch(scalar.text):
            raise place.bad(
                scalar.line, f"is `{scalar.text[:_SHOWN]}`: write a whole number, in digits, without quotes"
            )
        return int(scalar.text)


@dataclass(frozen=True)
class Chain(Kind):
    """A chain: a number, or a name."""

    def take(self, node: Node, place: Place) -> Any:
        """Read it."""
        scalar = _scalar(node, place, "a chain")
        if not scalar.quoted and _WHOLE.fullmatch(scalar.text):
            return int(scalar.text)
        if not scalar.quoted and (scalar.text in _NOTHING or _UNCLEAR.fullmatch(scalar.text)):
            raise place.bad(scalar.line, f"is `{scalar.text[:_SHOWN]}`: write the number of the chain in digits")
        return scalar.text


@dataclass(frozen=True)
class Flag(Kind):
    """Yes or no."""

    def take(self, node: Node, place: Place) -> Any:
        """Read it."""
        scalar = _scalar(node, place, "true or false")
        if scalar.quoted or scalar.text not in ("true", "false"):
            raise place.bad(scalar.line, f"is `{scalar.text[:_SHOWN]}`: write true or false, without quotes")
        return scalar.text == "true"


@dataclass(frozen=True)
class Moment(Text):
    """A date and time with its zone."""

    def canon(self, value: Any) -> Any:
        """The same moment, in one spelling."""
        try:
            found = datetime.fromisoformat(value)
        except (TypeError, ValueError):
            return value
        return value if found.tzinfo is None else found.astimezone(UTC).isoformat()


@dataclass(frozen=True)
class Certificate(Text):
    """A certificate, as PEM or as its base64 alone."""

    def canon(self, value: Any) -> Any:
        """The base64 alone."""
        return re.sub(r"-----[A-Z ]+-----|\s", "", value) if isinstance(value, str) else value


@dataclass(frozen=True)
class Maybe(Kind):
    """A value, or none."""

    of: Kind

    def take(self, node: Node, place: Place) -> Any:
        """Read it."""
        if isinstance(node, Scalar) and not node.quoted and node.text in _NOTHING:
            return None
        return self.of.take(node, place)

    def canon(self, value: Any) -> Any:
        """The one of the value."""
        return None if value is None else self.of.canon(value)

    def trim(self, value: Any) -> Any:
        """The one of the value."""
        return None if value is None else self.of.trim(value)


@dataclass(frozen=True)
class ListOf(Kind):
    """A list. `unordered`: the order makes no difference. `unique`: the field that names an item."""

    of: Kind
    unordered: bool = False
    unique: str | None = None
    # All that there is, which says the same as none.
    every: frozenset[str] = frozenset()

    def take(self, node: Node, place: Place) -> Any:
        """Read it."""
        if not isinstance(node, Items):
            raise place.bad(node.line, "is no list")
        found = [self.of.take(one, place.item(number)) for number, one in enumerate(node.of)]
        seen: dict[Any, int] = {}
        for number, one in enumerate(found if self.unique else ()):
            key = one[self.unique]
            if key in seen:
                first = f"{place.path}[{seen[key]}]"
                raise place.item(number).bad(node.of[number].line, f"has the same `{self.unique}` as {first}")
            seen[key] = number
        return found

    def canon(self, value: Any) -> Any:
        """Each of its items, in an order of their own where it makes no difference."""
        found = [self.of.canon(one) for one in value]
        if self.every and self.every <= {*found}:
            return None
        return sorted(found, key=repr) if self.unordered else found

    def trim(self, value: Any) -> Any:
        """Each of its items."""
        return [self.of.trim(one) for one in value]


@dataclass(frozen=True)
class MapOf(Kind):
    """Values by names that are not known before."""

    of: Kind

    def take(self, node: Node, place: Place) -> Any:
        """Read it."""
        if not isinstance(node, Fields):
            raise place.bad(node.line, "has no fields")
        return {name: self.of.take(one, place.field(name)) for name, one in node.of.items()}

    def canon(self, value: Any) -> Any:
        """Each of its values."""
        return {name: self.of.canon(one) for name, one in value.items()}

    def trim(self, value: Any) -> Any:
        """Each of its values."""
        return {name: self.of.trim(one) for name, one in value.items()}


@dataclass(frozen=True)
class Of:
    """A field: its kind, and what it is where it is left out. Without a default it must be there."""

    kind: Kind
    default: Any = NOTHING
    # Left out it is not looked at: there is no value that stands for it.
    open: bool = False

    @property
    def required(self) -> bool:
        """True if it must be there."""
        return self.default is NOTHING and not self.open


@dataclass(frozen=True)
class Record(Kind):
    """Fields by name. One that is not known is refused."""

    fields: Mapping[str, Of] = field(default_factory=dict)

    def take(self, node: Node, place: Place) -> Any:
        """Read it."""
        if not isinstance(node, Fields):
            raise place.bad(node.line, "has no fields")
        for name in node.of:
            if name not in self.fields:
                raise place.bad(node.lines[name], _no_field(name, self.fields))
        for name, one in self.fields.items():
            if one.required and name not in node.of:
                raise place.bad(node.line, f"lacks the field `{name}`")
        return {name: self.fields[name].kind.take(one, place.field(name)) for name, one in node.of.items()}

    def canon(self, value: Any) -> Any:
        """Each field that is there and says something, in the order of the names."""
        trimmed = self.trim(value)
        return {name: self._kind(name).canon(trimmed[name]) for name in sorted(trimmed)}

    def trim(self, value: Any) -> Any:
        """The fields that differ from their defaults, in the order in which they are known."""
        found = {}
        for name, one in self.fields.items():
            if name not in value:
                continue
            said = one.kind.trim(value[name]) if value[name] is not None else None
            if one.default is NOTHING or not self._is_default(one, said):
                found[name] = said
        # What a newer service has, as it is.
        return found | {name: said for name, said in value.items() if name not in self.fields}

    def _is_default(self, one: Of, said: Any) -> bool:
        return said is None or one.kind.canon(said) in (one.default, None)

    def _kind(self, name: str) -> Kind:
        return self.fields[name].kind if name in self.fields else Kind()


@dataclass(frozen=True)
class Variants(Kind):
    """One of several records, told apart by the field `type`."""

    of: Mapping[str, Record]

    def take(self, node: Node, place: Place) -> Any:
        """Read it."""
        if not isinstance(node, Fields):
            raise place.bad(node.line, "has no fields")
        kind = node.of.get("type")
        if not isinstance(kind, Scalar):
            raise place.bad(node.line, "lacks the field `type`")
        if kind.text not in self.of:
            near = _nearest(kind.text, self.of)
            known = f"did you mean `{near}`?" if near else f"the types are {', '.join(self.of)}"
            raise place.bad(kind.line, f"has the type `{kind.text[:_SHOWN]}`, which is not known; {known}".rstrip("?"))
        return self.of[kind.text].take(node, place)

    def canon(self, value: Any) -> Any:
        """The one of its record."""
        return self._record(value).canon(value)

    def trim(self, value: Any) -> Any:
        """The one of its record."""
        return self._record(value).trim(value)

    def _record(self, value: Any) -> Kind:
        return self.of.get(value.get("type"), Kind())


def _scalar(node: Node, place: Place, what: str) -> Scalar:
    if not isinstance(node, Scalar):
        raise place.bad(node.line, f"must be {what}")
    return node


def _no_field(name: str, known: Mapping[str, Of]) -> str:
    near = _nearest(name, known)
    return f"has no field `{name[:_SHOWN]}`; " + (
        f"did you mean `{near}`" if near else f"its fields are {', '.join(sorted(known))}"
    )


def _nearest(name: str, known: Mapping[str, Any]) -> str | None:
    folded = {one.lower(): one for one in known}
    found = difflib.get_close_matches(name[:_SHOWN].lower(), folded, 1)
    return folded[found[0]] if found else None
