"""Read, judge, sign in memory, one guarded write, then release: the heart.

Nothing leaves before the write is committed, and the write commits only if nothing the order was judged on has
changed. A crash before it leaves no trace; a crash after it leaves the signature to be asked for again.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import asyncpg

from custody.kit import stages
from custody.kit.answers import Answered
from custody.kit.db import DatabaseAway, tenant_scope
from custody.kit.errors import CustodyError, Unauthenticated, Unavailable
from custody.kit.logs import logger
from custody.kit.refs import AgentRef
from custody.protocol.refusals import IdempotencyMismatch, SignatureReplayed
from custody.protocol.signer.orders import NeedsPreparation, Signed
from custody.protocol.signer.refusals import Busy
from custody.worker.agent_queues import TooManyWaiting
from custody.worker.proven import ProvenAgent, ProvenSession, ProvenTenant
from signer import broken_quorums, ledger
from signer.evaluate import evaluate
from signer.kept_state import Since, State, is_plain
from signer.ledger import Facts, Guard, ProposalRecord, Question, Record, VoteRecord
from signer.orders import second_reader
from signer.quotas import Held
from signer.signing_attempt import Outcome, SigningAttempt, Step, ToWrite, decode_outcome
from signer.signing_state import SigningState
from signer.together import signs, taken_along
from signer.waiting import Waiter

log = logger(__name__)
OPTIMISTIC_TRIES = 3
SETTLE_SECONDS = 8.0
# An order that takes longer is worth a line, with the time of its stages.
SLOW_MS = 1000.0
_SAME_ORDER = "transactions_pkey"
_USED_BEFORE = "CU003"
_SAME_REFERENCE = ("transactions_action_reference", "intents_action_reference")


class Unclaimed(Exception):
    """The approval or intent was decided by somebody else, or expired, before this signature could be written."""


async def settle(
    signer: SigningState, ref: AgentRef, make_attempt: Callable[[], SigningAttempt], waiter: Waiter | None = None
) -> Answered[Outcome]:
    """Bring one attempt to its end; the second value says that the answer is an earlier one.

    The attempt is made in its turn: reading a large order is work too, and one agent may not do it all at once. A
    `waiter` may be taken along by an order that has the turn before.
    """
    taken = stages.begin()
    await signer.quotas.know(ref.tenant)
    try:
        with signer.waiting.join(ref, waiter) if waiter is not None else nullcontext():
            async with signer.queues.turn_of(ref.tenant, ref.agent):
                if waiter is not None and waiter.answer is not None:
                    return waiter.answer
                if waiter is not None:
                    signer.waiting.leave(ref, waiter)
                attempt = await signer.throttle.run(ref.tenant, ref.agent, make_attempt)
                await second_reader.confirm(signer, ref, attempt.kind, attempt.draft)
                return _logged(attempt, await _answered(signer, attempt), taken)
    except TooManyWaiting:
        raise Busy from None


async def _answered(signer: SigningState, attempt: SigningAttempt) -> Answered[Outcome]:
    """The outcome of an attempt; the earlier one where the same order was written before the signer went away.

    That is rare, so nobody looks for it before the write meets the primary key, or something says that there will be
    no write: an agent frozen meanwhile, a nonce that this very order took.
    """
    try:
        done = await _tried(signer, attempt)
    except (Unauthenticated, IdempotencyMismatch):
        # An earlier answer has a signature in it, which a revoked token gets no more.
        raise
    except CustodyError:
        if (written := await _written(signer, attempt)) is None:
            raise
        return written
    if isinstance(done.answer, NeedsPreparation):
        return await _written(signer, attempt) or done
    return done


async def _tried(signer: SigningState, attempt: SigningAttempt) -> Answered[Outcome]:
    for number in range(OPTIMISTIC_TRIES):
        # The first try may be judged on kept state and take others along; what spoils it spoils no later one.
        if (done := await _attempt(signer, attempt, first=number == 0)) is not None:
            return done
        signer.counters["stale"] += 1
    # Somebody else keeps changing this agent. Wait for the row instead of racing for it.
    if (done := await _attempt_locked(signer, attempt)) is not None:
        return done
    raise Busy


async def _written(signer: SigningState, attempt: SigningAttempt) -> Answered[Outcome] | None:
    """The answer that this very order got before; an approval's is found by the approval."""
    if not attempt.way.is_told_by_order:
        return None
    async with tenant_scope(signer.pool, attempt.ref.tenant) as connection:
        answer = await ledger.written(connection, attempt.ref, attempt.tx_id)
    return None if answer is None else Answered(decode_outcome(answer), replayed=True)


