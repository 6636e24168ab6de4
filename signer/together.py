"""Orders and priced calls brought to their end sooner: on kept state instead of a read, and several of one agent in one
commit, each judged on the state that the one before it leaves.

Every order may do without (`decide.Alone`) and comes to the same: what is signed was judged by `evaluate`, and the
guarded write compares what it was judged on.

Who has the agent's turn takes along what waits for it. All of it becomes true with one write or none of it does, and
only then is anything released. An order that would not be signed is left to its own turn, and so is all the rest when
the write is refused: nobody is told anything for somebody else's order.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

import asyncpg
import msgspec

from custody.kit import stages
from custody.kit.answers import Answered
from custody.kit.db import DatabaseAway
from custody.kit.errors import CustodyError
from custody.kit.refs import AgentRef
from custody.protocol.signer.outcomes import Signed
from custody.worker.proven import ProvenAgent
from signer import decide, ledger, priced_calls
from signer.context import Signer
from signer.decide import Alone
from signer.evaluate import evaluate
from signer.guarded_write import guard_of, hold, settle_broken_commit
from signer.kept_state import Since, State, after, goes_with, is_plain, is_same, place_of
from signer.ledger import ChargeRow, Guard, Record
from signer.priced_calls import PricedCall
from signer.signing_attempt import Outcome, SigningAttempt, ToWrite
from signer.waiting import CallWaiter, Waiter

MAX_TOGETHER: Final = 16
MAX_BYTES: Final = 64 * 1024


class Taken(NamedTuple):
    """Company of a write: orders, each with its record and what it came to, and charges of calls."""

    orders: list[tuple[Waiter, Record, Signed]]
    calls: list[tuple[CallWaiter, ChargeRow]]


class _Judged(NamedTuple):
    """One that waits, judged on the state that those before it leave."""

    waiter: Waiter | CallWaiter
    records: tuple[Record, ...]
    calls: tuple[ChargeRow, ...]
    outcome: Signed | None


def _goes_alone(attempt: SigningAttempt, kept: State) -> bool:
    """Say whether its write, unread, could share no commit with other agents, whose sums it waits for."""
    return attempt.call.key is not None and any(one.spend for one in kept.facts.sets)


def signs(step: object) -> bool:
    """Say whether this writes one signature and nothing else."""
    return isinstance(step, ToWrite) and isinstance(step.outcome, Signed) and not step.more and step.tally is None


async def _taken_along(
    signer: Signer,
    ref: AgentRef,
    caller: ProvenAgent,
    state: State,
    first: tuple[Sequence[Record], Sequence[ChargeRow]],
) -> Taken:
    """Judge what is written with the first one, in its turn; what all that was judged on is not written yet."""
    taken = Taken([], [])
    waiters = [waiter for waiter in signer.waiting.of(ref) if not waiter.is_done][: MAX_TOGETHER - 1]
    if not waiters:
        return taken
    stored = sum(record.stored_bytes for record in first[0])
    state = msgspec.structs.replace(state, facts=after(state.facts, *first))
    for waiter in waiters:
        # What was read and judged in vain counts: orders that are not signed would take the loop again and again.
        if signer.throttle.is_used_up(ref.tenant):
            break
        one = signer.throttle.run_or_count(ref.tenant, ref.agent, partial(_judge, signer, caller, waiter, state))
        # Other agents have the loop in between.
        await asyncio.sleep(0)
        if one is None:
            continue
        stored += sum(record.stored_bytes for record in one.records)
        if stored > MAX_BYTES:
            break
        _add(taken, one)
        state = msgspec.structs.replace(state, facts=after(state.facts, one.records, one.calls))
    return taken


def _add(taken: Taken, one: _Judged) -> None:
    if isinstance(one.waiter, CallWaiter):
        taken.calls.append((one.waiter, one.calls[0]))
    elif one.outcome is not None:
        taken.orders.append((one.waiter, one.records[0], one.outcome))


def _judge(signer: Signer, caller: ProvenAgent, waiter: Waiter | CallWaiter, state: State) -> _Judged | None:
    if isinstance(waiter, CallWaiter):
        return _judge_call(signer, caller, waiter, state)
    return _judge_order(signer, caller, waiter, state)


def _judge_order(signer: Signer, caller: ProvenAgent, waiter: Waiter, state: State) -> _Judged | None:
    try:
        attempt = waiter.make_attempt()
        goes = goes_with(state.place, caller, attempt)
        step = evaluate(signer, attempt, state.facts, state.quorum, locked=False) if goes else None
    except Exception:
        return None
    if isinstance(step, ToWrite) and isinstance(step.record, Record) and isinstance(step.outcome, Signed):
        return _Judged(waiter, (step.record,), (), step.outcome) if signs(step) else None
    return None


def _judge_call(signer: Signer, caller: ProvenAgent, waiter: CallWaiter, state: State) -> _Judged | None:
    try:
        goes = is_same(caller, waiter.call.caller)
        charge = priced_calls.evaluate(signer, waiter.call, state.facts, locked=False) if goes else None
    except CustodyError:
        return None
    return None if charge is None else _Judged(waiter, (), (charge,), None)


class _First(NamedTuple):
    """The order or call that has the agent's turn, judged."""

    ref: AgentRef
    caller: ProvenAgent
    guard: Guard
    records: tuple[Record, ...] = ()
    calls: tuple[ChargeRow, ...] = ()
    # An idempotency key that was not looked for.
    blind: bool = False


