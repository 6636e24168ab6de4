"""A plan in words, and as data. Pure."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from console.rules.rule_terms import Names
from console.rules.rules_in_words import rule_in_words
from tenant_command.tenant_file.compared_rules import shape_of
from tenant_command.tenant_file.comparing import Change
from tenant_command.tenant_file.planning import WORDS
from tenant_command.tenant_file.secret_references import is_there, place_of
from tenant_command.tenant_file.steps import Plan, Step, Who
from words.texts.plain import clip

_SHOWN: Final = 160
_SIGNS: Final = {"make": "+ make", "change": "~ change", "delete": "- delete"}


def name_of(step: Step) -> str:
    """Name what a step is about."""
    what = WORDS[step.section]
    if step.watches.startswith("policies/"):
        what = f"rules of {what}"
    return f"{what} {step.name}" if step.name else what


def plan_in_words(plan: Plan, who: Who, folder: Path) -> list[str]:
    """Write down what is made, changed, deleted and left, who is affected, and what becomes looser."""
    lines: list[str] = []
    for step in plan.steps:
        lines += [f"{_SIGNS[step.verb]} {name_of(step)}", *(f"    {line}" for line in _details(step, plan, folder))]
    lines += [f"  leave {one} (not in the file)" for one in plan.kept]
    lines += [f"  note: {note}" for note in plan.notes]
    if lines:
        lines.append("")
    return [*lines, *summary(plan, who)]


def summary(plan: Plan, who: Who) -> Iterator[str]:
    """Count it all, and say what must be shown or agreed to before it is done."""
    counts = {verb: sum(step.verb == verb for step in plan.steps) for verb in ("make", "change", "delete")}
    same = sum(plan.same.values())
    if not plan.steps:
        yield f"Nothing to do: {same:,} {'thing is' if same == 1 else 'things are'} as the file says."
        return
    counted = ", ".join(f"{number} to {verb}" for verb, number in counts.items())
    yield f"{counted}, {same:,} as the file says."
    if looser := sum(bool(step.looser) for step in plan.steps):
        yield f"{looser} of these make something looser: read the lines that begin with LOOSER."
    if factor := sum(step.action in who.factor_for for step in plan.steps):
        yield f"{factor} of these need a recent second factor of yours."
    for step in plan.steps:
        if step.votes:
            yield (
                f"{name_of(step)} loosens rules that votes guard: the service refuses it until enough of the named "
                "people voted for it, so it is sent last."
            )


def plan_as_data(plan: Plan, who: Who, folder: Path) -> dict[str, Any]:
    """The same for programs."""
    return {
        "steps": [
            {
                "verb": step.verb,
                "section": step.section,
                "name": step.name,
                "what": name_of(step),
                "changes": [
                    {"field": change.field, "before": change.before, "after": change.after} for change in step.changes
                ],
                "rules": list(step.rules),
                "affects": step.affects,
                "looser": list(step.looser),
                "needsSecondFactor": step.action in who.factor_for,
                "needsVotes": step.votes,
            }
            for step in plan.steps
        ],
        "same": plan.same,
        "left": plan.kept,
        "notes": plan.notes,
        "problems": plan.problems,
        "missingValues": missing_values(plan, folder),
    }


def missing_values(plan: Plan, folder: Path) -> list[str]:
    """Name the secrets that are to be made, and whose values are not where the file says."""
    return [
        f"secret {name!r}: nothing is in {place_of(reference)}"
        for name, reference in plan.values.items()
        if not is_there(reference, folder)
    ]


def _details(step: Step, plan: Plan, folder: Path) -> Iterator[str]:
    for place, rule in enumerate(step.rules, 1):
        if rule["type"] == "policy-set":
            yield f"{place}. The rules of the policy set {rule['config']['policySet']}"
            continue
        yield from (line.text for line in rule_in_words(shape_of(rule), Names(), place))
    if step.section == "secrets" and step.verb == "make":
        reference = plan.values[step.name]
        yield f"its value: from {place_of(reference)}" + ("" if is_there(reference, folder) else ", which has none now")
    for change in step.changes:
        yield from _change(change.field, change)
    if step.affects:
        yield f"affects: {step.affects}"
    yield from (f"LOOSER: {one}" for one in step.looser)


def _change(field: str, change: Change) -> Iterator[str]:
    """One field, or each field within it that differs."""
    before, after = change.before, change.after
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted(before.keys() | after.keys()):
            if before.get(name) != after.get(name):
                yield from _change(f"{field}.{name}", Change(name, before.get(name), after.get(name)))
    elif before is None and after is None:
        yield field
    else:
        yield f"{field}: {_json(before)} -> {_json(after)}"


def _json(value: Any) -> str:
    return "(nothing said)" if value is None else clip(msgspec.json.encode(value).decode(), _SHOWN)
