"""An agent's rules in words, in the order in which they are judged. Pure; whatever is stored, it never raises.

A hard rule refuses, a soft one asks a person, a disabled one judges nothing, and an agent without rules is free.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from console.rules.rule_contracts import contract_allowlist
from console.rules.rule_limits import (
    auto_approve_threshold,
    circuit_breaker,
    delay,
    external_check,
    rate_limit,
    spending_limit,
)
from console.rules.rule_messages import message_allowlist
from console.rules.rule_places import allowed_chains, approved_addresses, new_recipient, time_window
from console.rules.rule_quorum import approval_quorum
from console.rules.rule_terms import Names, Terms
from words.shapes import PolicyRule
from words.texts.lines import Heading, Line
from words.texts.plain import clip

KINDS: Final[Mapping[str, tuple[str, Callable[[Terms], list[Line]]]]] = {
    "spending-limit": ("Spending limit", spending_limit),
    "approved-addresses": ("Approved addresses", approved_addresses),
    "auto-approve-threshold": ("Threshold for a person", auto_approve_threshold),
    "time-window": ("Time window", time_window),
    "rate-limit": ("Rate limit", rate_limit),
    "allowed-chains": ("Allowed chains", allowed_chains),
    "approval-quorum": ("Votes of named people", approval_quorum),
    "message-allowlist": ("Messages", message_allowlist),
    "contract-allowlist": ("Contracts that may be called", contract_allowlist),
    "new-recipient": ("New recipients", new_recipient),
    "delay": ("Delay", delay),
    "circuit-breaker": ("Circuit breaker", circuit_breaker),
    "external-check": ("External check", external_check),
}
_SOFT: Final = frozenset(
    {"auto-approve-threshold", "approval-quorum", "message-allowlist", "new-recipient", "delay", "circuit-breaker"}
)
COVERING: Final = frozenset({"spending-limit", "auto-approve-threshold"})
_NAME_CHARACTERS: Final = 64
_RAW_CHARACTERS: Final = 4_000


def rules_in_words(rules: Sequence[PolicyRule], names: Names | None = None, *, raw: bool = False) -> list[Line]:
    """All of a set; with `raw` each rule also as it is stored."""
    lines: list[Line] = []
    for place, rule in enumerate(rules, 1):
        lines += [*rule_in_words(rule, names or Names(), place), *(_as_json(rule) if raw else ()), Line("")]
    return [*lines, *meaning(rules)]


def rule_in_words(rule: PolicyRule, names: Names, place: int) -> list[Line]:
    """One rule: what it is, whether it counts, and its terms."""
    title, said = KINDS.get(rule.type, (clip(rule.type, _NAME_CHARACTERS), None))
    whose = "; not set by the tenant" if rule.source == "agent" else ""
    text = f"{place}. {title}: {_weight(rule)}{whose}"
    head = Heading(text) if rule.enabled else Line(text, "quiet")
    terms = Terms(rule.config, names)
    lines = said(terms) if said else [Line("unknown type of rule", "warn")]
    if (until := terms.text("until")) is not None:
        lines.append(Line(f"ends at {clip(until, _NAME_CHARACTERS)}; after that it lets nothing pass by itself"))
    said_all = [*lines, *terms.rest()]
    return [head, *(Line(f"   {line.text}", line.tone if rule.enabled else "quiet") for line in said_all)]


def meaning(rules: Sequence[PolicyRule]) -> list[Line]:
    """Explain the set as a whole, where the single rules do not say it."""
    enabled = [rule for rule in rules if rule.enabled]
    if not enabled:
        what = "All of its rules are disabled" if rules else "It has no rules"
        free = "every order of this agent is signed without approval"
        return [Line(f"{what}: {free}, unless the service is configured to refuse agents without rules.", "bad")]
    if any(rule.type in COVERING for rule in enabled):
        rest = "Orders that no limit or threshold covers, such as another token, need approval"
        return [Line(f"{rest}, unless the tenant allows or refuses them.", "quiet")]
    if any(rule.type == "approval-quorum" for rule in enabled):
        return [Line("Orders that need votes wait until enough of the named people have voted.", "quiet")]
    if any(rule.type == "new-recipient" for rule in enabled):
        return [Line("No rule limits amounts: any amount goes to a recipient that is known.", "warn")]
    if any(rule.type == "delay" for rule in enabled):
        return [Line("No rule limits amounts: what nobody denies in time is signed.", "warn")]
    if any(rule.type == "approved-addresses" for rule in enabled):
        passed = "orders that pass these rules are signed; only typed data of an unknown kind needs approval"
        return [Line(f"No rule limits amounts: {passed}.", "warn")]
    return [Line("No rule limits amounts or requires approval: orders that pass these rules are signed.", "warn")]


def _weight(rule: PolicyRule) -> str:
    if not rule.enabled:
        return "DISABLED, not evaluated"
    if rule.type not in KINDS:
        return "enabled, effect unknown to this console"
    asks = {"approval-quorum": "asks named people", "delay": "waits", "circuit-breaker": "freezes"}.get(
        rule.type, "asks a person"
    )
    return f"enabled, soft: {asks}" if rule.type in _SOFT else "enabled, hard: refuses"


def _as_json(rule: PolicyRule) -> list[Line]:
    document: dict[str, Any] = msgspec.to_builtins(rule)
    try:
        text = msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
    except (ValueError, TypeError, RecursionError):
        text = "It cannot be shown as JSON."
    return [Line(f"   | {line}", "quiet") for line in clip(text, _RAW_CHARACTERS).split("\n")]