def _logged(attempt: SigningAttempt, done: Answered[Outcome], taken: dict[str, float]) -> Answered[Outcome]:
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
            await ledger.lock(connection, attempt.ref)
            facts = await ledger.read(connection, question_of(attempt))
            quorum = await read_quorum(connection, attempt, facts)
            step = evaluate(signer, attempt, facts, quorum, locked=True)
            if not isinstance(step, ToWrite):
                return step
            with _counted(signer, attempt, step) as held:
                result = await _noted_write(connection, attempt, step)
                if result == "done":
                    held.keep()
    except DatabaseAway:
        if isinstance(step, ToWrite):
            return await _after_broken_commit(signer, attempt, step)
        raise
    except asyncpg.PostgresError as problem:
        if problem.sqlstate == _USED_BEFORE:
            return await _replayed(signer, attempt)
        if not isinstance(problem, asyncpg.UniqueViolationError):
            raise
        if problem.constraint_name == _SAME_ORDER and (written := await _written(signer, attempt)) is not None:
            return written
        raise
    # Only after the commit may the answer leave.
    return _settled(signer, attempt, step, result)


async def _attempt(signer: SigningState, attempt: SigningAttempt, *, first: bool) -> Answered[Outcome] | None:
    """One optimistic try; None when something changed between the read and the write."""
    if first and (kept := signer.kept.of(attempt)) is not None:
        return await _on_kept_state(signer, attempt, kept)
    with stages.timed("read"):
        began = signer.kept.now()
        async with signer.pool.acquire() as connection:
            facts = await ledger.read(connection, question_of(attempt))
            quorum = await read_quorum(connection, attempt, facts)
        ended = signer.kept.now()
    with stages.timed("judge_and_sign"):
        step = evaluate(signer, attempt, facts, quorum, locked=False)
    if not isinstance(step, ToWrite):
        return step
    state = State(step.facts, Since(step.facts.now, began, ended), quorum)
    if first and is_plain(attempt) and signs(step):
        return await _signed_together(signer, attempt, step, state)
    try:
        with stages.timed("write"), _counted(signer, attempt, step) as held:
            result = await _written_now(signer, attempt, step)
            if result == "done":
                held.keep()
    except DatabaseAway:
        return await _after_broken_commit(signer, attempt, step)
    except asyncpg.PostgresError as problem:
        if problem.sqlstate == "CU001":  # the idempotency key was taken a moment ago: read it
            return None
        if problem.sqlstate == _USED_BEFORE:
            return await _replayed(signer, attempt)
        if isinstance(problem, asyncpg.UniqueViolationError):
            if problem.constraint_name == _SAME_ORDER and (written := await _written(signer, attempt)) is not None:
                return written
            if problem.constraint_name in _SAME_REFERENCE:  # taken a moment ago: read it
                return None
            # The unique indexes are the alarm, not the mechanism: nothing gets here that the guard should let by.
            log.error("a unique index stopped a signature", extra={"constraint": problem.constraint_name})
            return None
        raise
    return _settled(signer, attempt, step, result)


