"""Conditions on what a call is given, or on the fields of typed data: `where: [{arg, op, value}]`.

Compiled once, when a rule is read, to the values that each argument may have. What cannot be read keeps no condition:
bytes that are not the one encoding of the declared types, a list that is too long or empty, an item that is not there.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from custody.chains.evm.address import keccak256, parse_address
from custody.kit.described import described
from custody.policies.kinds.argument_types import Shape, read_arguments, read_declaration
from custody.policies.types import InvalidPolicy

Op = Literal["eq", "ne", "lt", "lte", "gt", "gte", "in", "notIn"]
type Path = tuple[int | str, ...]
MAX_CONDITIONS: Final = 16
# Items of one list that a condition on each of them looks at; of a longer list it holds for none.
MAX_ITEMS: Final = 64
_EVERY, _LENGTH = "*", "#"
_STEP = re.compile(r"(?:^|\.)([A-Za-z_$][A-Za-z0-9_$]{0,63})|\[([0-9]{1,3}|\*)\]")
_INTEGER = re.compile(r"(u?)int([0-9]+)\Z")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,77})\Z")
_HEX = re.compile(r"0x(?:[0-9a-fA-F]{2})*\Z")
_SHOWN, _TOLD = 3, 80


class ConditionConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """One condition on one argument."""

    arg: Annotated[
        Annotated[str, Meta(max_length=128)],
        described("`to`, `order.amount`, `path[0]`, `path[*]` for each item, `path.length` for how many there are."),
    ]
    op: Annotated[Op, described("Only numbers are less or greater. `in` and `notIn` compare with `values`.")]
    value: Annotated[
        Annotated[str, Meta(max_length=1024)] | UnsetType,
        described("A number in decimal digits, an address, bytes in hex with `0x`, `true`, `false`, or a text."),
    ] = UNSET
    values: Annotated[list[Annotated[str, Meta(max_length=1024)]] | UnsetType, described("Several values.")] = UNSET


Where = Annotated[list[ConditionConfig], Meta(max_length=MAX_CONDITIONS)]


class Allowed(msgspec.Struct, frozen=True):
    """The values that one argument may have: what its conditions leave of its type."""

    arg: str
    type: str
    least: int
    most: int
    only: frozenset[Any] | None
    never: frozenset[Any] = frozenset()

    def holds(self, value: Any) -> bool:
        """Say whether the argument may be this."""
        if value in self.never or (self.only is not None and value not in self.only):
            return False
        return _bounds(self.type) is None or self.least <= value <= self.most

    def within(self, wide: "Allowed") -> bool:
        """Say whether what is allowed here is allowed there."""
        if self.only is not None:
            return all(map(wide.holds, self.only))
        narrower = wide.least <= self.least and self.most <= wide.most
        return wide.only is None and narrower and not any(map(self.holds, wide.never))

    def but(self, op: Op, values: Sequence[Any]) -> "Allowed":
        """The values that one more condition leaves."""
        least, most, only, never = self.least, self.most, self.only, self.never
        if op in ("eq", "in"):
            only = frozenset(values) if only is None else only & frozenset(values)
        elif op in ("ne", "notIn"):
            never |= frozenset(values)
        elif op in ("lt", "lte"):
            most = min(most, values[0] - (op == "lt"))
        else:
            least = max(least, values[0] + (op == "gt"))
        left = Allowed(self.arg, self.type, least, most, None, never)
        return left if only is None else msgspec.structs.replace(left, only=frozenset(filter(left.holds, only)))

    def __str__(self) -> str:
        """Tell people what the argument must be."""
        if self.only is not None:
            return _one_of(self.only, self.type)
        least, most = _bounds(self.type) or (self.least, self.most)
        said = [f"at least {self.least}"] * (self.least > least) + [f"at most {self.most}"] * (self.most < most)
        return " and ".join([*said, f"not {_one_of(self.never, self.type)}"] if self.never else said)


class Conditions(msgspec.Struct, frozen=True):
    """All conditions on one call, or on one kind of typed data, by the path to each argument."""

    declared: str
    shape: Shape
    allowed: dict[Path, Allowed]

    def breach_in_call(self, arguments: bytes) -> str | None:
        """Say why a call does not keep the conditions, or None."""
        read = read_arguments(self.shape, arguments)
        if read is None:
            name = self.declared.partition("(")[0]
            return f"its arguments are not those of {name}, or cannot be read, and `where` restricts them"
        return self.breach(read)

    def breach(self, values: Any) -> str | None:
        """Say which argument or field is not what it must be, or None."""
        for path, allowed in self.allowed.items():
            try:
                for value in _values_at(values, path):
                    if not allowed.holds(value):
                        return f"its `{allowed.arg}` is {_spell(value, allowed.type)}, and must be {allowed}"
            except LookupError:
                return f"its `{allowed.arg}` is not there, or has more than {MAX_ITEMS} items"
        return None

    def tightens(self, wide: "Conditions") -> bool:
        """Say whether what keeps these conditions keeps the wide ones: each is there, as strict or stricter."""
        return self.declared == wide.declared and all(
            path in self.allowed and self.allowed[path].within(other) for path, other in wide.allowed.items()
        )


def conditions_on(declared: str, where: Sequence[ConditionConfig], selector: str | None = None) -> Conditions:
    """The conditions on typed data of a kind, or on the calls of a selector; InvalidPolicy for what makes no sense."""
    name, shape = read_declaration(declared)
    signature = name + shape.spelled
    if selector is not None and (found := "0x" + keccak256(signature.encode())[:4].hex()) != selector:
        raise InvalidPolicy(f"`abi` is {signature[:_TOLD]} with the selector {found}, and stands at {selector}")
    allowed: dict[Path, Allowed] = {}
    for sent in where:
        path, leaf = _path(sent.arg, shape)
        both = frozenset({True, False}) if leaf == "bool" else None
        before = allowed.get(path, Allowed(sent.arg, leaf, *(_bounds(leaf) or (0, 0)), both))
        allowed[path] = left = before.but(sent.op, _values(sent, leaf))
        if left.only == frozenset() or left.least > left.most:
            raise InvalidPolicy(f"`where` has conditions on {sent.arg!r} that no value can keep together")
    return Conditions(declared, shape, allowed)


def _path(arg: str, shape: Shape) -> tuple[Path, str]:
    """The path to an argument, step by step, and its type."""
    path: Path = ()
    end = 0
    while (found := _STEP.match(arg, end)) is not None:
        name, index = found.groups()
        fields = dict(shape.fields)
        if name in fields:
            path, shape = (*path, name), fields[name]
        elif name == "length" and (shape.item is not None or shape.spelled == "bytes"):
            path, shape = (*path, _LENGTH), Shape("uint256")
        elif index and shape.item and (index == _EVERY or shape.count is None or int(index) < shape.count):
            path, shape = (*path, index if index == _EVERY else int(index)), shape.item
        else:
            break
        end = found.end()
    if end != len(arg) or shape.fields or shape.item is not None:
        raise InvalidPolicy(f"`where` names {arg!r}, and that is no single value of what is declared")
    return path, shape.spelled


def _values(sent: ConditionConfig, leaf: str) -> list[Any]:
    one = [sent.value] if isinstance(sent.value, str) else []
    several = sent.values if isinstance(sent.values, list) else []
    texts, others = (several, one) if sent.op in ("in", "notIn") else (one, several)
    if not texts or others or (sent.op in ("lt", "lte", "gt", "gte") and _bounds(leaf) is None):
        raise InvalidPolicy(
            f"`where` cannot compare {sent.arg!r}, a {leaf}, by {sent.op}: `in` and `notIn` need `values`, all others "
            "`value`, and only numbers are less or greater"
        )
    return [_value(sent.arg, leaf, text) for text in texts]


def _value(arg: str, leaf: str, text: str) -> Any:
    bounds = _bounds(leaf)
    if leaf == "address":
        return parse_address(text)
    if leaf == "bool" and text in ("true", "false"):
        return text == "true"
    if bounds is not None and _NUMBER.match(text) and bounds[0] <= int(text) <= bounds[1]:
        return int(text)
    if _HEX.match(text) and leaf in ("bytes", f"bytes{len(text) // 2 - 1}"):
        return bytes.fromhex(text[2:])
    if leaf == "string":
        return text
    raise InvalidPolicy(f"`where` compares {arg!r} with {text[:_TOLD]!r}, which is no {leaf}")


def _bounds(leaf: str) -> tuple[int, int] | None:
    """The least and the greatest number of a type; None of what is no number."""
    if (found := _INTEGER.match(leaf)) is None:
        return None
    least = 0 if found[1] else -(1 << int(found[2]) - 1)
    return least, least + (1 << int(found[2])) - 1


def _values_at(value: Any, path: Path) -> Iterator[Any]:
    """Give the values at the end of a path; LookupError where it leads nowhere."""
    for place, step in enumerate(path):
        if step == _EVERY:
            if not 0 < len(value) <= MAX_ITEMS:
                raise LookupError
            for one in value:
                yield from _values_at(one, path[place + 1 :])
            return
        value = len(value) if step == _LENGTH else value[step]
    yield value


def _one_of(values: frozenset[Any], leaf: str) -> str:
    shown = ", ".join(_spell(value, leaf) for value in sorted(values)[:_SHOWN])
    more = f" and {len(values) - _SHOWN} more" if len(values) > _SHOWN else ""
    return f"one of {shown}{more}" if len(values) > 1 else shown


def _spell(value: Any, leaf: str) -> str:
    """A value for people: text of others is written out, and what is long is cut."""
    text = f"0x{value.hex()}" if isinstance(value, bytes) else ascii(value) if leaf == "string" else str(value)
    return (text.lower() if leaf == "bool" else text) if len(text) <= _TOLD else f"{text[:_TOLD]}..."
