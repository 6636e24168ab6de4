"""Rules of a file as the console compares and names them. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from console.rules.looser import is_voted_on, looser
from console.rules.rules_in_words import KINDS
from tenant_command.tenant_file.comparing import Rule, rules_to_send
from words.shapes import PolicyRule
from words.texts.plain import clip

_SHOWN: Final = 80


def looser_rules(wanted: Sequence[Rule], present: Sequence[Rule]) -> list[str]:
    """Name what becomes looser; an empty list says that nothing does."""
    return looser(_shapes(present), _shapes(rules_to_send(wanted, present)))


def needs_votes(wanted: Sequence[Rule], present: Sequence[Rule]) -> bool:
    """Tell whether the service wants votes for it."""
    return is_voted_on(_shapes(present)) and bool(looser_rules(wanted, present))


def title_of(rule: Mapping[str, Any]) -> str:
    """A rule in two or three words, with what it is about."""
    known = KINDS.get(rule["type"])
    title = known[0].lower() if known else clip(str(rule["type"]), _SHOWN)
    about = rule["config"].get("asset") or rule["config"].get("policySet")
    return f"{title} ({clip(str(about), _SHOWN)})" if about else title


def shape_of(rule: Rule) -> PolicyRule:
    """A rule as the console reads it."""
    return PolicyRule(rule["type"], rule.get("enabled", True), rule["config"], rule.get("id"))


def _shapes(rules: Sequence[Rule]) -> list[PolicyRule]:
    return [shape_of(rule) for rule in rules]
