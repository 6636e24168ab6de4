"""The sign path's two round trips: one read, one guarded write. Their SQL is `sign_read` and `sign_write`
in `custody/database/functions/transactions/`.

The read takes no lock. The write succeeds only if nothing the judge looked at has changed since: it compares the
agent's ledger version, policy version, incarnation and token epoch, the tenant's freeze and its configuration.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import chain
from operator import attrgetter
from typing import Any, Final, NamedTuple

import asyncpg
import msgspec
from msgspec.structs import astuple, fields

from custody.kit import clock
from custody.kit.act import Act, Credential
from custody.kit.callers import IdempotencyKey
from custody.kit.refs import AgentRef
from custody.policies.fleet import SharedCharge
from custody.policies.parts import add_parts
from custody.policies.types import Recipient
from custody.transactions.backoff import RESEND
from signer.intents.steps import NO_STEP, NewRow, StepRow
from signer.set_seals import StoredSet, stored_sets

_READ = "SELECT * FROM sign_read($1, $2, $3, $4, $5, $6, $7, $8)"
_PSBT = "SELECT * FROM psbt_read($1, $2, $3, $4, $5, $6)"
_ACTION = "SELECT * FROM action_read($1, $2, $3, $4)"
_WRITE_VOTE = "SELECT vote_write($1, $2, $3, $4, $5, $6, $7, $8, $9)"
_WRITE = "SELECT charge_sets($1, $10, sign_write($1, $2, $3, $4, $5, $6, $7, $8, $9))"
# No sum of a policy set has room any more: it is judged again.
NO_ROOM: Final = "CU005"
_RAISE_VERSION = "UPDATE agents SET ledger_version = ledger_version + 1 WHERE tenant_id = $1 AND id = $2"
_PROPOSE = "SELECT propose_write($1, $2, $3, $4, $5, $6)"


class Slot(msgspec.Struct, frozen=True):
    """A nonce that one of our signatures already took."""

    nonce: int
    state: str
    tx_id: str
    charges: dict[str, "Charge"]


class Charge(msgspec.Struct, frozen=True):
    """The amount a slot counts of an asset, and in which hour's bucket; named as in `custody/policies/parts.py`."""

    amount: str
    hour: datetime


class PsbtQuestion(msgspec.Struct, frozen=True):
    """The account a PSBT is of, the transaction it signs, and the coins that spends."""

    account: str
    unsigned_txid: bytes
    txids: list[bytes]
    vouts: list[int]


