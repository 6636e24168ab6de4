"""State that an agent's next order is judged on without a read: the one that the last write of this signer left.

Nothing is believed of it. An order that is judged on it is signed or judged again on what is read then, and its write
compares the versions, the rows themselves (`row_stamp.sql`) and the minute. What somebody else wrote in between, by
whatever way, makes that write `stale`, and the state is forgotten.
"""

import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from custody.kit import clock
from custody.kit.cache import Cache
from custody.kit.refs import AgentRef
from custody.policies.parts import counted
from custody.worker.proven import ProvenAgent
from signer import broken_quorums
from signer.ledger import Facts, Record
from signer.record import hour_of, last_hour
from signer.signing_attempt import SigningAttempt

KEPT_SECONDS: Final = 600.0
MAX_AGENTS: Final = 4_096
# What is larger is read each time, so that all that is kept has a bound in bytes too.
MAX_RULES: Final = 16 * 1024
MAX_ASSETS: Final = 64
# How long nothing is kept of an agent whose state somebody else moved, at first and at most: several signers would
# spoil each other's, so each time it is twice as long, until a signature on kept state went through.
SHARED_SECONDS: Final = 10.0
MOST_SHARED_SECONDS: Final = 600.0
# The family of the wallet, and the chain whose nonces were read.
type _Place = tuple[str, int | None]


class Since(msgspec.Struct, frozen=True):
    """The database's time, as far as this process knows it since a read, by two moments of its own clock."""

    read: datetime
    began: float
    ended: float

    def least(self, moment: float) -> datetime:
        """The database's time at a moment, or a little before."""
        return self.read + timedelta(seconds=moment - self.ended)

    def most(self, moment: float) -> datetime:
        """The database's time at a moment, or a little after."""
        return self.read + timedelta(seconds=moment - self.began)


class State(msgspec.Struct, frozen=True):
    """Facts, as they were read or as a write left them, and what is known of their time."""

    facts: Facts
    since: Since
    # What the rules need to know of votes; such state is never kept, for no version vouches for it.
    quorum: broken_quorums.Read | None = None


class KeptStates:
    """The state of the agents that signed lately."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self._kept: Cache[AgentRef, tuple[State, _Place]] = Cache(MAX_AGENTS, KEPT_SECONDS, now)
        # Until when nothing is kept of an agent, and how long that was.
        self._shared: Cache[AgentRef, tuple[float, float]] = Cache(MAX_AGENTS, 2 * MOST_SHARED_SECONDS, now)
        self._swept = now()

    def __len__(self) -> int:
        """Of how many agents something is kept."""
        return len(self._kept)

    def of(self, attempt: SigningAttempt) -> State | None:
        """Find what this order may be judged on; None where it must be read."""
        if not is_plain(attempt) or (kept := self._kept.get(attempt.ref)) is None:
            return None
        state, place = kept
        now = state.since.least(self.now())
        if place != _place(attempt) or hour_of(now) != hour_of(state.facts.now):
            return None
        return msgspec.structs.replace(state, facts=_at(state.facts, now))

    def keep(self, attempt: SigningAttempt, state: State, records: Sequence[Record]) -> None:
        """A write of these records, judged on this state, is committed, and nothing else moved the agent's version."""
        facts, latest = state.facts, state.since.most(self.now())
        if facts.kept:
            self._shared.drop(attempt.ref)
        until, _ = self._shared.get(attempt.ref) or (0.0, 0.0)
        known = facts.stamp is not None and is_plain(attempt) and state.quorum is None and until <= self.now()
        known = known and len(facts.rules) + len(facts.judging or "") <= MAX_RULES and len(facts.spend) <= MAX_ASSETS
        # Of a write over the turn of a minute nobody here knows in which of the two its orders count.
        if not known or clock.minute_of(facts.now) != clock.minute_of(latest):
            self.forget(attempt.ref)
            return
        left = msgspec.structs.replace(after(facts, records), ledger_version=facts.ledger_version + 1, kept=True)
        self._kept.put(attempt.ref, (msgspec.structs.replace(state, facts=left), _place(attempt)))
        self._sweep()

    def refused(self, ref: AgentRef, state: State, *, stale: bool) -> None:
        """A write of what was judged on this state was refused; `stale`: something in the database had changed."""
        same_minute = clock.minute_of(state.since.most(self.now())) == clock.minute_of(state.facts.now)
        if stale and state.facts.kept and same_minute:
            self._note_move(ref)
        self.forget(ref)

    def _sweep(self) -> None:
        if self.now() - self._swept > KEPT_SECONDS:
            self._swept = self.now()
            self._kept.drop_ended()

    def _note_move(self, ref: AgentRef) -> None:
        """Somebody else wrote what was kept of this agent."""
        _, before = self._shared.get(ref) or (0.0, 0.0)
        seconds = min(max(2 * before, SHARED_SECONDS), MOST_SHARED_SECONDS)
        self._shared.put(ref, (self.now() + seconds, seconds))

    def forget(self, ref: AgentRef) -> None:
        """Have the next order read."""
        self._kept.drop(ref)


def is_plain(attempt: SigningAttempt) -> bool:
    """Say whether an agent's own token asks for a signature over one order that takes no slot, coin or reference."""
    draft, wanted = attempt.draft, attempt.draft.nonce
    return (
        isinstance(attempt.call.caller, ProvenAgent)
        and attempt.way.is_plain
        and draft.action is None
        and draft.psbt is None
        and draft.orders == 1
        and (wanted is None or (wanted.nonce is None and not wanted.takes_open_slot))
    )


def goes_with(attempt: SigningAttempt, other: SigningAttempt) -> bool:
    """Say whether two plain orders of one agent are judged on the same facts and written under the same guard."""
    mine, others = attempt.call.caller, other.call.caller
    return (
        is_plain(attempt)
        and is_plain(other)
        and other.kind.second_reader is None
        and _place(attempt) == _place(other)
        and isinstance(mine, ProvenAgent)
        and isinstance(others, ProvenAgent)
        and (mine.incarnation, mine.epoch) == (others.incarnation, others.epoch)
    )


def after(facts: Facts, records: Sequence[Record]) -> Facts:
    """Tell what is so once these signatures are written, but for the version: one write moves that by one."""
    spend = dict(facts.spend)
    minutes, hours, highest = dict(facts.minutes), dict(facts.hours), facts.highest_nonce
    minute, hour = (int(one.timestamp()) for one in (clock.minute_of(facts.now), hour_of(facts.now)))
    for record in records:
        charged = zip(record.spend_assets or (), map(int, record.spend_amounts or ()), strict=True)
        for name, (day, week) in counted((asset, amount, amount) for asset, amount in charged).items():
            before = spend.get(name, (0, 0))
            spend[name] = before[0] + day, before[1] + week
        if record.counts_rate:
            minutes[minute] = minutes.get(minute, 0) + 1
            hours[hour] = hours.get(hour, 0) + 1
        if record.nonce is not None:
            highest = max(record.nonce, -1 if highest is None else highest)
    return msgspec.structs.replace(
        facts,
        spend=spend,
        minutes=list(minutes.items()),
        hours=list(hours.items()),
        highest_nonce=highest,
        idempotent=None,
    )


def _place(attempt: SigningAttempt) -> _Place:
    wanted = attempt.draft.nonce
    return attempt.kind.keys.family, wanted.chain_id if wanted else None


def _at(facts: Facts, now: datetime) -> Facts:
    """The same state later in the same hour: minutes leave the window, hours don't."""
    first = last_hour(now).timestamp()
    return msgspec.structs.replace(facts, now=now, minutes=[one for one in facts.minutes if one[0] >= first])
