"""Judge an order by the agent's rules: sign, queue or refuse.

Guarantees: every enabled rule is evaluated and answers in stored order; a failing hard rule refuses whatever the
soft ones say; what no rule can judge goes to a person. Pure: the same rules, order and facts give the same verdict,
so signing, dry run and back-test share it.
"""

from collections.abc import Mapping, Sequence

from custody.chains.types import Effect, Subject
from custody.policies.budgets import alerts
from custody.policies.coverage import Coverage, coverage, describe, gaps, must_ask, without_listed
from custody.policies.holders import with_share
from custody.policies.moved import charge, moves
from custody.policies.rules import ParsedRule
from custody.policies.types import Decision, Facts, Result, Verdict

UNCOVERED_EFFECT = "uncovered-effect"
EMPTY_POLICY = "empty-policy"
# A rule of this type must bound what a token transfer moves; where none does, the result has its name.
CONTRACT_ALLOWLIST = "contract-allowlist"
# And of this type one must be there, where what is signed names no chain that a node could check.
ALLOWED_CHAINS = "allowed-chains"
# And where none of this type lists whom a payment may go to that a server demands, a person decides.
APPROVED_ADDRESSES = "approved-addresses"
# And where none of this type is, a message goes to a person, unless nothing but these limits the agent.
MESSAGE_ALLOWLIST = "message-allowlist"
_LIMIT_NO_MESSAGE = frozenset({"time-window", "rate-limit"})
_SAID: Mapping[Decision, str] = {
    "sign": "this tenant allows that",
    "queue": "a person must approve it",
    "refuse": "this tenant refuses that",
}


def judge(rules: Sequence[ParsedRule], subject: Subject, facts: Facts) -> Verdict:
    """Judge one order; nothing is written, and `charges` count only once it is signed."""
    enabled = [rule for rule in rules if rule.enabled]
    subject = without_listed(enabled, subject, facts.now)
    if subject.family == "solana":
        facts = with_share(facts, sum(rule.tries_owners for rule in enabled))
    results: list[Result] = []
    failed: list[tuple[ParsedRule, Result]] = []
    for rule in enabled:
        # Every rule runs, also the hard ones after a soft one failed: an order above the threshold that a hard rule
        # refuses must be refused, not queued, or a person could wave it through.
        passed, reason = rule.check(subject, facts)
        results.append(Result(rule.type, passed, reason, rule.id))
        if not passed:
            failed.append((rule, results[-1]))
    refusing = [(rule, result) for rule, result in failed if rule.refuses(subject, facts)]
    hard = [rule for rule, _ in refusing]
    own = [
        *_judge_empty(enabled, facts),
        *_judge_unbounded(enabled, results, subject),
        *_judge_unlisted(enabled, subject),
        *_judge_unvouched(enabled, results, subject, facts),
        *_judge_unnamed(enabled, subject, facts),
        *_judge_uncovered(enabled, subject, facts),
        *_judge_unlisted_message(enabled, subject, facts),
    ]
    results += [result for result, _ in own]
    refusals = [result for _, result in refusing] + [result for result, outcome in own if outcome == "refuse"]
    decision = _worst(hard, failed, [outcome for _, outcome in own])
    # An order that is only too early may come again as it is; one that anything else refuses may not.
    early = [room for rule in hard if (room := rule.room(facts)) is not None]
    rate_limited = bool(early) and len(early) == len(hard) and all(outcome != "refuse" for _, outcome in own)
    charges = charge(moves(subject, facts.worth), facts.floor)
    return Verdict(
        decision=decision,
        results=tuple(results),
        refused_by=refusals[0] if refusals else None,
        charges=charges,
        room=max(early, key=lambda room: room.seconds) if rate_limited else None,
        alerts=alerts(enabled, subject.family, charges, facts) if decision == "sign" else (),
    )


def _worst(hard: Sequence[object], failed: Sequence[object], outcomes: Sequence[Decision]) -> Decision:
    if hard or "refuse" in outcomes:
        return "refuse"
    return "queue" if failed or "queue" in outcomes else "sign"


def _judge_empty(enabled: Sequence[ParsedRule], facts: Facts) -> list[tuple[Result, Decision]]:
    if facts.empty_policy == "allow" or any(rule.hard for rule in enabled):
        return []
    reason = "the agent has no enabled hard rule, and this deployment demands one"
    return [(Result(EMPTY_POLICY, False, reason), "refuse")]


def _judge_unbounded(
    enabled: Sequence[ParsedRule], results: Sequence[Result], subject: Subject
) -> list[tuple[Result, Decision]]:
    if not subject.bounded or any(result.type == CONTRACT_ALLOWLIST and not result.passed for result in results):
        return []
    lists = [calls for rule in enabled if (calls := rule.terms.covers().calls) is not None]
    if all(any(calls.confines(call) for calls in lists) for call in subject.calls):
        return []
    reason = (
        "a token transfer needs an enabled contract-allowlist that lists the token's transfer (0xa9059cbb) with "
        "`maxAmount` and with `recipientAllowlist` or `recipientBlocklist`"
    )
    return [(Result(CONTRACT_ALLOWLIST, False, reason), "refuse")]