class PsbtFacts(msgspec.Struct, frozen=True):
    """An account's key under its MAC, what the same transaction counted when it was signed before, and the newest other
    order that spends one of its coins.
    """

    public_key: bytes
    chain_code: bytes
    mac: bytes
    counted: Charge | None
    conflict: str | None
    # The same in dollars, where it had a price.
    counted_usd: Charge | None = None


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything an order is judged on; no sum is older than the version that the write compares."""

    now: datetime
    incarnation: str
    token_epoch: int
    ledger_version: int
    policy_version: int
    frozen: bool
    address: str
    agent_name: str
    head: tuple[int | None, int | None, bytes | None]
    rules: str
    blob: bytes | None
    config_version: int
    judging: str | None
    judging_mac: bytes | None
    # Of a day, of a week, and ever; the last only of what a rule limits so.
    spend: dict[str, tuple[int, int, int]]
    # Orders by the start of their minute, and of their hour, in seconds since 1970; as far back as a window reaches.
    minutes: list[tuple[int, int]]
    hours: list[tuple[int, int]]
    highest_nonce: int | None
    slot: Slot | None
    idempotent: tuple[bytes, bytes | None] | None
    # Of the sealed set of signers and quorums; the set itself only where an authorisation was shown.
    authority_version: int = 0
    authority: str | None = None
    # The wallet action that has this reference already: the digest of its order, and its answer.
    action: tuple[bytes, bytes] | None = None
    # Of a PSBT whose account has addresses.
    psbt: PsbtFacts | None = None
    # The policy sets of the agent, and which versions of rows they were read from.
    sets: tuple[StoredSet, ...] = ()
    sets_stamp: str | None = None
    # Which versions of rows this was read from; None where it may not be kept for a later order.
    stamp: str | None = None
    # Whether it was kept: then the write compares the stamp.
    kept: bool = False
    # Whom a person let this agent reach, of those that orders reached; read where a rule asks.
    recipients: frozenset[Recipient] = frozenset()


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """All that the read needs to know of an order."""

    ref: AgentRef
    family: str
    principal: str
    key: IdempotencyKey | None
    chain_id: int | None = None
    pending_nonce: int | None = None
    nonce: int | None = None
    takes_open_slot: bool = False
    # Whether an authorisation was shown, so that the signers and quorums are read too.
    authority: bool = False
    # Type and reference of a wallet action; then the one that has the reference is read too, in a second round trip.
    action: tuple[str, str] | None = None
    # Of a PSBT; in a second round trip too.
    psbt: PsbtQuestion | None = None


class CallRow(NamedTuple):
    """A priced call as it is charged: the SQL type `call_charge`."""

    id: str
    route: str
    mac: bytes
    micro_usd: int
    hour: datetime
    sets: list[str]


class ChargeRow(msgspec.Struct, frozen=True):
    """A priced call as it is charged, and what it counts for all agents of policy sets."""

    id: str
    route: str
    mac: bytes
    micro_usd: int
    hour: datetime
    shared: tuple[SharedCharge, ...] = ()

    def row(self) -> CallRow:
        """List it as SQL takes it."""
        sets = [one.policy_set for one in self.shared]
        return CallRow(self.id, self.route, self.mac, self.micro_usd, self.hour, sets)


class SetChargeRow(NamedTuple):
    """An amount that counts for all agents of a policy set: the SQL type `set_charge`."""

    place: int
    set_id: str
    asset: str
    # Decimals, which hold any amount.
    amount: str
    per_day: str | None
    per_week: str | None
    total: str | None


class NonceRow(NamedTuple):
    """The nonce an order wants: the SQL type `nonce_request`."""

    chain: int | None
    pending: int | None
    nonce: int | None
    takes_open: bool


# What an order takes beside its texts: row, indexes, places in the audit log; and what a charged call takes.
_ROW_BYTES = 1024
CALL_BYTES = 192
_spend_decoder = msgspec.json.Decoder(list[tuple[str, str, str]])
_totals_decoder = msgspec.json.Decoder(dict[str, str])
_charges_decoder = msgspec.json.Decoder(dict[str, Charge])


async def read(connection: Any, question: Question) -> Facts | None:
    """The facts for one order, or None when there is no such agent."""
    key = question.key
    row = await connection.fetchrow(
        _READ,
        question.ref.tenant,
        question.ref.agent,
        question.family,
        NonceRow(question.chain_id, question.pending_nonce, question.nonce, question.takes_open_slot),
        question.principal,
        key.route if key else None,
        key.key_hash if key else None,
        question.authority,
    )
    if row is None:
        return None
    action = None
    if question.action is not None:
        action = await connection.fetchrow(_ACTION, question.ref.tenant, question.ref.agent, *question.action)
    psbt = None
    if (asked := question.psbt) is not None:
        psbt = await connection.fetchrow(
            _PSBT,
            question.ref.tenant,
            question.ref.agent,
            asked.account,
            asked.unsigned_txid,
            asked.txids,
            asked.vouts,
        )
    spend = _spend_decoder.decode(row["spend"]) if row["spend"] else []
    windows = add_parts((asset, int(day), int(week)) for asset, day, week in spend)
    totals = _totals_decoder.decode(row["totals"]) if row["totals"] else {}
    return Facts(
        now=row["now"],
        incarnation=str(row["incarnation"]),
        token_epoch=row["token_epoch"],
        ledger_version=row["ledger_version"],
        policy_version=row["policy_version"],
        frozen=row["agent_frozen"] or row["tenant_frozen"],
        address=row["address"],
        agent_name=row["agent_name"],
        head=(row["head_version"], row["head_count"], row["head_mac"]),
        rules=row["rules"] or "[]",
        blob=row["blob"],
        config_version=row["config_version"],
        judging=row["judging"],
        judging_mac=row["judging_mac"],
        spend={name: (*windows.get(name, (0, 0)), int(totals.get(name, 0))) for name in {**windows, **totals}},
        minutes=row["minutes"] or [],
        hours=row["hours"] or [],
        highest_nonce=row["highest_nonce"],
        slot=_slot(row),
        idempotent=(row["idem_fingerprint"], row["idem_answer"]) if row["idem_fingerprint"] is not None else None,
        authority_version=row["authority_version"],
        authority=row["authority"],
        action=(action["digest"], action["answer"]) if action is not None else None,
        psbt=_psbt(psbt) if psbt is not None else None,
        sets=stored_sets(row["sets"]),
        sets_stamp=row["sets_stamp"],
        stamp=row["stamp"],
    )


def _psbt(row: Mapping[str, Any]) -> PsbtFacts:
    counted = None if row["counted"] is None else Charge(str(row["counted"]), row["counted_hour"])
    in_dollars = Charge(str(row["counted_usd"]), row["counted_hour"]) if row["counted_usd"] else None
    conflict = None if row["conflict"] is None else str(row["conflict"])
    return PsbtFacts(row["public_key"], row["chain_code"], row["mac"], counted, conflict, in_dollars)


def _slot(row: Mapping[str, Any]) -> Slot | None:
    if row["slot_nonce"] is None:
        return None
    return Slot(row["slot_nonce"], row["slot_state"], str(row["slot_tx"]), _charges_decoder.decode(row["slot_charges"]))


class _Part(msgspec.Struct, frozen=True):
    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Asked(_Part, frozen=True):
    """The order, as it was asked for."""

    tx: str
    kind: str
    family: str
    to_address: str | None
    value: str | None
    data: str | None
    chain_id: int | None
    caip2: str | None
    broadcast: bool
    reference_id: str | None
    order_text: str
    digest: bytes
    authorization_text: str | None
    wallet_action: str | None


class Found(_Part, frozen=True):
    """The effects that were found in it, and how they were judged."""

    effects: str
    moved: str | None
    policy_results: str
    policy_version: int
    policy_hash: bytes | None
    fee: str | None
    hour: datetime


class Told(_Part, frozen=True):
    """The outcome, and who is told of it."""

    status: str
    answer: bytes
    action: str
    events: str
    counts_rate: bool
    resolved_at: datetime | None = None
    resend_seconds: int = RESEND.first
    # Of what others take to the chain: when a node is asked first.
    look_seconds: int | None = None


class Release(_Part, frozen=True):
    """A signature; of an order without one nothing."""

    tx_hash: str | None = None
    signature: str | None = None
    signed_bytes: bytes | None = None
    budgets: str | None = None
    votes_text: str | None = None
    # The newest earlier order that can't happen beside this one.
    replaces_tx_id: str | None = None


class NonceSlot(_Part, frozen=True):
    """The nonce slot that it takes, what that counts from now on, and which order had it, how far it had come."""

    nonce: int | None = None
    slot_from: str | None = None
    slot_was: str | None = None
    slot_state: str | None = None
    slot_address: str | None = None
    slot_charges: str | None = None


class SpendRow(_Part, frozen=True):
    """The spend that counts in this hour, and what counted before in another and counts there no more."""

    spend_assets: list[str] | None = None
    spend_amounts: list[str] | None = None
    moved_assets: list[str] = []
    moved_hours: list[datetime] = []
    moved_amounts: list[str] = []


class Coins(_Part, frozen=True):
    """The coins that a PSBT signs away."""

    unsigned_txid: bytes | None = None
    spent_txids: list[bytes] | None = None
    spent_vouts: list[int] | None = None


class Wait(_Part, frozen=True):
    """The approval that is waited for."""

    approval: str | None = None
    approval_mac: bytes | None = None
    expire_seconds: int | None = None
    waits_since: datetime | None = None
    release_at: datetime | None = None


class Reached(_Part, frozen=True):
    """The recipients that a person let this agent reach now, each under a MAC."""

    recipient_kinds: list[str] | None = None
    recipient_names: list[str] | None = None
    recipient_macs: list[bytes] | None = None


class Breaker(_Part, frozen=True):
    """The circuit breakers that count a refusal; of every other order nothing."""

    breaker_minutes: list[int] | None = None
    breaker_most: list[int] | None = None
    breaker_reasons: list[str] | None = None
    breaker_events: list[str] | None = None


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One judged order as it is written: its parts, whose fields are those of the SQL type `sign_record`, and the act.

    A kind of order that has more to write adds a part.
    """

    asked: Asked
    found: Found
    told: Told
    release: Release = Release()
    slot: NonceSlot = NonceSlot()
    spend: SpendRow = SpendRow()
    coins: Coins = Coins()
    wait: Wait = Wait()
    reached: Reached = Reached()
    breaker: Breaker = Breaker()
    act: Act
    # What it counts for all agents of policy sets.
    shared: tuple[SharedCharge, ...] = ()

    @property
    def stored_bytes(self) -> int:
        """Tell what it takes in the database, which the agent's row counts."""
        asked, found, told = self.asked, self.found, self.told
        texts = asked.order_text, asked.data, found.effects, found.moved, found.policy_results, self.act.metadata
        return _ROW_BYTES + sum(map(len, filter(None, (*texts, told.events, told.answer, self.release.signed_bytes))))

    def row(self) -> tuple[Any, ...]:
        """List it as SQL takes it."""
        return tuple(chain.from_iterable(map(astuple, _parts_of(self))))


