"""Read, judge, sign in memory, one guarded write, then release: the heart (design 3).

Nothing leaves before the write is committed, and the write commits only if nothing the order was judged on has
changed. A crash before it leaves no trace; a crash after it leaves the signature to be asked for again.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import asyncpg

from custody.kit import stages
from custody.kit.db import DatabaseAway
from custody.kit.errors import Forbidden, Unavailable
from custody.kit.logs import logger
from custody.kit.refs import AgentRef
from custody.protocol.messages import Outcome, Signing, SignTypedData
from custody.transactions import ledger
from custody.transactions.ledger import Guard, Question
from signer import orders
from signer.case import Case
from signer.consider import ToWrite, consider
from signer.context import Ask, Signer
from signer.proofs import ProvenAgent, ProvenSession, ProvenTenant
from signer.turns import TooManyWaiting

log = logger(__name__)
OPTIMISTIC_TRIES = 3
SETTLE_SECONDS = 8.0


class Busy(Unavailable):
    """This agent has more orders waiting than can be signed in time; try again shortly."""


class Unclaimed(Exception):
    """The approval was decided by somebody else, or expired, before this signature could be written."""


async def decide(signer: Signer, message: Signing, ask: Ask[ProvenAgent] | Ask[ProvenSession]) -> tuple[Outcome, bool]:
    """Judge an order by the agent's sealed policies, then sign, queue or refuse it.

    An owner or admin may ask in an agent's place; the agent's policies judge it all the same.
    """
    ref = acting_for(ask, message.agent)

    def case() -> Case:
        prepared = None if isinstance(message, SignTypedData) else message.prepared
        draft = orders.draft(message.order, prepared, signer.chains)
        return Case(ref=ref, tx_id=message.tx_id, draft=draft, ask=ask)

    return await settle(signer, ref, case)


def acting_for(ask: Ask[ProvenAgent] | Ask[ProvenSession], agent: str) -> AgentRef:
    """The agent whose wallet is asked for; an agent has only its own."""
    if isinstance(ask.caller, ProvenAgent) and ask.caller.agent != agent:
        raise Forbidden("An agent signs only with its own wallet.", code="other_agent")
    return AgentRef(ask.caller.tenant, agent)


async def settle(signer: Signer, ref: AgentRef, make_case: Callable[[], Case]) -> tuple[Outcome, bool]:
    """Bring one case to its end; the second value says that the answer is an earlier one.

    The case is made in its turn: reading a large order is work too, and one agent may not do it all at once.
    """
    taken = stages.begin()
    try:
        async with signer.turns.turn_of(ref.tenant, ref.agent):
            case = make_case()
            for _ in range(OPTIMISTIC_TRIES):
                if (done := await _attempt(signer, case)) is not None:
                    return _told(case, done, taken)
                signer.counters["stale"] += 1
            # Somebody else keeps changing this agent. Wait for the row instead of racing for it.
            if (done := await _attempt_locked(signer, case)) is not None:
                return _told(case, done, taken)
    except TooManyWaiting:
        raise Busy from None
    raise Busy


def _told(case: Case, done: tuple[Outcome, bool], taken: dict[str, float]) -> tuple[Outcome, bool]:
    """Log one line about the order, without anything of its content."""
    said: dict[str, object] = {
        "request_id": case.ask.origin.request_id,
        "tx_id": case.tx_id,
        "outcome": type(done[0]).__name__,
    }
    log.info("order", extra={**said, **taken})
    return done


async def _attempt_locked(signer: Signer, case: Case) -> tuple[Outcome, bool] | None:
    step: ToWrite | tuple[Outcome, bool] | None = None
    try:
        async with signer.pool.acquire() as connection, connection.transaction():
            await ledger.lock(connection, case.ref)
            facts = await ledger.read(connection, question_of(case))
            step = consider(signer, case, facts, locked=True)
            if not isinstance(step, ToWrite):
                return step
            result = await _write(connection, case, step)
    except DatabaseAway:
        if isinstance(step, ToWrite):
            return await _after_broken_commit(signer, case, step)
        raise
    # Only after the commit may the answer leave.
    return _settled(step, result)


async def _attempt(signer: Signer, case: Case) -> tuple[Outcome, bool] | None:
    """One optimistic try; None when something changed between the read and the write."""
    with stages.timed("read"):
        async with signer.pool.acquire() as connection:
            facts = await ledger.read(connection, question_of(case))
    with stages.timed("judge_and_sign"):
        step = consider(signer, case, facts, locked=False)
    if not isinstance(step, ToWrite):
        return step
    try:
        with stages.timed("write"):
            async with signer.pool.acquire() as connection:
                result = await _write(connection, case, step)
    except DatabaseAway:
        return await _after_broken_commit(signer, case, step)
    except asyncpg.PostgresError as problem:
        if problem.sqlstate == "CU001":  # the idempotency key was taken a moment ago: read it
            return None
        if isinstance(problem, asyncpg.UniqueViolationError):
            # The unique indexes are the alarm, not the mechanism: only the same order sent twice at once gets here.
            log.error("a unique index stopped a signature", extra={"constraint": problem.constraint_name})
            return None
        raise
    return _settled(step, result)


def _settled(step: ToWrite, result: str) -> tuple[Outcome, bool] | None:
    if result == "unclaimed":
        raise Unclaimed
    return (step.outcome, False) if result == "done" else None


async def _after_broken_commit(signer: Signer, case: Case, step: ToWrite) -> tuple[Outcome, bool] | None:
    """The connection died at the commit: find out whether it happened, never guess.

    The row lock waits until the old backend is gone; after that the order is there or it never will be.
    """
    deadline = asyncio.get_running_loop().time() + SETTLE_SECONDS
    while True:
        try:
            async with signer.pool.acquire() as connection, connection.transaction():
                await ledger.lock(connection, case.ref)
                found = await connection.fetchval(
                    "SELECT (signature IS NOT DISTINCT FROM $3 AND status <> 'pending_approval') OR answer = $4 "
                    "FROM transactions WHERE tenant_id = $1 AND id = $2",
                    case.ref.tenant, case.tx_id, step.record.signature, step.record.answer,
                )  # fmt: skip
            signer.counters["broken_commits"] += 1
            return (step.outcome, False) if found else None
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            if asyncio.get_running_loop().time() > deadline:
                raise Unavailable from None
            await asyncio.sleep(0.05)


def question_of(case: Case) -> Question:
    """What the read must know of an order."""
    draft = case.draft
    return Question(
        ref=case.ref, purpose=draft.purpose, tx_id=case.tx_id, principal=case.ask.caller.principal, key=case.ask.key,
        chain_id=draft.chain.id if draft.chain and draft.kind == "evm" else None, pending_nonce=draft.pending_nonce,
        nonce=draft.nonce, takes_open_slot=draft.takes_open_slot,
    )  # fmt: skip


async def _write(connection: Any, case: Case, step: ToWrite) -> str:
    caller = case.ask.caller
    guard = Guard(
        epoch=caller.epoch if isinstance(caller, ProvenAgent) else None,
        caller_key=caller.standing if isinstance(caller, ProvenTenant) else None,
        claim=case.claim.approval_id if case.claim else None,
        claim_user=caller.user if isinstance(caller, ProvenSession) else None,
    )
    return await ledger.write(connection, case.ref, step.facts, step.record, guard)
