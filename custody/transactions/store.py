"""Queries of transactions. The hot read and the one write are in `ledger.py`."""

import base64
from datetime import UTC, datetime
from typing import Any

import msgspec

from custody.agents.types import AgentAbsent
from custody.kit import clock
from custody.kit.db import Connection, Pool, tenant_scope
from custody.kit.errors import Invalid
from custody.kit.paging import Listed
from custody.kit.refs import AgentRef
from custody.transactions.types import PendingItem, PendingTransaction, Transaction, TransactionAbsent, TransactionQuery

_COLUMNS = (
    "id, agent_id, kind, status, status_detail, to_address, value, data, chain_id, caip2, nonce, tx_hash, "
    "signature, signed_bytes, "
    "broadcast, reference_id, policy_results, policy_version, effects, replaces_tx_id, created_at, signed_at, "
    "broadcast_at, confirmed_at"
)


class BadTime(Invalid):
    """A time must be ISO 8601, such as 2026-01-31T12:00:00Z."""


async def get(pool: Pool, ref: AgentRef, tx_id: str) -> Transaction:
    """One transaction of an agent; TransactionAbsent if there is none."""
    async with tenant_scope(pool, ref.tenant) as connection:
        row = await connection.fetchrow(
            f"SELECT {_COLUMNS} FROM transactions WHERE tenant_id = $1 AND agent_id = $2 AND id = $3",
            ref.tenant, ref.agent, tx_id,
        )  # fmt: skip
    if row is None:
        raise TransactionAbsent
    return _transaction(row)


async def search(pool: Pool, ref: AgentRef, query: TransactionQuery) -> Listed:
    """An agent's transactions, newest first, by any of the filters."""
    arguments: list[Any] = [ref.tenant, ref.agent]
    where = ["tenant_id = $1", "agent_id = $2"]
    for column, operator, value in _filters(query):
        arguments.append(value)
        where.append(f"{column} {operator} ${len(arguments)}")
    condition = " AND ".join(where)
    async with tenant_scope(pool, ref.tenant) as connection:
        # Only names from this file enter the text; every value is a parameter.
        rows = await connection.fetch(
            f"SELECT {_COLUMNS} FROM transactions WHERE {condition} ORDER BY created_at DESC, id "
            f"LIMIT {int(query.limit)} OFFSET {int(query.offset)}",
            *arguments,
        )
        total = await connection.fetchval(f"SELECT count(*) FROM transactions WHERE {condition}", *arguments)
        await _must_exist(connection, ref, total)
    return Listed([_transaction(row) for row in rows], total)


async def history(pool: Pool, ref: AgentRef, limit: int, offset: int) -> Listed:
    """All transactions of an agent, newest first."""
    async with tenant_scope(pool, ref.tenant) as connection:
        rows = await connection.fetch(
            f"SELECT {_COLUMNS} FROM transactions WHERE tenant_id = $1 AND agent_id = $2 ORDER BY created_at "
            "DESC, id LIMIT $3 OFFSET $4",
            ref.tenant, ref.agent, limit, offset,
        )  # fmt: skip
        total = await connection.fetchval(
            "SELECT count(*) FROM transactions WHERE tenant_id = $1 AND agent_id = $2", ref.tenant, ref.agent
        )
        await _must_exist(connection, ref, total)
    return Listed([_transaction(row) for row in rows], total)


async def pending(pool: Pool, ref: AgentRef, limit: int, offset: int) -> Listed:
    """What waits for a person, newest first."""
    condition = (
        "p.tenant_id = $1 AND p.agent_id = $2 AND p.status = 'pending' "
        "AND (p.expires_at IS NULL OR p.expires_at > service_now())"
    )
    async with tenant_scope(pool, ref.tenant) as connection:
        rows = await connection.fetch(
            "SELECT p.id AS queue_id, p.status, p.requested_at, t.id, t.to_address, t.value, t.chain_id, "
            "t.policy_results "
            "FROM approvals p JOIN transactions t ON t.tenant_id = p.tenant_id AND t.id = p.tx_id "
            f"WHERE {condition} ORDER BY p.requested_at DESC, p.id LIMIT $3 OFFSET $4",
            ref.tenant, ref.agent, limit, offset,
        )  # fmt: skip
        total = await connection.fetchval(f"SELECT count(*) FROM approvals p WHERE {condition}", ref.tenant, ref.agent)
        await _must_exist(connection, ref, total)
    return Listed([_pending(row) for row in rows], total)


async def _must_exist(connection: Connection, ref: AgentRef, found: int) -> None:
    """An agent without rows is looked for, so that another tenant's is as absent here as everywhere."""
    if not found and not await connection.fetchval(
        "SELECT true FROM agents WHERE tenant_id = $1 AND id = $2", ref.tenant, ref.agent
    ):
        raise AgentAbsent


def _filters(query: TransactionQuery) -> list[tuple[str, str, Any]]:
    given: list[tuple[str, str, Any]] = [
        ("status", "=", query.status), ("chain_id", "=", query.chain_id), ("kind", "=", query.kind),
        ("reference_id", "=", query.reference_id),
        ("tx_hash", "=", query.tx_hash), ("id", "=", query.tx_id),
        ("lower(to_address)", "=", query.to_address and query.to_address.lower()),
        ("created_at", ">=", _time(query.from_)), ("created_at", "<=", _time(query.to)),
    ]  # fmt: skip
    return [(column, operator, value) for column, operator, value in given if value is not None]


def _time(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadTime from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _transaction(row: Any) -> Transaction:
    raw = row["signed_bytes"]
    return Transaction(
        id=str(row["id"]), tx_id=str(row["id"]), agent_id=row["agent_id"], kind=row["kind"], status=row["status"],
        status_detail=row["status_detail"], to_address=row["to_address"], value=number(row["value"]),
        data=msgspec.json.decode(row["data"]) if row["kind"] == "typed_data" else row["data"], chain_id=row["chain_id"],
        caip2=row["caip2"], nonce=row["nonce"], tx_hash=row["tx_hash"],
        signature=row["signature"] if row["kind"] != "evm" else None,
        signed_transaction=encoded(row["kind"], raw) if raw is not None and not row["broadcast"] else None,
        broadcast=row["broadcast"], reference_id=row["reference_id"], action_id=None,
        policy_results=msgspec.json.decode(row["policy_results"]), policy_version=row["policy_version"],
        effects=msgspec.json.decode(row["effects"]),
        replaces_tx_id=str(row["replaces_tx_id"]) if row["replaces_tx_id"] else None,
        created_at=clock.iso(row["created_at"]), signed_at=_iso(row["signed_at"]),
        broadcast_at=_iso(row["broadcast_at"]),
        confirmed_at=_iso(row["confirmed_at"]),
    )  # fmt: skip


def _pending(row: Any) -> PendingItem:
    order = PendingTransaction(
        str(row["id"]),
        row["to_address"],
        number(row["value"]),
        row["chain_id"],
        msgspec.json.decode(row["policy_results"]),
    )
    return PendingItem(str(row["queue_id"]), row["status"], clock.iso(row["requested_at"]), order)


def encoded(kind: str, raw: bytes) -> str:
    """Signed bytes as a caller gives them to a node: hex for EVM, base64 for Solana."""
    return "0x" + raw.hex() if kind == "evm" else base64.b64encode(raw).decode()


def number(value: Any) -> str | None:
    """NUMERIC(78,0) as a plain decimal string, never in exponent form."""
    return None if value is None else format(value, "f")


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else clock.iso(moment)