# A composite is passed by position; tests/stores/test_composites.py compares the names.
PARTS: Final = {one.name: one.type for one in fields(Record) if one.name not in ("act", "shared")}
_parts_of = attrgetter(*PARTS)
RECORD_FIELDS: Final = tuple(field for part in PARTS.values() for field in part.__struct_fields__)


class GuardRow(NamedTuple):
    """All that the write compares: the SQL type `sign_guard`."""

    incarnation: str
    epoch: int | None
    ledger_version: int
    policy_version: int
    config_version: int
    claim: str | None
    claim_user: str | None
    claim_comment: str | None
    used_by: list[str] | None
    used_marks: list[bytes] | None
    used_for: bytes | None
    used_until: datetime | None
    voters: list[str] | None
    voter_macs: list[bytes] | None
    voter_keys: list[str] | None
    # What is stored for the order, which the agent's row counts.
    stored_bytes: int
    # Of state that was kept: whose rows it was read from, in which versions, and the minute of its rates.
    family: str | None
    stamp: str | None
    minute: datetime | None
    # Which versions of rows the agent's policy sets were read from.
    sets: str | None
    # Whether the time that it waited releases what is claimed.
    releases: bool


class UsedSignatures(msgspec.Struct, frozen=True):
    """Signatures that authorised an order: by whom, the hash of each one's mark, for which request, and until when."""

    by: list[str]
    marks: list[bytes]
    request: bytes
    until: datetime


