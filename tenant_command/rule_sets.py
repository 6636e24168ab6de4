"""Two sets of rules beside each other: what changes, what may pass that did not, and which requests show it. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from console.intents.rule_changes import rule_changes
from console.rules.looser import is_voted_on, looser
from console.rules.rule_terms import Names
from console.rules.rules_in_words import meaning
from tenant_command.documents import shapes_of
from words.shapes import PolicyRule
from words.texts.fields import pluralize
from words.texts.lines import Heading, Line

_VOTES: Final = (
    "These rules ask for votes: what loosens them is refused here. It needs the votes of the people whom its rule "
    "approval-quorum names (POST /agents/{agentId}/policies/votes, docs/signers.md)."
)
# The decisions of a back-test, as they were and as they would have been.
WAS: Final = {"sign": "signed", "queue": "waited for a person", "refuse": "refused"}
WOULD: Final = {"sign": "would be SIGNED", "queue": "would wait for a person", "refuse": "would be refused"}


@dataclass(frozen=True)
class Change:
    """A set of rules as it is, and as a file would have it; `rules` are those of the file, to be sent."""

    now: list[PolicyRule]
    then: list[PolicyRule]
    rules: list[dict[str, Any]]

    @property
    def is_none(self) -> bool:
        """True if the set is what the file says; the order of rules decides nothing."""
        return not (self.gone or self.come or self.other)

    @property
    def gone(self) -> list[PolicyRule]:
        """Return the rules that go."""
        return [rule for rule in self.now if rule.id not in {one.id for one in self.then}]

    @property
    def come(self) -> list[PolicyRule]:
        """Return the rules that come."""
        return [rule for rule in self.then if rule.id is None or rule.id not in {one.id for one in self.now}]

    @property
    def other(self) -> list[tuple[PolicyRule, PolicyRule]]:
        """Return the rules that become others, before and after."""
        before = {rule.id: rule for rule in self.now}
        pairs = [(before[rule.id], rule) for rule in self.then if rule.id is not None and rule.id in before]
        return [(was, becomes) for was, becomes in pairs if _terms(was) != _terms(becomes)]

    def data(self) -> dict[str, Any]:
        """Say it to programs."""
        return {
            "same": self.is_none,
            "goes": self.gone,
            "comes": self.come,
            "becomes": [{"was": was, "becomes": becomes} for was, becomes in self.other],
            "looser": looser(self.now, self.then),
            "needsVotes": self.needs_votes(),
        }

    def needs_votes(self) -> bool:
        """Tell whether the service will want votes for it."""
        return is_voted_on(self.now) and bool(looser(self.now, self.then))

    def lines(self, names: Names, *, shared: bool = False) -> list[Line]:
        """Say it to people: the difference, then what becomes looser.

        What rules mean as a whole is said of an agent's own; those that are `shared` bind beside them.
        """
        lines = rule_changes("policy_update", {"policies": self.rules}, self.now, names)
        if shared:
            lines = lines[: len(lines) - len(meaning(self.then))]
        if self.is_none:
            return lines
        lines.append(Line(""))
        if not (found := looser(self.now, self.then, names)):
            return [*lines, Line("Nothing becomes looser.", "good")]
        lines += [Heading("Becomes looser"), *(Line(f"  {one}", "bad") for one in found)]
        return [*lines, Line(_VOTES, "warn")] if self.needs_votes() else lines


def change(now: list[PolicyRule], rules: Sequence[dict[str, Any]]) -> Change:
    """Put a set beside that of a file. A rule of the file without an id is the one that it is most like.

    So a file that is applied twice changes nothing, and signers that name a rule by its id keep it.
    """
    free = {rule.id: rule for rule in now}
    for one in rules:
        free.pop(one.get("id"), None)
    named = [dict(one) for one in rules]
    for alike in (_is_same, _is_of_its_type):
        for one in (one for one in named if one.get("id") is None):
            found = next((rule.id for rule in free.values() if alike(rule, shapes_of([one])[0])), None)
            if found is not None:
                one["id"] = found
                del free[found]
    return Change(now, shapes_of(named), named)


def _is_same(one: PolicyRule, other: PolicyRule) -> bool:
    return bool(_terms(one) == _terms(other))


def _is_of_its_type(one: PolicyRule, other: PolicyRule) -> bool:
    return one.type == other.type


def _terms(rule: PolicyRule) -> Any:
    return rule.type, rule.enabled, msgspec.to_builtins(rule.config)


def backtest_in_words(found: Any, days: int) -> list[Line]:
    """Count the past requests that would have been decided otherwise, the looser ones first."""
    span = "the last day" if days == 1 else f"the last {days} days"
    examined = pluralize(found["examined"], "request", "requests")
    older = ", the newest of more" if found["truncated"] else ""
    if not found["changed"]:
        return [Line(f"Of {examined} of {span}{older}, none would have been decided otherwise.", "quiet")]
    counts = Counter((one["was"], one["now"]) for one in found["changed"])
    lines = [Line(f"Of {examined} of {span}{older}, {sum(counts.values()):,} would have been decided otherwise:")]
    for (was, now), number in sorted(counts.items(), key=lambda one: _LOOSEST.index(one[0][1])):
        verb = "was" if number == 1 else "were"
        said = WAS[was] if was == "queue" else f"{verb} {WAS[was]}"
        lines.append(Line(f"  {number:,} that {said} {WOULD[now]}", "warn" if _milder(was, now) else None))
    return lines


def _milder(was: str, now: str) -> bool:
    return _LOOSEST.index(now) < _LOOSEST.index(was)


_LOOSEST: Final = ("sign", "queue", "refuse")
