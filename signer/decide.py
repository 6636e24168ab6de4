"""Read, judge, sign in memory, one guarded write, then release: the heart.

Nothing leaves before the write is committed, and the write commits only if nothing the order was judged on has
changed. A crash before it leaves no trace; a crash after it leaves the signature to be asked for again.
What only saves time (`together.py`: kept state, orders that share a turn or a write) is handed in, and decides nothing.
"""

from collections.abc import Callable
from typing import Any

import asyncpg

from custody.kit import stages
from custody.kit.answers import Answered
from custody.kit.db import DatabaseAway, tenant_scope
from custody.kit.errors import CustodyError, Unauthenticated
from custody.kit.logs import logger
from custody.kit.refs import AgentRef
from custody.protocol.refusals import IdempotencyMismatch, SignatureReplayed
from custody.protocol.signer.order_refusals import Busy
from custody.protocol.signer.outcomes import NeedsChecks, NeedsPreparation, Signed
from custody.worker.agent_queues import TooManyWaiting
from signer import broken_quorums, ledger
from signer.evaluate import evaluate
from signer.guarded_write import count, outcome_of, settle_broken_commit, write
from signer.ledger import Facts, Question
from signer.orders import second_reader
from signer.signing_attempt import Outcome, SigningAttempt, Step, ToWrite, decode_outcome
from signer.signing_state import SigningState

log = logger(__name__)
OPTIMISTIC_TRIES = 3
# An order that takes longer is worth a line, with the time of its stages.
SLOW_MS = 1000.0
_SAME_ORDER = "transactions_pkey"
_USED_BEFORE = "CU003"
_SAME_REFERENCE = ("transactions_action_reference", "intents_action_reference")


class Alone:
    """An order by itself: read, judged, written. Whatever is quicker has the same two steps, and comes to the same."""

    def __init__(self, signer: SigningState) -> None:
        self._signer = signer

    def earlier(self) -> Answered[Outcome] | None:
        """Find, in the order's turn, what became of it while it waited for that."""
        return None

    async def attempt(self, attempt: SigningAttempt, *, first: bool) -> Answered[Outcome] | None:
        """Try once, with no lock; None when something changed between the read and the write."""
        step = judge(self._signer, attempt, *await read(self._signer, attempt))
        return await write_alone(self._signer, attempt, step) if isinstance(step, ToWrite) else step


async def settle(
    signer: SigningState, ref: AgentRef, make_attempt: Callable[[], SigningAttempt], course: Alone | None = None
) -> Answered[Outcome]:
    """Bring one attempt to its end; the second value says that the answer is an earlier one.

    The attempt is made in its turn: reading a large order is work too, and one agent may not do it all at once.
    """
    course = course or Alone(signer)
    taken = stages.begin()
    await signer.quotas.know(ref.tenant)
    try:
        async with signer.queues.turn_of(ref.tenant, ref.agent):
            if (answer := course.earlier()) is not None:
                return answer
            attempt = await signer.throttle.run(ref.tenant, ref.agent, make_attempt)
            await second_reader.confirm(signer, ref, attempt.kind, attempt.draft)
            return _log(attempt, await _answer(signer, attempt, course), taken)
    except TooManyWaiting:
        raise Busy from None


async def _answer(signer: SigningState, attempt: SigningAttempt, course: Alone) -> Answered[Outcome]:
    """The outcome of an attempt; the earlier one where the same order was written before the signer went away.

    That is rare, so nobody looks for it before the write meets the primary key, or something says that there will be
    no write: an agent frozen meanwhile, a nonce that this very order took.
    """
    try:
        done = await _try(signer, attempt, course)
    except (Unauthenticated, IdempotencyMismatch):
        # An earlier answer has a signature in it, which a revoked token gets no more.
        raise
    except CustodyError:
        if (written := await _find_answer(signer, attempt)) is None:
            raise
        return written
    if isinstance(done.answer, NeedsPreparation | NeedsChecks):
        return await _find_answer(signer, attempt) or done
    return done


async def _try(signer: SigningState, attempt: SigningAttempt, course: Alone) -> Answered[Outcome]:
    for number in range(OPTIMISTIC_TRIES):
        # What spoils the first try, which may be judged on kept state and take others along, spoils no later one.
        if (done := await course.attempt(attempt, first=number == 0)) is not None:
            return done
        signer.counters["stale"] += 1
    # Somebody else keeps changing this agent. Wait for the row instead of racing for it.
    if (done := await _attempt_locked(signer, attempt)) is not None:
        return done
    raise Busy


async def _find_answer(signer: SigningState, attempt: SigningAttempt) -> Answered[Outcome] | None:
    """The answer that this very order got before; an approval's is found by the approval."""
    if not attempt.way.is_told_by_order:
        return None
    async with tenant_scope(signer.pool, attempt.ref.tenant) as connection:
        answer = await ledger.find_answer(connection, attempt.ref, attempt.tx_id)
    return None if answer is None else Answered(decode_outcome(answer), replayed=True)


def _log(attempt: SigningAttempt, done: Answered[Outcome], taken: dict[str, float]) -> Answered[Outcome]:
    """Log one line about an order that was slow or not signed, without anything of its content."""
    if isinstance(done.answer, Signed) and sum(taken.values()) < SLOW_MS:
        return done
    said: dict[str, object] = {
        "request_id": attempt.call.origin.request_id,
        "tx_id": attempt.tx_id,
        "outcome": type(done.answer).__name__,
    }
    log.info("order", extra={**said, **taken})
    return done