class VoteRow(NamedTuple):
    """A vote as it is kept, and the authenticator's counter: the SQL type `vote`."""

    kind: str
    subject: str
    user_id: str
    key_id: str
    authenticator_data: bytes
    client_data: bytes
    signature: bytes
    until: datetime
    sign_count: int


class Voters(msgspec.Struct, frozen=True):
    """The votes that an order is signed under: people, the MACs of their memberships, keys; and the vote given now."""

    users: list[str]
    macs: list[bytes]
    keys: list[str]
    vote: VoteRow | None


class VoteRecord(msgspec.Struct, frozen=True):
    """A vote on an approval that has too few yet, as it is written."""

    tx: str
    digest: bytes
    vote: VoteRow
    events: str
    answer: bytes
    act: Act


class ProposalRecord(msgspec.Struct, frozen=True):
    """A batch of calls that waits as an intent, as it is written."""

    intent: NewRow
    events: str
    stored_bytes: int
    act: Act


class Guard(msgspec.Struct, frozen=True):
    """All that must still hold at the write: the token's epoch, or the caller's credential; and the approval.

    `claim_user` is the person who approved, if it was one; `claim_comment` what was said with it.
    """

    epoch: int | None = None
    credential: Credential | None = None
    claim: str | None = None
    claim_user: str | None = None
    claim_comment: str | None = None
    used: UsedSignatures | None = None
    voters: Voters | None = None
    # Of what carries out an intent: its last step.
    step: StepRow = NO_STEP
    # Whose wallet signs.
    family: str | None = None
    releases: bool = False


def guard_row(facts: Facts, guard: Guard, stored_bytes: int = 0) -> GuardRow:
    """List what a write compares, as SQL takes it."""
    return GuardRow(
        facts.incarnation,
        guard.epoch,
        facts.ledger_version,
        facts.policy_version,
        facts.config_version,
        guard.claim,
        guard.claim_user,
        guard.claim_comment,
        guard.used.by if guard.used else None,
        guard.used.marks if guard.used else None,
        guard.used.request if guard.used else None,
        guard.used.until if guard.used else None,
        guard.voters.users if guard.voters else None,
        guard.voters.macs if guard.voters else None,
        guard.voters.keys if guard.voters else None,
        stored_bytes,
        guard.family if facts.kept else None,
        facts.stamp if facts.kept else None,
        clock.minute_of(facts.now) if facts.kept else None,
        facts.sets_stamp,
        guard.releases,
    )


