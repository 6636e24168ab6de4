"""A change of an agent's rules as a difference: what goes, what comes, what becomes another. Pure.

Rules are compared with those of now. Whatever is stored in a payload, this never raises: what is no rule is said to be
none.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from console.intents.rule_sets import changed_set
from console.rules.rule_terms import Names
from console.rules.rules_in_words import meaning, rule_in_words
from words.shapes import PolicyRule
from words.texts.lines import Heading, Line

_UNKNOWN: Final = [Line("The rules as they are now are not known, so no difference can be shown.", "bad")]


def rule_changes(
    kind: str, payload: dict[str, Any], now: Sequence[PolicyRule] | None, names: Names | None = None
) -> list[Line]:
    """Compare a policy intent with the rules that an agent has now."""
    names = names or Names()
    if now is None:
        return _UNKNOWN
    then = changed_set(kind, payload, now)
    if then is None:
        return [Line("This change fits no rule that the agent has now; executed, it fails.", "bad")]
    gone = [rule for rule in now if rule.id not in {one.id for one in then}]
    come = [rule for rule in then if rule.id not in {one.id for one in now}]
    before = {rule.id: rule for rule in now}
    other = [rule for rule in then if rule.id in before and not _same(before[rule.id], rule)]
    kept = len(then) - len(come) - len(other)
    lines: list[Line] = []
    lines += _part("Goes", gone, names, "warn")
    lines += _part("Comes", come, names, None)
    for rule in other:
        lines += _part("Is now", [before[rule.id]], names, "quiet") + _part("Becomes", [rule], names, None)
    if not lines:
        lines.append(Line("Nothing changes: the agent has these rules already.", "quiet"))
    lines.append(Line(f"{kept} of {len(now)} rules stay as they are.", "quiet"))
    return [*lines, *meaning(then)]


def _part(title: str, rules: Sequence[PolicyRule], names: Names, tone: Any) -> list[Line]:
    lines: list[Line] = []
    for place, rule in enumerate(rules, 1):
        lines.append(Heading(title))
        lines += [Line(one.text, tone or one.tone) for one in rule_in_words(rule, names, place)]
    return lines


def _same(one: PolicyRule, other: PolicyRule) -> bool:
    return (one.type, one.enabled, msgspec.to_builtins(one.config)) == (
        other.type,
        other.enabled,
        msgspec.to_builtins(other.config),
    )
