"""Say whether a new policy set only tightens the old one, as an agent's own token demands.

Guarantee: when nothing is loosened, no order gets a milder verdict than before, whatever the facts. What cannot be
proven tighter counts as loosened, so a clever rewrite of a set is a task for the tenant's key.
"""

from collections.abc import Iterator, Sequence

from custody.policies.coverage import Coverage, coverage
from custody.policies.parts import names
from custody.policies.rules import ParsedRule
from custody.policies.types import EmptyPolicy


def widening(old: Sequence[ParsedRule], new: Sequence[ParsedRule], *, empty_policy: EmptyPolicy = "deny") -> str | None:
    """Name what the new set loosens, or None. `empty_policy` is the deployment's; unknown means the careful answer."""
    return next(widenings(old, new, empty_policy=empty_policy), None)


def widenings(
    old: Sequence[ParsedRule], new: Sequence[ParsedRule], *, empty_policy: EmptyPolicy = "deny"
) -> Iterator[str]:
    """Name everything that the new set loosens."""
    for rule in old:
        if not (_is_kept(rule, new) if rule.enabled else _kept_disabled(rule, new)):
            yield f"Rule {rule.id} ({rule.type}) would be removed, disabled or made less strict."
    if empty_policy == "deny" and not _has_hard_rule(old) and _has_hard_rule(new):
        yield "A first hard rule would let an agent sign that cannot sign without one."
    before = coverage(old)
    # What the set that it names does not cover goes to a person, whatever the agent's own rules cover.
    if not before.policy_sets and (found := _newly_covered(before, coverage(new))) is not None:
        yield found


def _is_kept(rule: ParsedRule, new: Sequence[ParsedRule]) -> bool:
    # The id does not matter: whatever the new set calls it, a rule at least as strict does the work.
    return any(other.enabled and other.tightens(rule) for other in new)


def _kept_disabled(rule: ParsedRule, new: Sequence[ParsedRule]) -> bool:
    # A signer's `policyIds` may name a disabled rule and so narrow what that signer may do; it must stay findable.
    return any(other.id == rule.id and other.tightens(rule) for other in new)


def _has_hard_rule(rules: Sequence[ParsedRule]) -> bool:
    return any(rule.enabled and rule.hard for rule in rules)


def _newly_covered(old: Coverage, new: Coverage) -> str | None:
    if new.policy_sets - old.policy_sets:
        return "The rules of another policy set would cover orders that no rule covered before."
    # What the whole covers its parts are covered by: a limit on the coin of one chain beside one on all is one more.
    if assets := [asset for asset in new.assets if not any(name in old.assets for name in names(asset))]:
        named = ", ".join(sorted(assets))
        return f"A first limit or threshold for {named} would cover orders that no rule covered before."
    found = [listed.beyond(old.calls) for listed in new.calls] + [each.beyond(old.messages) for each in new.messages]
    return next((beyond for beyond in found if beyond is not None), None)