async def _write_together(signer: Signer, first: _First, state: State) -> bool:
    """Write what has the turn, and in the same commit what waits; false where any of it failed."""
    ref, facts = first.ref, state.facts
    taken = await _taken_along(signer, ref, first.caller, state, (first.records, first.calls))
    records = (*first.records, *(record for _, record, _ in taken.orders))
    calls = (*first.calls, *(charge for _, charge in taken.calls))
    what = ledger.to_write(ref, facts, records, first.guard, calls)
    # Of their idempotency keys nothing was read, so the write may meet one: then it is in no batch with other agents.
    blind = bool(taken.orders) or first.blind
    result = "failed"
    try:
        with stages.time_stage("write"), hold(signer, ref.tenant, records, len(calls)) as held:
            result = await (signer.writes.alone(what) if blind else signer.writes.write(what))
            if result == "done":
                held.keep()
    except DatabaseAway:
        signer.kept.forget(ref)
        raise
    except (asyncpg.PostgresError, CustodyError):
        # Whose fault it was, each finds out alone.
        pass
    if result != "done":
        signer.kept.note_refusal(ref, state, stale=result == "stale")
        return False
    signer.kept.keep(ref, state, records, calls)
    signer.acknowledged.remember(ref, facts.incarnation, facts.ledger_version + 1)
    for waiter, _, outcome in taken.orders:
        waiter.answer = Answered(outcome)
    for call_waiter, _ in taken.calls:
        call_waiter.is_done = True
    signer.counters["orders_taken_along"] += len(taken.orders)
    signer.counters["calls_taken_along"] += len(taken.calls)
    return True


async def sign_together(
    signer: Signer, attempt: SigningAttempt, step: ToWrite, state: State
) -> Answered[Outcome] | None:
    """Write a signature, and in the same commit what waits; None where any of it failed."""
    caller = attempt.call.caller
    if not isinstance(step.record, Record) or not isinstance(caller, ProvenAgent):
        raise TypeError("a signature that is asked for by an agent's token has a record")
    blind = state.facts.kept and attempt.call.key is not None
    first = _First(attempt.ref, caller, guard_of(attempt, step), records=(step.record,), blind=blind)
    try:
        done = await _write_together(signer, first, state)
    except DatabaseAway:
        # Of this order alone: its row may be from an earlier try, and says nothing of those that it took along. Each of
        # them meets its own row in its own turn.
        return await settle_broken_commit(signer, attempt, step)
    return Answered(step.outcome) if done else None


async def charge_together(signer: Signer, call: PricedCall, charge: ChargeRow, state: State) -> bool:
    """Write the charge of a call, and in the same commit what waits; DatabaseAway where nobody knows whether it was."""
    guard = Guard(epoch=call.caller.epoch, family=state.place[0])
    return await _write_together(signer, _First(call.ref, call.caller, guard, calls=(charge,)), state)


async def settle(
    signer: Signer, ref: AgentRef, make_attempt: Callable[[], SigningAttempt], *, may_be_taken_along: bool = False
) -> Answered[Outcome]:
    """Bring one attempt to its end, as `decide.settle` does.

    One that may be taken along by an order that has the turn before is offered to it while it waits.
    """
    if not may_be_taken_along:
        return await decide.settle(signer, ref, make_attempt, Quicker(signer))
    # First, so that no order is signed whose caller would hear of a database that is away instead.
    await signer.quotas.know(ref.tenant)
    waiter = Waiter(make_attempt)
    with signer.waiting.join(ref, waiter):
        return await decide.settle(signer, ref, make_attempt, Quicker(signer, ref, waiter))


class Quicker(Alone):
    """One order, which may be taken along, and take others along."""

    def __init__(self, signer: Signer, ref: AgentRef | None = None, waiter: Waiter | None = None) -> None:
        self._signer: Signer = signer
        self._ref, self._waiter = ref, waiter

    def earlier(self) -> Answered[Outcome] | None:
        """Find what it came to where somebody took it along; from now on nobody does."""
        if self._ref is None or self._waiter is None:
            return None
        if self._waiter.answer is None:
            self._signer.waiting.leave(self._ref, self._waiter)
        return self._waiter.answer

    async def attempt(self, attempt: SigningAttempt, *, first: bool) -> Answered[Outcome] | None:
        """Try once, at first on kept state and with what waits for its turn."""
        signer = self._signer
        if first and (kept := signer.kept.of(attempt)) is not None and not _goes_alone(attempt, kept):
            return await _on_kept_state(signer, attempt, kept)
        began = signer.kept.now()
        facts, quorum = await decide.read(signer, attempt)
        ended = signer.kept.now()
        step = decide.judge(signer, attempt, facts, quorum)
        if not isinstance(step, ToWrite):
            return step
        if first and is_plain(attempt) and signs(step):
            state = State(step.facts, Since(step.facts.now, began, ended), place_of(attempt), quorum)
            return await sign_together(signer, attempt, step, state)
        signer.kept.forget(attempt.ref)
        return await decide.write_alone(signer, attempt, step)


async def _on_kept_state(signer: Signer, attempt: SigningAttempt, kept: State) -> Answered[Outcome] | None:
    """Try without a read: it is signed, or nothing is said and it is judged again on what is read."""
    try:
        step = decide.judge(signer, attempt, kept.facts, None)
    except CustodyError:
        step = None
    if isinstance(step, ToWrite) and signs(step):
        signer.counters["orders_on_kept_state"] += 1
        return await sign_together(signer, attempt, step, kept)
    signer.kept.forget(attempt.ref)
    return None