def _judge_unlisted(enabled: Sequence[ParsedRule], subject: Subject) -> list[tuple[Result, Decision]]:
    # Where there is a rule, it judges the chain itself.
    if not subject.listed or any(rule.type == ALLOWED_CHAINS for rule in enabled):
        return []
    reason = f"a {subject.family} order needs an enabled allowed-chains rule that lists its network, {subject.caip2}"
    return [(Result(ALLOWED_CHAINS, False, reason), "refuse")]


def _judge_unvouched(
    enabled: Sequence[ParsedRule], results: Sequence[Result], subject: Subject, facts: Facts
) -> list[tuple[Result, Decision]]:
    """Calldata of a batch goes out only where a rule lists the call, unless the deployment lets a person decide."""
    if subject.vouched is None or any(result.type == CONTRACT_ALLOWLIST and not result.passed for result in results):
        return []
    lists = [calls for rule in enabled if (calls := rule.terms.covers().calls) is not None]
    if all(any(calls.permits(call) for calls in lists) for call in subject.calls):
        return []
    if subject.vouched == "queue":
        outcome: Decision = "sign" if facts.approving else "queue"
        said = "a person approved it" if facts.approving else "a person must approve it"
        return [(Result(CONTRACT_ALLOWLIST, facts.approving, f"a call of the batch is on no list; {said}"), outcome)]
    reason = "calldata in a batch needs an enabled contract-allowlist that lists each call"
    return [(Result(CONTRACT_ALLOWLIST, False, reason), "refuse")]


def _judge_unnamed(enabled: Sequence[ParsedRule], subject: Subject, facts: Facts) -> list[tuple[Result, Decision]]:
    # Where there is such a list, it judges by itself whom the order pays.
    if not subject.named or any(rule.covers.named for rule in enabled):
        return []
    outcome: Decision = "sign" if facts.approving else "queue"
    said = "a person approved it" if facts.approving else "a person must approve it"
    reason = f"no enabled approved-addresses rule lists whom this server wants to be paid; {said}"
    return [(Result(APPROVED_ADDRESSES, facts.approving, reason), outcome)]


def _judge_uncovered(enabled: Sequence[ParsedRule], subject: Subject, facts: Facts) -> list[tuple[Result, Decision]]:
    if subject.message is not None:
        return []
    covered = coverage(enabled)
    return _ask(covered, gaps(covered, subject, facts.worth), subject, facts)


def judge_evaded(bound: Sequence[ParsedRule], subject: Subject, facts: Facts) -> list[tuple[Result, Decision]]:
    """Judge what evades rules that bind an order without covering anything: what they are about and cannot bound."""
    if subject.message is not None:
        return _judge_unlisted_message(bound, without_listed(bound, subject, facts.now), facts)
    covered = coverage(bound)
    effects = [effect for effect in gaps(covered, subject, facts.worth) if must_ask(covered, effect, subject)]
    return _ask(covered, effects, subject, facts)


def _ask(covered: Coverage, effects: Sequence[Effect], subject: Subject, facts: Facts) -> list[tuple[Result, Decision]]:
    if not effects:
        return []
    outcome: Decision = "sign" if facts.uncovered == "allow" else facts.uncovered
    # `allow` is for what no rule names.
    if outcome == "sign" and any(must_ask(covered, effect, subject) for effect in effects):
        outcome = "queue"
    said = _SAID[outcome]
    if outcome == "queue" and facts.approving:
        outcome, said = "sign", "a person approved it"
    reason = f"no rule covers {describe(effects, facts.units, subject.chain_id)}; {said}"
    return [(Result(UNCOVERED_EFFECT, outcome == "sign", reason), outcome)]


def _judge_unlisted_message(
    enabled: Sequence[ParsedRule], subject: Subject, facts: Facts
) -> list[tuple[Result, Decision]]:
    """Ask a person: only a message's reader knows its use, so no setting lets it pass where anything is limited."""
    if subject.message is None or not subject.effects or all(rule.type in _LIMIT_NO_MESSAGE for rule in enabled):
        return []
    outcome: Decision = "refuse" if facts.uncovered == "refuse" else "queue"
    if outcome == "queue" and any(rule.type == MESSAGE_ALLOWLIST for rule in enabled):
        # That rule asks by itself, and says why.
        return []
    said = _SAID[outcome]
    if outcome == "queue" and facts.approving:
        outcome, said = "sign", "a person approved it"
    reason = f"no enabled message-allowlist lists the message; {said}"
    return [(Result(MESSAGE_ALLOWLIST, outcome == "sign", reason), outcome)]