async def _on_kept_state(signer: SigningState, attempt: SigningAttempt, kept: State) -> Answered[Outcome] | None:
    """A try without a read: signed, or nothing is said and it is judged again on what is read."""
    try:
        with stages.timed("judge_and_sign"):
            step = evaluate(signer, attempt, kept.facts, None, locked=False)
    except CustodyError:
        step = None
    if isinstance(step, ToWrite) and signs(step):
        signer.counters["orders_on_kept_state"] += 1
        return await _signed_together(signer, attempt, step, kept)
    signer.kept.forget(attempt.ref)
    return None


async def _signed_together(
    signer: SigningState, attempt: SigningAttempt, step: ToWrite, state: State
) -> Answered[Outcome] | None:
    """Write a signature, and in the same commit those of orders that wait; None where any of it failed."""
    if not isinstance(step.record, Record):
        raise TypeError("a signature has a record")
    taken = await taken_along(signer, attempt, step.record, state.facts, state.quorum)
    records = (step.record, *(one.record for one in taken))
    what = ledger.to_write(attempt.ref, state.facts, records, guard_of(attempt, step))
    # Of their idempotency keys nothing was read, so the write may meet one: then it is in no batch with other agents.
    blind = bool(taken) or (state.facts.kept and attempt.call.key is not None)
    result = "failed"
    try:
        with stages.timed("write"), _held(signer, attempt.ref.tenant, records) as held:
            result = await (signer.writes.alone(what) if blind else signer.writes.write(what))
            if result == "done":
                held.keep()
    except DatabaseAway:
        signer.kept.forget(attempt.ref)
        # Of this order alone: its row may be from an earlier try, and says nothing of those that it took along. Each of
        # them meets its own row in its own turn.
        return await _after_broken_commit(signer, attempt, step)
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


async def _replayed(signer: SigningState, attempt: SigningAttempt) -> Answered[Outcome]:
    """The answer of this very order, which used its signatures up itself; SignatureReplayed where another did."""
    if (written := await _written(signer, attempt)) is None:
        raise SignatureReplayed
    return written


async def read_quorum(connection: Any, attempt: SigningAttempt, facts: Facts | None) -> broken_quorums.Read | None:
    """What the rules need to know of votes, where they may ask for some; after the version that the write compares."""
    if facts is None or not broken_quorums.names_votes(facts.rules):
        return None
    ref, way = attempt.ref, attempt.way
    return await broken_quorums.read(connection, ref.tenant, ref.agent, way.subject, way.voter)


async def _written_now(signer: SigningState, attempt: SigningAttempt, step: ToWrite) -> str:
    signer.kept.forget(attempt.ref)
    async with signer.pool.acquire() as connection:
        return await _noted_write(connection, attempt, step)


async def _noted_write(connection: Any, attempt: SigningAttempt, step: ToWrite) -> str:
    """The write; what its way notes beside the database is taken back where nothing was written."""
    attempt.way.note(step)
    try:
        result = await _write(connection, attempt, step)
    except asyncpg.PostgresError as problem:
        # The database answered, so nothing of it was written; a connection that broke answers nothing.
        if not isinstance(problem, asyncpg.PostgresConnectionError):
            attempt.way.take_back()
        raise
    if result != "done":
        attempt.way.take_back()
    return result


def _counted(signer: SigningState, attempt: SigningAttempt, step: ToWrite) -> AbstractContextManager[Held]:
    """Count the order before it is written; one that was queued and is approved now was counted then."""
    if attempt.claim is not None or isinstance(step.record, VoteRecord):
        return signer.quotas.hold(attempt.ref.tenant)
    if isinstance(step.record, ProposalRecord):
        return signer.quotas.hold(attempt.ref.tenant, bytes_per_day=step.record.stored_bytes)
    return _held(signer, attempt.ref.tenant, (step.record, *step.more))


def _held(signer: SigningState, tenant: str, orders: Sequence[Record]) -> AbstractContextManager[Held]:
    stored = sum(record.stored_bytes for record in orders)
    return signer.quotas.hold(tenant, orders=len(orders), orders_per_day=len(orders), bytes_per_day=stored)


