"""Judge an order by the agent's rules: sign, queue or refuse. Spec 1/2.4, decisions 3.

Guarantees: every enabled rule is evaluated and answers in stored order; a failing hard rule refuses whatever the
soft ones say; what no rule can judge goes to a person. Pure: the same rules, order and facts give the same verdict,
so signing, dry run and back-test share it.
"""

from collections.abc import Mapping, Sequence

from custody.chains.types import Subject
from custody.policies.assets import NATIVE_OF
from custody.policies.coverage import coverage, described, uncovered
from custody.policies.kinds import rate_limit, spending_limit
from custody.policies.moved import charged, moved
from custody.policies.rules import ParsedRule
from custody.policies.types import Alert, Decision, Facts, Result, Verdict

UNCOVERED_EFFECT = "uncovered-effect"
EMPTY_POLICY = "empty-policy"
_SAID: Mapping[Decision, str] = {
    "sign": "this tenant allows that",
    "queue": "a person must approve it",
    "refuse": "this tenant refuses that",
}


def judge(rules: Sequence[ParsedRule], subject: Subject, facts: Facts) -> Verdict:
    """Judge one order; nothing is written, and `charges` count only once it is signed."""
    enabled = [rule for rule in rules if rule.enabled]
    results: list[Result] = []
    failed: list[ParsedRule] = []
    for rule in enabled:
        # Every rule runs, also the hard ones after a soft one failed: an order above the threshold that a hard rule
        # refuses must be refused, not queued (Spec 1/2.4), or a person could wave it through.
        passed, reason = rule.kind.check(rule.terms, subject, facts)
        results.append(Result(rule.type, passed, reason, rule.id))
        if not passed:
            failed.append(rule)
    hard = [rule.terms for rule in failed if rule.kind.hard]
    own = [*_judge_empty(enabled, facts), *_judge_uncovered(enabled, subject, facts)]
    results += [result for result, _ in own]
    decision = _worst(hard, failed, [outcome for _, outcome in own])
    full = [terms for terms in hard if isinstance(terms, rate_limit.RateLimit)]
    charges = charged(moved(subject), facts.floor)
    rate_limited = bool(full) and len(full) == len(hard) and all(outcome != "refuse" for _, outcome in own)
    return Verdict(
        decision=decision,
        results=tuple(results),
        charges=charges,
        rate_limited=rate_limited,
        retry_after=max(rate_limit.retry_after(limit, facts) for limit in full) if rate_limited else None,
        alerts=_alerts(enabled, subject, charges, facts) if decision == "sign" else (),
    )


def _worst(hard: Sequence[object], failed: Sequence[object], outcomes: Sequence[Decision]) -> Decision:
    if hard or "refuse" in outcomes:
        return "refuse"
    return "queue" if failed or "queue" in outcomes else "sign"


def _judge_empty(enabled: Sequence[ParsedRule], facts: Facts) -> list[tuple[Result, Decision]]:
    if facts.empty_policy == "allow" or any(rule.kind.hard for rule in enabled):
        return []
    reason = "the agent has no enabled hard rule, and this deployment demands one"
    return [(Result(EMPTY_POLICY, False, reason), "refuse")]


def _judge_uncovered(enabled: Sequence[ParsedRule], subject: Subject, facts: Facts) -> list[tuple[Result, Decision]]:
    covered = coverage(enabled)
    effects = uncovered(covered, subject)
    if not effects:
        return []
    outcome: Decision = "sign" if facts.uncovered == "allow" else facts.uncovered
    # `allow` is for what no rule names. A limit on a token is void if an unlimited approval of that token passes.
    if outcome == "sign" and any(effect.asset in covered.assets for effect in effects):
        outcome = "queue"
    said = _SAID[outcome]
    if outcome == "queue" and facts.approving:
        outcome, said = "sign", "a person approved it"
    reason = f"no rule covers {described(effects)}; {said}"
    return [(Result(UNCOVERED_EFFECT, outcome == "sign", reason), outcome)]


def _alerts(
    enabled: Sequence[ParsedRule], subject: Subject, charges: Mapping[str, int], facts: Facts
) -> tuple[Alert, ...]:
    found: list[Alert] = []
    for rule in enabled:
        limit = rule.terms
        if isinstance(limit, spending_limit.SpendingLimit):
            asset = limit.asset or NATIVE_OF[subject.family]
            found += spending_limit.alerts(limit, asset, charges.get(asset, 0), facts)
    # Two limits of one size would say the same thing twice.
    return tuple(dict.fromkeys(found)) if found else ()
