"""An agent's rules in words, in the order in which they are judged. Pure; whatever is stored, it never raises.

Read beside decisions 3 of the rules' meaning: a hard rule refuses, a soft one asks a person, a disabled one judges
nothing, and an agent without rules is free.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from console.rules.rule_contracts import contract_allowlist
from console.rules.rule_limits import auto_approve_threshold, rate_limit, spending_limit
from console.rules.rule_places import allowed_chains, approved_addresses, time_window
from console.rules.rule_terms import Names, Terms
from console.texts.plain import clipped
from console.texts.said import Heading, Said
from console.wire.shapes import PolicyRule

_KINDS: Final[Mapping[str, tuple[str, Callable[[Terms], list[Said]]]]] = {
    "spending-limit": ("Spending limit", spending_limit),
    "approved-addresses": ("Approved addresses", approved_addresses),
    "auto-approve-threshold": ("Threshold for a person", auto_approve_threshold),
    "time-window": ("Time window", time_window),
    "rate-limit": ("Rate limit", rate_limit),
    "allowed-chains": ("Allowed chains", allowed_chains),
    "contract-allowlist": ("Contracts that may be called", contract_allowlist),
}
_SOFT: Final = frozenset({"auto-approve-threshold"})
_COVERING: Final = frozenset({"spending-limit", "auto-approve-threshold"})
_NAME_CHARACTERS: Final = 64
_RAW_CHARACTERS: Final = 4_000


def rules_in_words(rules: Sequence[PolicyRule], names: Names | None = None, *, raw: bool = False) -> list[Said]:
    """All of a set; with `raw` each rule also as it is stored."""
    lines: list[Said] = []
    for place, rule in enumerate(rules, 1):
        lines += [*rule_in_words(rule, names or Names(), place), *(_stored(rule) if raw else ()), Said("")]
    return [*lines, *meaning(rules)]


def rule_in_words(rule: PolicyRule, names: Names, place: int) -> list[Said]:
    """One rule: what it is, whether it counts, and its terms."""
    title, said = _KINDS.get(rule.type, (clipped(rule.type, _NAME_CHARACTERS), None))
    text = f"{place}. {title}: {_weight(rule)}"
    head = Heading(text) if rule.enabled else Said(text, "quiet")
    terms = Terms(rule.config, names)
    lines = said(terms) if said else [Said("this console does not know this type of rule", "warn")]
    said_all = [*lines, *terms.rest()]
    return [head, *(Said(f"   {line.text}", line.tone if rule.enabled else "quiet") for line in said_all)]


def meaning(rules: Sequence[PolicyRule]) -> list[Said]:
    """What the set as a whole means, where the single rules do not say it."""
    enabled = [rule for rule in rules if rule.enabled]
    if not enabled:
        what = "All of its rules are disabled" if rules else "It has no rules"
        free = "whatever this agent asks for is signed, and no person is asked"
        return [Said(f"{what}: {free}, unless this service was set up to refuse agents without rules.", "bad")]
    if any(rule.type in _COVERING for rule in enabled):
        rest = "What none of the limits and thresholds covers, such as another token, waits for a person"
        return [Said(f"{rest}, unless the tenant has it allowed or refused.", "quiet")]
    return [Said("No rule limits amounts or asks a person: what these rules let pass is signed.", "warn")]


def _weight(rule: PolicyRule) -> str:
    if not rule.enabled:
        return "DISABLED, it judges nothing"
    if rule.type not in _KINDS:
        return "enabled, what it does is not known here"
    return "enabled, soft: asks a person" if rule.type in _SOFT else "enabled, hard: refuses"


def _stored(rule: PolicyRule) -> list[Said]:
    document: dict[str, Any] = msgspec.to_builtins(rule)
    try:
        text = msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
    except (ValueError, TypeError, RecursionError):
        text = "It cannot be shown as JSON."
    return [Said(f"   | {line}", "quiet") for line in clipped(text, _RAW_CHARACTERS).split("\n")]
