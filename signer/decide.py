"""Read, judge, sign in memory, one guarded write, then release: the heart (design 3).

Nothing leaves before the write is committed, and the write commits only if nothing the order was judged on has
changed. A crash before it leaves no trace; a crash after it leaves the signature to be asked for again.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import asyncpg
import msgspec

from custody.kit import ids, stages
from custody.kit.db import DatabaseAway
from custody.kit.errors import Conflict, Forbidden, Frozen, NotFound, Unavailable
from custody.kit.logs import logger
from custody.kit.refs import AgentRef
from custody.policies.judge import judge
from custody.policies.types import Facts as JudgedFacts
from custody.policies.types import Spend
from custody.protocol.messages import NeedsPreparation, Outcome, Queued, Refused, Signed, Signing, SignTypedData
from custody.transactions import ledger
from custody.transactions.ledger import Facts, Guard, Question
from signer import orders, record
from signer.context import Ask, Signer
from signer.heads import RolledBack
from signer.judging import Judging
from signer.orders import Draft, NeedsNode, Produced
from signer.proofs import BadProof, ProvenAgent, ProvenTenant, TokenRevoked
from signer.record import Judged
from signer.sealing import Context, Tampered
from signer.turns import TooManyWaiting

log = logger(__name__)
OPTIMISTIC_TRIES = 3
SETTLE_SECONDS = 8.0

decode_outcome = msgspec.msgpack.Decoder(Signed | Queued | Refused).decode


class AgentAbsent(NotFound):
    """There is no such agent."""


class Sealed(Unavailable):
    """The stored keys or policies of this agent are not what the signer wrote; nothing is signed. Tell the operator."""


class Busy(Unavailable):
    """This agent has more orders waiting than can be signed in time; try again shortly."""


class KeyReused(Conflict):
    """This Idempotency-Key was used for another request."""


class Unclaimed(Exception):
    """The approval was decided by somebody else, or expired, before this signature could be written."""


class Claim(msgspec.Struct, frozen=True):
    """An approval that is turned into a signature: the same path, judged again, claimed in the same write."""

    approval_id: str
    counted_this_hour: bool
    counted_today: bool


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One order on its way."""

    ref: AgentRef
    tx_id: str
    draft: Draft
    ask: Ask[ProvenAgent] | Ask[ProvenTenant]
    claim: Claim | None = None


async def decide(signer: Signer, message: Signing, ask: Ask[ProvenAgent]) -> tuple[Outcome, bool]:
    """Judge an order by the agent's sealed policies, then sign, queue or refuse it."""
    if ask.caller.agent != message.agent:
        raise Forbidden("An agent signs only with its own wallet.", code="other_agent")
    prepared = None if isinstance(message, SignTypedData) else message.prepared
    draft = orders.draft(message.order, prepared, signer.chains)
    ref = AgentRef(ask.caller.tenant, ask.caller.agent)
    return await settle(signer, Case(ref=ref, tx_id=message.tx_id, draft=draft, ask=ask))


async def settle(signer: Signer, case: Case) -> tuple[Outcome, bool]:
    """Bring one case to its end; the second value says that the answer is an earlier one."""
    taken = stages.begin()
    try:
        async with signer.turns.turn_of(case.ref.tenant, case.ref.agent):
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
    step: _ToWrite | tuple[Outcome, bool] | None = None
    try:
        async with signer.pool.acquire() as connection, connection.transaction():
            await ledger.lock(connection, case.ref)
            facts = await ledger.read(connection, _question(case))
            step = _think(signer, case, facts)
            if not isinstance(step, _ToWrite):
                return step
            result = await _write(connection, case, step)
    except DatabaseAway:
        if isinstance(step, _ToWrite):
            return await _after_broken_commit(signer, case, step)
        raise
    # Only after the commit may the answer leave.
    return _settled(step, result)


async def _attempt(signer: Signer, case: Case) -> tuple[Outcome, bool] | None:
    """One optimistic try; None when something changed between the read and the write."""
    with stages.timed("read"):
        async with signer.pool.acquire() as connection:
            facts = await ledger.read(connection, _question(case))
    with stages.timed("judge_and_sign"):
        step = _think(signer, case, facts)
    if not isinstance(step, _ToWrite):
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


def _settled(step: "_ToWrite", result: str) -> tuple[Outcome, bool] | None:
    if result == "unclaimed":
        raise Unclaimed
    return (step.outcome, False) if result == "done" else None


async def _after_broken_commit(signer: Signer, case: Case, step: "_ToWrite") -> tuple[Outcome, bool] | None:
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


class _ToWrite(msgspec.Struct, frozen=True):
    facts: Facts
    record: ledger.Record
    outcome: Outcome


def _question(case: Case) -> Question:
    draft = case.draft
    return Question(
        ref=case.ref, purpose=draft.purpose, tx_id=case.tx_id, principal=case.ask.caller.principal, key=case.ask.key,
        chain_id=draft.chain.id if draft.chain and draft.kind == "evm" else None, pending_nonce=draft.pending_nonce,
        nonce=draft.nonce, takes_open_slot=draft.takes_open_slot,
    )  # fmt: skip


async def _write(connection: Any, case: Case, step: _ToWrite) -> str:
    caller = case.ask.caller
    guard = Guard(
        epoch=caller.epoch if isinstance(caller, ProvenAgent) else None,
        caller_key=caller.key_hash if isinstance(caller, ProvenTenant) else None,
        claim=case.claim.approval_id if case.claim else None,
    )
    return await ledger.write(connection, case.ref, step.facts, step.record, guard)


