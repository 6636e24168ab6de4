"""Comparing what a file says with what there is, field by field. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from tenant_command.kinds import Record
from tenant_command.tenant_file.rule_shape import RULES
from tenant_command.tenant_file.state import Item

Rule = dict[str, Any]


@dataclass(frozen=True)
class Change:
    """One field that differs; None where it is not said."""

    field: str
    before: Any
    after: Any


def changes(kind: Record, wanted: dict[str, Any], present: dict[str, Any], *apart: str) -> list[Change]:
    """Every field in which the two differ, but for those `apart`; what a file may leave out is then left alone."""
    before, after = kind.canon(present), kind.canon(wanted)
    found = []
    for name in kind.fields:
        alone = name in apart or (kind.fields[name].open and name not in wanted)
        if not alone and before.get(name) != after.get(name):
            found.append(Change(name, kind.trim(present).get(name), kind.trim(wanted).get(name)))
    return found


def pairs(
    kind: Record, wanted: Sequence[dict[str, Any]], present: Sequence[Item], key: tuple[str, ...]
) -> list[tuple[int | None, Item | None]]:
    """Pair what a file names with what there is: the numbers of the file's items, each with its counterpart.

    What has no name of its own is paired where all is equal first, then where the fields of `key` are.
    """
    left = list(present)
    found: dict[int, Item] = {}
    for fields in (tuple(kind.fields), key):
        for number, one in enumerate(wanted):
            if number in found:
                continue
            for item in left:
                if _is_equal(kind, one, item.said, fields):
                    found[number] = item
                    left.remove(item)
                    break
    return [*((number, found.get(number)) for number in range(len(wanted))), *((None, item) for item in left)]


def _is_equal(kind: Record, one: dict[str, Any], other: dict[str, Any], fields: tuple[str, ...]) -> bool:
    differing = {change.field for change in changes(kind, one, other)}
    return not differing & {*fields}


def rule_pairs(wanted: Sequence[Rule], present: Sequence[Rule]) -> list[tuple[Rule | None, Rule | None]]:
    """Pair the rules of two sets: by id, then what is equal, then what is most alike of one type."""
    left = list(present)
    found: dict[int, Rule] = {}

    def take(number: int, rule: Rule | None) -> None:
        if rule is not None:
            found[number] = rule
            left.remove(rule)

    for number, one in enumerate(wanted):
        if one.get("id") is not None:
            take(number, next((rule for rule in left if rule["id"] == one["id"]), None))
    for number, one in enumerate(wanted):
        if number not in found and one.get("id") is None:
            take(number, next((rule for rule in left if canon_rule(rule) == canon_rule(one)), None))
    for number, one in enumerate(wanted):
        if number not in found and one.get("id") is None:
            alike = [rule for rule in left if rule["type"] == one["type"]]
            take(number, max(alike, key=lambda rule: _likeness(rule, one), default=None))
    return [*((one, found.get(number)) for number, one in enumerate(wanted)), *((None, rule) for rule in left)]


def rules_to_send(wanted: Sequence[Rule], present: Sequence[Rule]) -> list[Rule]:
    """The rules of a file, each with the id that its counterpart has: what refers to a rule goes on doing so."""
    found = []
    for one, other in rule_pairs(wanted, present):
        if one is not None:
            made = {"type": one["type"], "enabled": one.get("enabled", True), "config": one["config"]}
            identity = one.get("id") or (other or {}).get("id")
            found.append(made | ({"id": identity} if identity else {}))
    return found


def is_same_set(wanted: Sequence[Rule], present: Sequence[Rule]) -> bool:
    """Tell whether two sets have the same rules in the same order; an id counts where the file has it."""
    if len(wanted) != len(present):
        return False
    return all(
        canon_rule(one) == canon_rule(other) and one.get("id") in (None, other["id"])
        for one, other in zip(wanted, present, strict=True)
    )


def canon_rule(rule: Rule) -> Any:
    """The same for all spellings of one rule, whatever its id."""
    return RULES.of.canon({name: value for name, value in rule.items() if name != "id"})


def digest_text(value: Any) -> bytes:
    """The same bytes for the same data."""
    return msgspec.json.encode(value, order="sorted")


def _likeness(one: Rule, other: Rule) -> int:
    return sum(other["config"].get(name) == value for name, value in one["config"].items())
