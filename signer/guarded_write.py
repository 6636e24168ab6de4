"""The guarded write of what was judged, and what became of it where the connection died."""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import asyncpg

from custody.kit.answers import Answered
from custody.kit.db import DatabaseAway
from custody.kit.errors import Unavailable
from custody.worker.proven import ProvenAgent, ProvenSession, ProvenTenant
from signer import ledger
from signer.ledger import Guard, ProposalRecord, Record, VoteRecord
from signer.quotas import Held
from signer.signing_attempt import Outcome, SigningAttempt, ToWrite
from signer.signing_state import SigningState

SETTLE_SECONDS = 8.0


class Unclaimed(Exception):
    """The approval or intent was decided by somebody else, or expired, before this signature could be written."""


async def write(connection: Any, attempt: SigningAttempt, step: ToWrite) -> str:
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


def count(signer: SigningState, attempt: SigningAttempt, step: ToWrite) -> AbstractContextManager[Held]:
    """Count the order before it is written; one that was queued and is approved now was counted then."""
    if attempt.claim is not None or isinstance(step.record, VoteRecord):
        return signer.quotas.hold(attempt.ref.tenant)
    if isinstance(step.record, ProposalRecord):
        return signer.quotas.hold(attempt.ref.tenant, bytes_per_day=step.record.stored_bytes)
    return hold(signer, attempt.ref.tenant, (step.record, *step.more))


def hold(signer: SigningState, tenant: str, orders: Sequence[Record], calls: int = 0) -> AbstractContextManager[Held]:
    """Count some orders of a tenant, and the bytes of so many charged calls, before they are written."""
    stored = sum(record.stored_bytes for record in orders) + ledger.CALL_BYTES * calls
    return signer.quotas.hold(tenant, orders=len(orders), orders_per_day=len(orders), bytes_per_day=stored)


def outcome_of(signer: SigningState, attempt: SigningAttempt, step: ToWrite, result: str) -> Answered[Outcome] | None:
    """Give what may leave now that it is written; None where nothing was, raises Unclaimed."""
    if result == "unclaimed":
        raise Unclaimed
    if result == "done" and isinstance(step.record, Record):
        signer.acknowledged.remember(attempt.ref, step.facts.incarnation, step.facts.ledger_version + 1)
    return Answered(step.outcome) if result == "done" else None


async def settle_broken_commit(
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
                if not (found := await _is_there(connection, attempt, step)):
                    await ledger.raise_version(connection, attempt.ref)
            signer.counters["broken_commits"] += 1
            if not found:
                attempt.way.take_back()
            return outcome_of(signer, attempt, step, "done" if found else "stale")
        except (*DatabaseAway, asyncpg.PostgresError):
            if asyncio.get_running_loop().time() > deadline:
                raise Unavailable from None
            await asyncio.sleep(0.05)


async def _is_there(connection: Any, attempt: SigningAttempt, step: ToWrite) -> bool:
    """Say whether what was to be written is there."""
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
            step.record.release.signature,
            step.record.told.answer,
        )
    )


def guard_of(attempt: SigningAttempt, step: ToWrite) -> Guard:
    """Collect what must still be so when an attempt is written."""
    caller = attempt.call.caller
    return Guard(
        epoch=caller.epoch if isinstance(caller, ProvenAgent) else None,
        credential=caller.standing if isinstance(caller, ProvenTenant) else None,
        claim=attempt.claim.approval_id if attempt.claim else None,
        claim_user=caller.user if isinstance(caller, ProvenSession) else None,
        claim_comment=attempt.claim.comment if attempt.claim else None,
        used=attempt.way.used_signatures(attempt, step.outcome),
        voters=step.tally.voters() if step.tally else None,
        step=step.step,
        family=attempt.kind.keys.family,
        releases=attempt.way.is_release,
    )


async def _write(connection: Any, attempt: SigningAttempt, step: ToWrite) -> str:
    guard = guard_of(attempt, step)
    if isinstance(step.record, VoteRecord):
        return await ledger.write_vote(connection, attempt.ref, step.facts, step.record, guard)
    if isinstance(step.record, ProposalRecord):
        return await ledger.write_proposal(connection, attempt.ref, step.facts, step.record, guard)
    return await ledger.write(connection, ledger.to_write(attempt.ref, step.facts, (step.record, *step.more), guard))