def _think(signer: Signer, case: Case, facts: Facts | None) -> "_ToWrite | tuple[Outcome, bool]":
    """Everything between the read and the write: no waiting, no I/O, nothing released."""
    facts, earlier = _admit(case, facts)
    if earlier is not None:
        return earlier, True
    try:
        rules = signer.policies.open(
            case.ref.tenant, case.ref.agent, facts.incarnation, facts.head, facts.policy_version, facts.rules
        )
        judging = signer.judging.open(case.ref.tenant, facts.config_version, facts.judging, facts.judging_mac)
    except (Tampered, RolledBack) as problem:
        log.error(
            "policies refused",
            extra={"tenant": case.ref.tenant, "agent": case.ref.agent, "reason": type(problem).__name__},
        )
        raise Sealed(code="policy_tampered") from None
    built = case.draft.build(facts)
    verdict = judge(rules, built.subject, _judged_facts(signer, case, facts, judging))
    judged = Judged(case, facts, built, verdict)
    if verdict.decision == "sign":
        return _signed(signer, judged)
    if case.claim is not None:
        # Refused on today's policy: nothing is written, the item stays for another decision.
        return Refused(case.tx_id, list(verdict.results), record.why(verdict)), False
    if verdict.decision == "queue":
        return _queued(signer, judged, judging.auto_expire_seconds)
    return _refused(judged)


def _admit(case: Case, facts: Facts | None) -> tuple[Facts, Outcome | None]:
    """Is this caller still who it was, is the agent free to act, was this asked before?"""
    caller = case.ask.caller
    if facts is None:
        # A token of an agent that is gone proves nothing any more.
        raise BadProof if isinstance(caller, ProvenAgent) else AgentAbsent
    if isinstance(caller, ProvenAgent) and (caller.incarnation, caller.epoch) != (facts.incarnation, facts.token_epoch):
        raise TokenRevoked
    if case.ask.key is not None and facts.idempotent is not None:
        fingerprint, answer = facts.idempotent
        if fingerprint != case.ask.key.fingerprint:
            raise KeyReused(code="idempotency_mismatch")
        if answer is not None:
            return facts, decode_outcome(answer)
    if case.claim is None and facts.answer is not None:
        return facts, decode_outcome(facts.answer)
    if facts.frozen:
        raise Frozen
    return facts, None


def _judged_facts(signer: Signer, case: Case, facts: Facts, judging: Judging) -> JudgedFacts:
    """The ledger's figures as the judge sees them: a slot that is taken over does not count twice."""
    spend = {asset: Spend(day, week) for asset, (day, week) in facts.spend.items()}
    floor: dict[str, int] = {}
    if facts.slot is not None and facts.slot.state == "open":
        for asset, charge in facts.slot.charges.items():
            amount = floor[asset] = int(charge.amount)
            known = spend.get(asset, Spend(0, 0))
            # The same edges as the statement that summed: a bucket counts while any of its hour is in the window.
            in_day, in_week = (record.in_window(facts.now, charge.hour, hours=hours) for hours in (24, 168))
            spend[asset] = Spend(known.day - amount * in_day, known.week - amount * in_week)
    claim = case.claim
    return JudgedFacts(
        now=facts.now, spend=spend, floor=floor,
        orders_last_hour=facts.orders_last_hour - (1 if claim and claim.counted_this_hour else 0),
        orders_last_day=facts.orders_last_day - (1 if claim and claim.counted_today else 0),
        empty_policy=signer.empty_policy, uncovered=judging.uncovered_effects, approving=claim is not None,
    )  # fmt: skip


def _signed(signer: Signer, judged: Judged) -> "_ToWrite | tuple[Outcome, bool]":
    try:
        final = judged.built.finish()
    except NeedsNode:
        return NeedsPreparation(), False
    produced = _produce(signer, judged.case, judged.facts, final.unlock)
    outcome = record.signed_outcome(judged, produced)
    return _ToWrite(judged.facts, record.of_signed(judged, final.nonce, produced, outcome), outcome)


def _produce(signer: Signer, case: Case, facts: Facts, unlock: Callable[[bytes], orders.Unlocked]) -> Produced:
    """Open the key, make sure it is this wallet's, sign, and let go of it."""
    purpose = case.draft.purpose
    try:
        secret = signer.sealer.open(
            facts.blob or b"", Context(case.ref.tenant, "agent", case.ref.agent, purpose, facts.incarnation)
        )
        wallet = unlock(secret)
        if wallet.address != facts.address:
            raise Tampered
    except (Tampered, ValueError):
        log.error("key refused", extra={"tenant": case.ref.tenant, "agent": case.ref.agent})
        raise Sealed(code="key_tampered") from None
    return wallet.sign()


def _queued(signer: Signer, judged: Judged, expire_seconds: int) -> "_ToWrite":
    case, verdict = judged.case, judged.verdict
    outcome = Queued(case.tx_id, ids.new_uuid(), list(verdict.results), record.why(verdict))
    content = record.approval_content(
        case.ref.tenant, case.ref.agent, judged.facts.incarnation, case.tx_id, outcome.approval_id, case.draft.digest
    )
    mac = signer.sealer.mac(record.APPROVAL_MAC, case.ref.tenant, content)
    return _ToWrite(judged.facts, record.of_queued(judged, outcome, mac, expire_seconds), outcome)


def _refused(judged: Judged) -> "_ToWrite":
    verdict = judged.verdict
    reason = record.why(verdict)
    outcome = Refused(judged.case.tx_id, list(verdict.results), reason, verdict.rate_limited, verdict.retry_after)
    return _ToWrite(judged.facts, record.of_refused(judged, outcome), outcome)
