"""The circuit breakers of an agent's rules: what is counted of a refusal or failure, and what freezes the agent.

The write that reaches the number freezes, in its own transaction (`count_for_breaker.sql`): nothing is signed after it.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec

from custody.policies.kinds.circuit_breaker import TYPE, CircuitBreaker
from custody.policies.rules import ParsedRule
from custody.webhooks.control_events import AgentFrozen
from custody.webhooks.later_events import BreakerTripped
from custody.webhooks.payload import encode_events
from signer.ledger import Breaker, Facts, Record
from signer.signing_attempt import Judged, SigningAttempt

type Kind = Literal["refused", "failed"]
_SAID: Final = {"refused": ("order was refused", "orders were refused"), "failed": ("order failed", "orders failed")}


class BreakerRow(NamedTuple):
    """The breakers that count one thing: the SQL type `breaker`."""

    minutes: list[int]
    most: list[int]
    reasons: list[str]
    events: list[str]


def row_of(rules: Sequence[ParsedRule], kind: Kind, tx_id: str) -> BreakerRow | None:
    """List the enabled rules that count such an order; None where none does."""
    row = BreakerRow([], [], [], [])
    for rule in rules:
        terms = rule.terms
        most = getattr(terms, kind) if rule.enabled and isinstance(terms, CircuitBreaker) else None
        if most is None or not isinstance(terms, CircuitBreaker):
            continue
        why = f"{most:,} {_SAID[kind][most > 1]} in {terms.minutes:,} minute{'s' if terms.minutes > 1 else ''}"
        row.minutes.append(terms.minutes)
        row.most.append(most)
        row.reasons.append(f"{why}: frozen by rule {rule.id}")
        frozen = AgentFrozen(by=TYPE, reason=row.reasons[-1])
        row.events.append(encode_events(BreakerTripped(policy_id=rule.id, reason=why, tx_id=tx_id), frozen))
    return row if row.most else None


class Breakers:
    """The count of orders that rules refuse."""

    async def read(self, connection: Any, attempt: SigningAttempt, facts: Facts) -> Facts:
        """Nothing is looked up: the write counts."""
        return facts

    def note(self, judged: Judged, made: Record) -> Record:
        """Have a refusal counted that time does not lift."""
        if made.told.status != "rejected" or judged.verdict.room is not None:
            return made
        if not any(rule.type == TYPE for rule in judged.rules.rules):
            return made
        row = row_of(judged.rules.rules, "refused", judged.attempt.tx_id)
        return made if row is None else msgspec.structs.replace(made, breaker=Breaker(*row))
