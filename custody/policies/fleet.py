"""Judge an order by an agent's own rules, by those of the policy set that it names, and by the tenant's for every
agent.

Guarantees: every enabled rule of the three binds. What an agent that names a set may do is at most what the set alone
lets it do, so its own rules only tighten. The tenant's rules for every agent cover nothing, so that they tighten too:
what they are about and cannot bound goes to a person. Pure.
"""

from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from custody.chains.types import Subject
from custody.policies.judge import judge
from custody.policies.narrow import narrow, stricter
from custody.policies.rules import ParsedRule
from custody.policies.types import Facts, Verdict, Window

# The set that is about every agent of the tenant, whether it names one or not.
EVERY_AGENT: Final = "tenant"


class SharedCharge(msgspec.Struct, frozen=True):
    """The amount of an asset that counts for all agents of a set, and the tightest limits on that."""

    policy_set: str
    asset: str
    amount: int
    per_day: int | None = None
    per_week: int | None = None
    total: int | None = None

    def within(self, window: Window, most: int) -> "SharedCharge":
        """The same under one more limit."""
        if window == "day":
            return msgspec.structs.replace(self, per_day=_least(self.per_day, most))
        if window == "week":
            return msgspec.structs.replace(self, per_week=_least(self.per_week, most))
        return msgspec.structs.replace(self, total=_least(self.total, most))


def judge_all(rules: Sequence[ParsedRule], subject: Subject, facts: Facts, named: Collection[str]) -> Verdict:
    """Judge one order by rules of all three kinds, and by the disabled ones that its signers name."""
    every = [rule for rule in rules if rule.policy_set == EVERY_AGENT and rule.enabled]
    own = [rule for rule in rules if rule.policy_set != EVERY_AGENT]
    verdict = narrow(own, subject, facts, named, every)
    theirs = [rule for rule in own if rule.policy_set]
    if not theirs:
        return verdict
    # The hard rule that a deployment may demand can be the agent's own.
    alone = judge(theirs, subject, msgspec.structs.replace(facts, empty_policy="allow"))
    said = [result for result in alone.results if result.policy_id is None and result not in verdict.results]
    decision = stricter(verdict.decision, alone.decision)
    return msgspec.structs.replace(
        verdict,
        decision=decision,
        results=(*verdict.results, *said),
        room=verdict.room if alone.room is not None or alone.decision != "refuse" else None,
        alerts=verdict.alerts if decision == "sign" else (),
    )


def shared_charges(rules: Sequence[ParsedRule], subject: Subject, charges: dict[str, int]) -> tuple[SharedCharge, ...]:
    """The amounts that these charges count for all agents of a set: of each asset that one of its rules limits.

    A disabled rule counts too, so that it has missed nothing when it is enabled again.
    """
    found: dict[tuple[str, str], SharedCharge] = {}
    for rule in rules:
        # Of a call no family is asked.
        if not rule.terms.is_shared or rule.covers.assets.isdisjoint(charges):
            continue
        for limit in rule.terms.limits(subject.family):
            key = rule.policy_set, limit.asset
            if amount := charges.get(limit.asset, 0):
                one = found.get(key) or SharedCharge(*key, amount)
                found[key] = one.within(limit.window, limit.most) if rule.enabled else one
    return tuple(found.values())


def _least(known: int | None, most: int) -> int:
    return most if known is None else min(known, most)
