"""Judge an order by the agent's rules, and besides by those that its signers name in `policyIds`.

Guarantee: never milder than `judge` by itself. An enabled rule binds every order already; a disabled rule that a signer
names binds the orders of that signer alone. Such a rule covers nothing, and is no hard rule where the deployment wants
one: otherwise naming a rule would let orders through. Pure.
"""

from collections.abc import Collection, Sequence

import msgspec

from custody.chains.types import Subject
from custody.policies.budgets import alerts
from custody.policies.holders import with_share
from custody.policies.judge import judge, judge_evaded
from custody.policies.rules import ParsedRule
from custody.policies.types import Decision, Facts, Result, Verdict

SIGNER_POLICY = "signer-policy"
_TOLD_AT_MOST = 3
_RANK: dict[Decision, int] = {"sign": 0, "queue": 1, "refuse": 2}


def stricter(one: Decision, other: Decision) -> Decision:
    """The stricter of two decisions."""
    return max(one, other, key=lambda each: _RANK[each])


def narrow(
    rules: Sequence[ParsedRule],
    subject: Subject,
    facts: Facts,
    named: Collection[str],
    binding: Sequence[ParsedRule] = (),
) -> Verdict:
    """Judge one order by the enabled rules, by those that are named and by others that bind it; results stand in stored
    order.

    A named rule that the agent no longer has refuses the order, for nobody knows what it would have said.
    """
    verdict = judge(rules, subject, facts)
    gone = set(named).difference(rule.id for rule in rules)
    besides = [*(rule for rule in rules if rule.id in named and not rule.enabled), *binding]
    if not besides and not gone:
        return verdict
    shared = with_share(facts, sum(rule.tries_owners for rule in besides))
    checked = [(rule, *rule.check(subject, shared)) for rule in besides]
    failed = [rule for rule, passed, _ in checked if not passed]
    said = [Result(rule.type, ok, why, rule.id) for rule, ok, why in checked]
    results = _in_stored_order([*rules, *binding], verdict, said)
    refusals = [verdict.refused_by]
    refusals += [
        one for rule, one in zip(besides, said, strict=True) if not one.passed and rule.refuses(subject, shared)
    ]
    if gone:
        results.append(Result(SIGNER_POLICY, False, _missing(sorted(gone))))
        refusals.append(results[-1])
    own: Decision = "sign"
    if failed or gone:
        own = "refuse" if gone or any(rule.refuses(subject, shared) for rule in failed) else "queue"
    # What such a rule cannot read or bound asks as if it were enabled; it covers nothing that was not covered before.
    bound = [rule for rule in rules if rule.enabled] + [msgspec.structs.replace(one, enabled=True) for one in besides]
    for result, outcome in judge_evaded(bound, subject, facts):
        results += [result] if result not in results else []
        own = stricter(own, outcome)
        refusals += [result] if outcome == "refuse" else []
    decision = stricter(verdict.decision, own)
    # As in `judge`: an order may come again as it is only where nothing but full windows refuse it.
    rooms = [rule.room(facts) for rule in failed if rule.refuses(subject, shared)]
    early = [room for room in (*rooms, verdict.room) if room is not None]
    is_early = not gone and None not in rooms and (verdict.decision != "refuse" or verdict.room is not None)
    also = alerts(binding, subject.family, verdict.charges, facts)
    return msgspec.structs.replace(
        verdict,
        decision=decision,
        results=tuple(results),
        refused_by=next((result for result in results if result in refusals), None),
        room=max(early, key=lambda room: room.seconds) if is_early and early else None,
        alerts=(*verdict.alerts, *also) if decision == "sign" else (),
    )


def _in_stored_order(rules: Sequence[ParsedRule], verdict: Verdict, besides: Sequence[Result]) -> list[Result]:
    place = {rule.id: position for position, rule in enumerate(rules)}
    # What the evaluation itself says names no rule, and stays behind them.
    return sorted(
        (*verdict.results, *besides),
        key=lambda result: len(place) if result.policy_id is None else place[result.policy_id],
    )


def _missing(gone: Sequence[str]) -> str:
    told = ", ".join(gone[:_TOLD_AT_MOST])
    more = f" and {len(gone) - _TOLD_AT_MOST} more" if len(gone) > _TOLD_AT_MOST else ""
    return f"a signer's policyIds name rules that the agent does not have: {told}{more}; change the signer or the rules"