class Write(msgspec.Struct, frozen=True):
    """Orders and calls of one agent that were judged together, mostly one, as SQL takes them."""

    ref: AgentRef
    row: GuardRow
    guard: Guard
    acts: list[Act]
    rows: list[tuple[Any, ...]]
    calls: Sequence[CallRow] = ()
    shared: tuple[SharedCharge, ...] = ()

    def __repr__(self) -> str:
        return "Write()"


def to_write(
    ref: AgentRef, facts: Facts, records: Sequence[Record], guard: Guard, calls: Sequence[ChargeRow] = ()
) -> Write:
    """Records of one agent's orders, and the charges of its calls, under what must still be so."""
    row = guard_row(facts, guard, sum(record.stored_bytes for record in records) + CALL_BYTES * len(calls))
    acts, rows = [record.act for record in records], [record.row() for record in records]
    shared = tuple(one for each in (records, calls) for what in each for one in what.shared)
    return Write(ref, row, guard, acts, rows, [call.row() for call in calls], shared)


async def write(connection: Any, what: Write) -> str:
    """Write what was judged together: `done`, `stale` (nothing written, read again) or `unclaimed` (the approval or
    the intent is gone).

    The reply to this statement is the commit: only after it may a signature leave the signer.
    """
    ref, guard = what.ref, what.guard
    vote = guard.voters.vote if guard.voters else None
    result = await connection.fetchval(
        _WRITE,
        ref.tenant,
        ref.agent,
        what.row,
        guard.credential,
        what.acts,
        what.rows,
        vote,
        guard.step,
        what.calls,
        set_charges(1, what),
    )
    return str(result)


def set_charges(place: int, what: Write) -> list[SetChargeRow]:
    """List what a write adds to the sums of policy sets; `place` is its place in a batch, from 1."""
    return [
        SetChargeRow(
            place,
            one.policy_set,
            one.asset,
            str(one.amount),
            *(None if most is None else str(most) for most in (one.per_day, one.per_week, one.total)),
        )
        for one in what.shared
    ]


async def write_proposal(connection: Any, ref: AgentRef, facts: Facts, record: ProposalRecord, guard: Guard) -> str:
    """Keep a batch as an intent; the answers are those of `write`."""
    row = guard_row(facts, guard, record.stored_bytes)
    result = await connection.fetchval(_PROPOSE, ref.tenant, ref.agent, row, record.act, record.intent, record.events)
    return str(result)


async def write_vote(connection: Any, ref: AgentRef, facts: Facts, record: VoteRecord, guard: Guard) -> str:
    """Keep one vote; the answers are those of `write`."""
    result = await connection.fetchval(
        _WRITE_VOTE,
        ref.tenant,
        ref.agent,
        guard_row(facts, guard),
        guard.credential,
        record.act,
        record.tx,
        record.digest,
        record.vote,
        record.events,
    )
    return str(result)


async def find_answer(connection: Any, ref: AgentRef, tx_id: str) -> bytes | None:
    """The answer to an order of this agent that was written before under the same id, or None."""
    # Without the agent: an index that begins with it would do as well to a planner, and walk all that it ever asked.
    row = await connection.fetchrow(
        "SELECT agent_id, answer FROM transactions WHERE tenant_id = $1 AND id = $2", ref.tenant, tx_id
    )
    return row["answer"] if row is not None and row["agent_id"] == ref.agent else None


async def lock(connection: asyncpg.Connection, ref: AgentRef) -> None:
    """Take the agent's row lock, in a statement of its own; waits for its holder."""
    await connection.execute("SELECT lock_agent($1, $2)", ref.tenant, ref.agent)


async def lock_with_sets(connection: asyncpg.Connection, ref: AgentRef) -> None:
    """The same, and the sums of its policy sets too: what is judged on what is read now is written."""
    await lock(connection, ref)
    await connection.execute("SELECT lock_sets($1, $2)", ref.tenant, ref.agent)


async def raise_version(connection: asyncpg.Connection, ref: AgentRef) -> None:
    """Raise the agent's `ledger_version`: what was judged before is not written; the row lock must be held."""
    await connection.execute(_RAISE_VERSION, ref.tenant, ref.agent)
