"""The sign path's two round trips: one read, one guarded write (design 3). The statements are in migration 0001.

The read takes no lock. The write succeeds only if nothing the judge looked at has changed since: it compares the
agent's ledger version, policy version, incarnation and token epoch, the tenant's freeze and its configuration.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import asyncpg
import msgspec

from custody.kit.callers import IdempotencyKey
from custody.kit.refs import AgentRef

_READ = "SELECT * FROM sign_read($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
_WRITE = "SELECT sign_write($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"


class Slot(msgspec.Struct, frozen=True):
    """A nonce that one of our signatures already took."""

    nonce: int
    state: str
    tx_id: str
    charges: dict[str, "Charge"]


class Charge(msgspec.Struct, frozen=True):
    """What a slot counts of one asset, and in which hour's bucket."""

    amount: str
    hour: datetime


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
    spend: dict[str, tuple[int, int]]
    orders_last_hour: int
    orders_last_day: int
    highest_nonce: int | None
    slot: Slot | None
    idempotent: tuple[bytes, bytes | None] | None
    answer: bytes | None


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What the read needs to know of an order."""

    ref: AgentRef
    purpose: str
    tx_id: str
    principal: str
    key: IdempotencyKey | None
    chain_id: int | None = None
    pending_nonce: int | None = None
    nonce: int | None = None
    takes_open_slot: bool = False


_spend_decoder = msgspec.json.Decoder(list[tuple[str, str, str]])
_charges_decoder = msgspec.json.Decoder(dict[str, Charge])


async def read(connection: Any, question: Question) -> Facts | None:
    """The facts for one order, or None when there is no such agent."""
    key = question.key
    row = await connection.fetchrow(
        _READ, question.ref.tenant, question.ref.agent, question.purpose, question.chain_id, question.pending_nonce,
        question.nonce, question.takes_open_slot, question.principal, key.route if key else None,
        key.key_hash if key else None, question.tx_id,
    )  # fmt: skip
    if row is None:
        return None
    spend = _spend_decoder.decode(row["spend"]) if row["spend"] else []
    return Facts(
        now=row["now"], incarnation=str(row["incarnation"]), token_epoch=row["token_epoch"],
        ledger_version=row["ledger_version"], policy_version=row["policy_version"],
        frozen=row["agent_frozen"] or row["tenant_frozen"], address=row["address"], agent_name=row["agent_name"],
        head=(row["head_version"], row["head_count"], row["head_mac"]), rules=row["rules"] or "[]", blob=row["blob"],
        config_version=row["config_version"], judging=row["judging"], judging_mac=row["judging_mac"],
        spend={asset: (int(day), int(week)) for asset, day, week in spend},
        orders_last_hour=row["orders_last_hour"], orders_last_day=row["orders_last_day"],
        highest_nonce=row["highest_nonce"], slot=_slot(row),
        idempotent=(row["idem_fingerprint"], row["idem_answer"]) if row["idem_fingerprint"] is not None else None,
        answer=row["tx_answer"],
    )  # fmt: skip


def _slot(row: Mapping[str, Any]) -> Slot | None:
    if row["slot_nonce"] is None:
        return None
    return Slot(row["slot_nonce"], row["slot_state"], str(row["slot_tx"]), _charges_decoder.decode(row["slot_charges"]))


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One judged order as it is written. The fields stand in the order of the SQL type `sign_record`."""

    tx: str
    kind: str
    status: str
    to_address: str | None
    value: str | None
    data: str | None
    chain_id: int | None
    caip2: str | None
    broadcast: bool
    reference_id: str | None
    replaces_tx_id: str | None
    order_text: str
    digest: bytes
    effects: str
    policy_results: str
    policy_version: int
    nonce: int | None
    fee: str | None
    tx_hash: str | None
    signature: str | None
    signed_bytes: bytes | None
    answer: bytes
    slot_from: str | None
    slot_state: str | None
    slot_address: str | None
    slot_charges: str | None
    spend_assets: list[str] | None
    spend_amounts: list[str] | None
    moved_assets: list[str]
    moved_hours: list[datetime]
    moved_amounts: list[str]
    hour: datetime
    resolved_at: datetime | None
    counts_rate: bool
    approval: str | None
    approval_mac: bytes | None
    expire_seconds: int | None
    principal: str
    route: str | None
    key_hash: bytes | None
    fingerprint: bytes | None
    idem_answer: bytes | None
    actor_type: str
    actor_id: str
    action: str
    metadata: str
    origin: list[str | None]
    events: str
    slot_was: str | None
    budgets: str | None
    policy_hash: bytes | None


class Guard(msgspec.Struct, frozen=True):
    """What must still hold when the record is written: the token's epoch, or the caller's standing; and the approval.

    `claim_user` is the person who approved, if it was one.
    """

    epoch: int | None = None
    caller_key: bytes | None = None
    claim: str | None = None
    claim_user: str | None = None


async def write(connection: Any, ref: AgentRef, facts: Facts, record: Record, guard: Guard) -> str:
    """Write one judged order: `done`, `stale` (nothing written, read again) or `unclaimed` (the approval is gone).

    The reply to this statement is the commit: only after it may the signature leave the signer.
    """
    fields = tuple(getattr(record, name) for name in Record.__struct_fields__)
    result = await connection.fetchval(
        _WRITE, ref.tenant, ref.agent, facts.incarnation, guard.epoch, facts.ledger_version, facts.policy_version,
        facts.config_version, guard.caller_key, guard.claim, guard.claim_user, fields,
    )  # fmt: skip
    return str(result)


async def lock(connection: asyncpg.Connection, ref: AgentRef) -> None:
    """Take the agent's row lock, in a statement of its own; waits for whoever holds it."""
    await connection.execute("SELECT lock_agent($1, $2)", ref.tenant, ref.agent)