async def _attempt_locked(signer: SigningState, attempt: SigningAttempt) -> Answered[Outcome] | None:
    step: Step | None = None
    try:
        async with signer.pool.acquire() as connection, connection.transaction():
            await ledger.lock_with_sets(connection, attempt.ref)
            facts, quorum = await read_on(signer, connection, attempt)
            step = evaluate(signer, attempt, facts, quorum, locked=True)
            if not isinstance(step, ToWrite):
                return step
            with count(signer, attempt, step) as held:
                result = await write(connection, attempt, step)
                if result == "done":
                    held.keep()
    except DatabaseAway:
        if isinstance(step, ToWrite):
            return await settle_broken_commit(signer, attempt, step)
        raise
    except asyncpg.PostgresError as problem:
        if problem.sqlstate == ledger.NO_ROOM:
            return None
        if problem.sqlstate == _USED_BEFORE:
            return await _replay(signer, attempt)
        if not isinstance(problem, asyncpg.UniqueViolationError):
            raise
        if problem.constraint_name == _SAME_ORDER and (written := await _find_answer(signer, attempt)) is not None:
            return written
        raise
    # Only after the commit may the answer leave.
    return outcome_of(signer, attempt, step, result)


async def read(signer: SigningState, attempt: SigningAttempt) -> tuple[Facts | None, broken_quorums.Read | None]:
    """Read what an order is judged on, with nothing locked."""
    with stages.time_stage("read"):
        async with signer.pool.acquire() as connection:
            return await read_on(signer, connection, attempt)


def judge(
    signer: SigningState, attempt: SigningAttempt, facts: Facts | None, quorum: broken_quorums.Read | None
) -> Step | None:
    """Judge it on that, and sign it in memory if the rules say so."""
    with stages.time_stage("judge_and_sign"):
        return evaluate(signer, attempt, facts, quorum, locked=False)


async def write_alone(signer: SigningState, attempt: SigningAttempt, step: ToWrite) -> Answered[Outcome] | None:
    """Write one decision by itself, and give what may leave then; None when something had changed."""
    try:
        with stages.time_stage("write"), count(signer, attempt, step) as held:
            async with signer.pool.acquire() as connection:
                result = await write(connection, attempt, step)
            if result == "done":
                held.keep()
    except DatabaseAway:
        return await settle_broken_commit(signer, attempt, step)
    except asyncpg.PostgresError as problem:
        # The idempotency key or the room was taken a moment ago: read it.
        if problem.sqlstate in ("CU001", ledger.NO_ROOM):
            return None
        if problem.sqlstate == _USED_BEFORE:
            return await _replay(signer, attempt)
        if isinstance(problem, asyncpg.UniqueViolationError):
            if problem.constraint_name == _SAME_ORDER and (written := await _find_answer(signer, attempt)) is not None:
                return written
            if problem.constraint_name in _SAME_REFERENCE:  # taken a moment ago: read it
                return None
            # The unique indexes are the alarm, not the mechanism: nothing gets here that the guard should let by.
            log.error("a unique index stopped a signature", extra={"constraint": problem.constraint_name})
            return None
        raise
    return outcome_of(signer, attempt, step, result)


async def _replay(signer: SigningState, attempt: SigningAttempt) -> Answered[Outcome]:
    """The answer of this very order, which used its signatures up itself; SignatureReplayed where another did."""
    if (written := await _find_answer(signer, attempt)) is None:
        raise SignatureReplayed
    return written


async def read_on(
    signer: SigningState, connection: Any, attempt: SigningAttempt
) -> tuple[Facts | None, broken_quorums.Read | None]:
    """Read it on a connection; what only some rules look up after the version that the write compares."""
    facts = await ledger.read(connection, question_of(attempt))
    if facts is None:
        return None, None
    for more in signer.rule_facts:
        facts = await more.read(connection, attempt, facts)
    if not broken_quorums.names_votes(facts.rules):
        return facts, None
    ref, way = attempt.ref, attempt.way
    return facts, await broken_quorums.read(connection, ref.tenant, ref.agent, way.subject, way.voter)


def question_of(attempt: SigningAttempt) -> Question:
    """Collect what the read must know of an order."""
    wanted = attempt.draft.nonce
    return Question(
        ref=attempt.ref,
        family=attempt.kind.keys.family,
        principal=attempt.call.caller.principal,
        key=attempt.call.key,
        chain_id=wanted.chain_id if wanted else None,
        pending_nonce=wanted.pending if wanted else None,
        nonce=wanted.nonce if wanted else None,
        takes_open_slot=wanted.takes_open_slot if wanted else False,
        authority=attempt.way.needs_authority,
        action=_action_of(attempt),
        psbt=attempt.draft.psbt,
    )


def _action_of(attempt: SigningAttempt) -> tuple[str, str] | None:
    """Type and reference of a wallet action that takes its reference now."""
    action, reference = attempt.draft.action, attempt.draft.reference_id
    if action is None or reference is None or not attempt.way.has_reference(attempt.draft):
        return None
    return action.type, reference