def _settled(signer: SigningState, attempt: SigningAttempt, step: ToWrite, result: str) -> Answered[Outcome] | None:
    if result == "unclaimed":
        raise Unclaimed
    if result == "done" and isinstance(step.record, Record):
        signer.acknowledged.remember(attempt.ref, step.facts.incarnation, step.facts.ledger_version + 1)
    return Answered(step.outcome) if result == "done" else None


async def _after_broken_commit(
    signer: SigningState, attempt: SigningAttempt, step: ToWrite
) -> Answered[Outcome] | None:
    """The connection died at the commit: find out whether it happened, never guess.

    Taking the row lock waits for a backend at work on the write. If nothing is found, the agent's version is raised,
    so a write that begins later fails: what is not there now never will be.
    """
    deadline = asyncio.get_running_loop().time() + SETTLE_SECONDS
    while True:
        try:
            async with signer.pool.acquire() as connection, connection.transaction():
                await ledger.lock(connection, attempt.ref)
                if not (found := await _found(connection, attempt, step)):
                    await ledger.raise_version(connection, attempt.ref)
            signer.counters["broken_commits"] += 1
            if not found:
                attempt.way.take_back()
            return _settled(signer, attempt, step, "done" if found else "stale")
        except (*DatabaseAway, asyncpg.PostgresError):
            if asyncio.get_running_loop().time() > deadline:
                raise Unavailable from None
            await asyncio.sleep(0.05)


async def _found(connection: Any, attempt: SigningAttempt, step: ToWrite) -> bool:
    """Whether what was to be written is there."""
    if isinstance(step.record, ProposalRecord):
        kept = "SELECT EXISTS (SELECT FROM intents WHERE tenant_id = $1 AND id = $2)"
        return bool(await connection.fetchval(kept, attempt.ref.tenant, attempt.tx_id))
    if isinstance(step.record, VoteRecord):
        return bool(
            await connection.fetchval(
                "SELECT EXISTS (SELECT FROM approval_votes WHERE tenant_id = $1 AND subject = $2 AND signature = $3)",
                attempt.ref.tenant,
                step.record.vote.subject,
                step.record.vote.signature,
            )
        )
    return bool(
        await connection.fetchval(
            "SELECT (signature IS NOT DISTINCT FROM $3 AND status <> 'pending_approval') OR answer = $4 "
            "FROM transactions WHERE tenant_id = $1 AND id = $2",
            attempt.ref.tenant,
            attempt.tx_id,
            step.record.signature,
            step.record.answer,
        )
    )


def question_of(attempt: SigningAttempt) -> Question:
    """What the read must know of an order."""
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


def guard_of(attempt: SigningAttempt, step: ToWrite) -> Guard:
    """What must still be so when an attempt is written."""
    caller = attempt.call.caller
    return Guard(
        epoch=caller.epoch if isinstance(caller, ProvenAgent) else None,
        credential=caller.standing if isinstance(caller, ProvenTenant) else None,
        claim=attempt.claim.approval_id if attempt.claim else None,
        claim_user=caller.user if isinstance(caller, ProvenSession) else None,
        claim_comment=attempt.claim.comment if attempt.claim else None,
        used=attempt.way.used(attempt, step.outcome),
        voters=step.tally.voters() if step.tally else None,
        step=step.step,
        family=attempt.kind.keys.family,
    )


async def _write(connection: Any, attempt: SigningAttempt, step: ToWrite) -> str:
    guard = guard_of(attempt, step)
    if isinstance(step.record, VoteRecord):
        return await ledger.write_vote(connection, attempt.ref, step.facts, step.record, guard)
    if isinstance(step.record, ProposalRecord):
        return await ledger.write_proposal(connection, attempt.ref, step.facts, step.record, guard)
    return await ledger.write(connection, ledger.to_write(attempt.ref, step.facts, (step.record, *step.more), guard))
