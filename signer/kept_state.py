"""State that an agent's next order is judged on without a read: the one that the last write of this signer left.

Nothing is believed of it. An order that is judged on it is signed or judged again on what is read then, and its write
compares the versions, the rows themselves (`row_stamp.sql`) and the minute. What somebody else wrote in between, by
whatever way, makes that write `stale`, and the state is forgotten.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from custody.chains.units import USD
from custody.kit import clock
from custody.kit.cache import Cache
from custody.kit.refs import AgentRef
from custody.policies.fleet import SharedCharge
from custody.policies.parts import add_parts
from custody.worker.proven import ProvenAgent
from signer import broken_quorums
from signer.ledger import ChargeRow, Facts, Record
from signer.record import hour_of, last_hour
from signer.set_seals import StoredSet
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
type Place = tuple[str, int | None]


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
    place: Place
    # What the rules need to know of votes; such state is never kept, for no version vouches for it.
    quorum: broken_quorums.Read | None = None


class KeptStates:
    """The state of the agents that signed lately."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self._kept: Cache[AgentRef, State] = Cache(MAX_AGENTS, KEPT_SECONDS, now)
        # Until when nothing is kept of an agent, and how long that was.
        self._shared: Cache[AgentRef, tuple[float, float]] = Cache(MAX_AGENTS, 2 * MOST_SHARED_SECONDS, now)
        self._swept = now()

    def __len__(self) -> int:
        """Of how many agents something is kept."""
        return len(self._kept)

    def of(self, attempt: SigningAttempt) -> State | None:
        """Find what this order may be judged on; None where it must be read."""
        if not is_plain(attempt):
            return None
        state = self.of_agent(attempt.ref)
        return state if state is not None and state.place == place_of(attempt) else None

    def of_agent(self, ref: AgentRef) -> State | None:
        """Find what is kept of an agent, whatever order it was read for: enough for what needs no wallet."""
        if (state := self._kept.get(ref)) is None:
            return None
        now = state.since.least(self.now())
        if hour_of(now) != hour_of(state.facts.now):
            return None
        return msgspec.structs.replace(state, facts=_at(state.facts, now))

    def keep(self, ref: AgentRef, state: State, records: Sequence[Record], calls: Sequence[ChargeRow] = ()) -> None:
        """A write of these, judged on this state, is committed, and nothing else moved the agent's version."""
        facts, latest = state.facts, state.since.most(self.now())
        if facts.kept:
            self._shared.drop(ref)
        until, _ = self._shared.get(ref) or (0.0, 0.0)
        known = facts.stamp is not None and state.quorum is None and until <= self.now()
        texts = len(facts.rules) + len(facts.judging or "") + sum(len(one.rules) for one in facts.sets)
        known = known and texts <= MAX_RULES and len(facts.spend) <= MAX_ASSETS
        # Of a write over the turn of a minute nobody here knows in which of the two its orders count.
        if not known or clock.minute_of(facts.now) != clock.minute_of(latest):
            self.forget(ref)
            return
        left = msgspec.structs.replace(after(facts, records, calls), ledger_version=facts.ledger_version + 1, kept=True)
        self._kept.put(ref, msgspec.structs.replace(state, facts=left))
        self._sweep()

    def note_refusal(self, ref: AgentRef, state: State, *, stale: bool) -> None:
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


def goes_with(place: Place, caller: ProvenAgent, other: SigningAttempt) -> bool:
    """Say whether a plain order is judged on facts that were read of this wallet, and written under this guard."""
    return (
        is_plain(other)
        and other.kind.second_reader is None
        and place == place_of(other)
        and isinstance(other.call.caller, ProvenAgent)
        and is_same(caller, other.call.caller)
    )


def is_same(caller: ProvenAgent, other: ProvenAgent) -> bool:
    """Say whether two tokens of an agent hold for as long as each other."""
    return (caller.incarnation, caller.epoch) == (other.incarnation, other.epoch)


def after(facts: Facts, records: Sequence[Record], calls: Sequence[ChargeRow] = ()) -> Facts:
    """Tell what is so once these signatures and charges are written, but for the version, which moves by one."""
    spend = dict(facts.spend)
    if calls:
        dollars, (day, week, total) = sum(call.micro_usd for call in calls), spend.get(USD, (0, 0, 0))
        spend[USD] = day + dollars, week + dollars, total + dollars
    minutes, hours, highest = dict(facts.minutes), dict(facts.hours), facts.highest_nonce
    minute, hour = (int(one.timestamp()) for one in (clock.minute_of(facts.now), hour_of(facts.now)))
    for record in records:
        charged = zip(record.spend.spend_assets or (), map(int, record.spend.spend_amounts or ()), strict=True)
        for name, (day, week) in add_parts((asset, amount, amount) for asset, amount in charged).items():
            before = spend.get(name, (0, 0, 0))
            spend[name] = before[0] + day, before[1] + week, before[2] + day
        if record.told.counts_rate:
            minutes[minute] = minutes.get(minute, 0) + 1
            hours[hour] = hours.get(hour, 0) + 1
        if record.slot.nonce is not None:
            highest = max(record.slot.nonce, -1 if highest is None else highest)
    return msgspec.structs.replace(
        facts,
        spend=spend,
        sets=_sets_after(facts.sets, [one for each in (records, calls) for what in each for one in what.shared]),
        minutes=list(minutes.items()),
        hours=list(hours.items()),
        highest_nonce=highest,
        idempotent=None,
    )


def _sets_after(sets: tuple[StoredSet, ...], shared: Sequence[SharedCharge]) -> tuple[StoredSet, ...]:
    """The sets once these are charged too; what other agents charge meanwhile the write finds out."""
    if not shared:
        return sets
    charged: dict[str, Counter[str]] = {}
    for one in shared:
        charged.setdefault(one.policy_set, Counter())[one.asset] += one.amount
    return tuple(one.after(charged.get(one.id, {})) for one in sets)


def place_of(attempt: SigningAttempt) -> Place:
    """Name the wallet whose address and nonces an order is judged on."""
    wanted = attempt.draft.nonce
    return attempt.kind.keys.family, wanted.chain_id if wanted else None


def _at(facts: Facts, now: datetime) -> Facts:
    """The same state later in the same hour: minutes leave the window, hours don't."""
    first = last_hour(now).timestamp()
    return msgspec.structs.replace(facts, now=now, minutes=[one for one in facts.minutes if one[0] >= first])
