"""Several orders of one agent in one commit: each judged on the state that the one before it leaves.

Who has the agent's turn takes along what waits for it. All of it becomes true with one write or none of it does, and
only then is anything released. An order that would not be signed is left to its own turn, and so is all the rest when
the write is refused: nobody is told anything for somebody else's order.
"""

import asyncio
from functools import partial
from typing import Final, NamedTuple

import asyncpg

from custody.kit import stages
from custody.kit.answers import Answered
from custody.kit.db import DatabaseAway
from custody.kit.errors import CustodyError
from custody.protocol.signer.orders import Signed
from signer import broken_quorums, ledger
from signer.evaluate import evaluate
from signer.guarded_write import guard_of, hold, settle_broken_commit
from signer.kept_state import State, after, goes_with
from signer.ledger import Facts, Record
from signer.signing_attempt import Outcome, SigningAttempt, ToWrite
from signer.signing_state import SigningState
from signer.waiting import Waiter

MAX_TOGETHER: Final = 16
MAX_BYTES: Final = 64 * 1024


class Taken(NamedTuple):
    """An order that goes along, and how it was judged."""

    waiter: Waiter
    record: Record
    outcome: Signed


def signs(step: object) -> bool:
    """Say whether this writes one signature and nothing else."""
    return isinstance(step, ToWrite) and isinstance(step.outcome, Signed) and not step.more and step.tally is None


async def _taken_along(
    signer: SigningState, first: SigningAttempt, record: Record, facts: Facts, quorum: broken_quorums.Read | None
) -> list[Taken]:
    """The orders that are signed with the first one, in their turn; what they were judged on is not written yet."""
    taken: list[Taken] = []
    waiters = [waiter for waiter in signer.waiting.of(first.ref) if waiter.answer is None][: MAX_TOGETHER - 1]
    if not waiters:
        return taken
    ref = first.ref
    stored = record.stored_bytes
    facts = after(facts, [record])
    for waiter in waiters:
        # What was read and judged in vain counts: orders that are not signed would take the loop again and again.
        if signer.throttle.is_used_up(ref.tenant):
            break
        one = signer.throttle.run_or_count(ref.tenant, ref.agent, partial(_judge, signer, first, waiter, facts, quorum))
        # Other agents have the loop in between.
        await asyncio.sleep(0)
        if one is None:
            continue
        stored += one.record.stored_bytes
        if stored > MAX_BYTES:
            break
        taken.append(one)
        facts = after(facts, [one.record])
    return taken


def _judge(
    signer: SigningState, first: SigningAttempt, waiter: Waiter, facts: Facts, quorum: broken_quorums.Read | None
) -> Taken | None:
    try:
        attempt = waiter.make_attempt()
        step = evaluate(signer, attempt, facts, quorum, locked=False) if goes_with(first, attempt) else None
    except Exception:
        return None
    if isinstance(step, ToWrite) and isinstance(step.record, Record) and isinstance(step.outcome, Signed):
        return Taken(waiter, step.record, step.outcome) if signs(step) else None
    return None


async def sign_together(
    signer: SigningState, attempt: SigningAttempt, step: ToWrite, state: State
) -> Answered[Outcome] | None:
    """Write a signature, and in the same commit those of orders that wait; None where any of it failed."""
    if not isinstance(step.record, Record):
        raise TypeError("a signature has a record")
    taken = await _taken_along(signer, attempt, step.record, state.facts, state.quorum)
    records = (step.record, *(one.record for one in taken))
    what = ledger.to_write(attempt.ref, state.facts, records, guard_of(attempt, step))
    # Of their idempotency keys nothing was read, so the write may meet one: then it is in no batch with other agents.
    blind = bool(taken) or (state.facts.kept and attempt.call.key is not None)
    result = "failed"
    try:
        with stages.timed("write"), hold(signer, attempt.ref.tenant, records) as held:
            result = await (signer.writes.alone(what) if blind else signer.writes.write(what))
            if result == "done":
                held.keep()
    except DatabaseAway:
        signer.kept.forget(attempt.ref)
        # Of this order alone: its row may be from an earlier try, and says nothing of those that it took along. Each of
        # them meets its own row in its own turn.
        return await settle_broken_commit(signer, attempt, step)
    except (asyncpg.PostgresError, CustodyError):
        # Whose fault it was, each finds out alone.
        pass
    if result != "done":
        signer.kept.refused(attempt.ref, state, stale=result == "stale")
        return None
    signer.kept.keep(attempt, state, records)
    signer.acknowledged.remember(attempt.ref, state.facts.incarnation, state.facts.ledger_version + 1)
    for one in taken:
        one.waiter.answer = Answered(one.outcome)
    signer.counters["orders_taken_along"] += len(taken)
    return Answered(step.outcome)
