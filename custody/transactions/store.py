"""Queries of transactions. The hot read and the one write are in `signer/ledger.py`."""

import re
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import UNSET

from custody.chains.bitcoin.extract import extract
from custody.chains.evm.address import checksum
from custody.chains.families import of_kind
from custody.identity.authority import Authorized
from custody.kit import clock, cursors
from custody.kit.cursors import Place, Walk
from custody.kit.db import Connection, Pool, tenant_scope
from custody.kit.paging import AROUND, Listed, Total, fitting, page_of, reach
from custody.kit.reading import reading
from custody.kit.refs import AgentRef
from custody.kit.search_bounds import first_moment, last_moment
from custody.kit.tenant_semaphore import TenantSemaphore
from custody.policies.types import decode_results
from custody.protocol.signer.order_refusals import AgentAbsent
from custody.protocol.signer.refusals import TransactionAbsent
from custody.transactions.backoff import RESEND
from custody.transactions.types import (
    USUAL_PAGE,
    HistoryQuery,
    ListedTransaction,
    PendingItem,
    PendingTransaction,
    TenantTransactionQuery,
    Transaction,
    TransactionFilter,
    TransactionQuery,
)

_authorized = msgspec.json.Decoder(Authorized).decode
_SUMMARY = (
    "id, agent_id, kind, status, status_detail, reason, to_address, value, chain_id, caip2, nonce, tx_hash, "
    "settled_by, broadcast, reference_id, policy_results, policy_version, effects, replaces_tx_id, created_at, "
    "signed_at, broadcast_at, confirmed_at, wallet_action IS NOT NULL AS is_action, "
    "authorization_text"
)
_DATA = "data, signature, signed_bytes"
_COLUMNS = f"{_SUMMARY}, {_DATA}"
# The bytes that a row's long values take in an answer. Postgres knows their length without reading the values.
_LONG = "octet_length(policy_results) + octet_length(effects) + COALESCE(octet_length(authorization_text), 0)"
_LONG_DATA = (
    f"{_LONG} + COALESCE(octet_length(data), 0) + COALESCE(octet_length(signature), 0) "
    "+ 2 * COALESCE(octet_length(signed_bytes), 0)"
)
# The kinds whose data is JSON.
_DOCUMENTS = ("typed_data", "evm_message", "solana_message", "x402", "solana_x402")
_BY_TIME = "created_at DESC, id"
_ORDER = f"ORDER BY {_BY_TIME}"
# The agent is not a condition: the planner might choose an index that begins with it and walk all of its rows.
ONE = f"SELECT {_COLUMNS} FROM transactions WHERE tenant_id = $1 AND id = $2"


_EVM = re.compile(r"0[xX][0-9a-fA-F]{40}")

# A column, an operator, a value.
_Filter = tuple[str, str, Any]
_Query = HistoryQuery | TransactionQuery | TenantTransactionQuery


class Found(msgspec.Struct, frozen=True):
    """One page: its rows, how many there are in all and before it, and the cursor of the next."""

    rows: list[ListedTransaction]
    total: Total
    before: int
    next_cursor: str | None


async def get(pool: Pool, ref: AgentRef, tx_id: str) -> Transaction:
    """One transaction of an agent; TransactionAbsent if there is none."""
    async with tenant_scope(pool, ref.tenant) as connection:
        row = await connection.fetchrow(ONE, ref.tenant, tx_id)
    if row is None or row["agent_id"] != ref.agent:
        raise TransactionAbsent
    return _transaction(row)


async def search(pool: Pool, ref: AgentRef, query: TransactionQuery) -> Found:
    """An agent's transactions, newest first, by any of the filters."""
    return await _of_agent(pool, ref, query, "transactions", _filters(query))


async def history(pool: Pool, ref: AgentRef, query: HistoryQuery) -> Listed[ListedTransaction]:
    """All transactions of an agent, newest first."""
    found = await _of_agent(pool, ref, query, "history", [])
    return page_of(found.rows, found.total, found.next_cursor)


async def search_tenant(pool: Pool, share: TenantSemaphore, tenant: str, query: TenantTransactionQuery) -> Found:
    """Transactions of every agent, newest first, by any of the filters.

    Some filters have no index, so the search may read every row of the tenant: it then waits for a slot of `share`.
    """
    walk = cursors.walk(tenant, ("transactions",), query)
    place = cursors.begin(walk, query)
    where = _Where(tenant, [*([("agent_id", "=", query.agent_id)] if query.agent_id else []), *_filters(query)])
    walks = (query.status, query.chain_id, query.kind, query.reference_id, query.tx_hash, query.to_address)
    by_all = any(value is not None for value in walks)
    async with reading(pool, share, tenant) if by_all else tenant_scope(pool, tenant) as connection:
        return await _page(connection, where, query, walk, place)


async def _of_agent(
    pool: Pool, ref: AgentRef, query: HistoryQuery | TransactionQuery, name: str, filters: list[_Filter]
) -> Found:
    walk = cursors.walk(ref.tenant, (name, ref.agent), query)
    place = cursors.begin(walk, query)
    where = _Where(ref.tenant, [("agent_id", "=", ref.agent), *filters])
    async with tenant_scope(pool, ref.tenant) as connection:
        found = await _page(connection, where, query, walk, place)
        await _must_exist(connection, ref, len(found.rows) or (0 if place else found.total.rows))
    return found


async def _page(connection: Connection, where: "_Where", query: _Query, walk: Walk, place: Place | None) -> Found:
    limit = int(query.limit or USUAL_PAGE)
    columns, long = (_COLUMNS, _LONG_DATA) if query.include else (_SUMMARY, _LONG)
    to_count = reach(query.offset, limit)
    counted = to_count.query(where.newest_first()), *where.values
    if place is not None:
        where.behind(place)
    # Only names from this file enter the text; every value is a parameter.
    page = f"SELECT {columns}, {long} + {AROUND} AS long FROM transactions WHERE {where.text} {_ORDER} "
    page += f"LIMIT {limit + 1} OFFSET {int(query.offset)}"
    rows = await connection.fetch(fitting(page, _BY_TIME, "long", most=limit), *where.values)
    more = bool(rows) and rows[0]["found"] > len(rows)
    before = place.before if place else query.offset
    # Counted once: the cursor carries the total of the first page.
    total = place.total_at(len(rows), more=more) if place else to_count.total(await connection.fetchval(*counted))
    onwards = cursors.onwards(walk, "created_at", rows, more=more, before=before, total=total)
    shown = [ListedTransaction(**_summary(row), **(_data(row) if query.include else {})) for row in rows]
    return Found(shown, total, before, onwards)


class _Where:
    """Conditions over transactions of one tenant, and their values."""

    def __init__(self, tenant: str, filters: Iterable[_Filter]) -> None:
        self.values: list[Any] = [tenant]
        self.text = "tenant_id = $1"
        for column, operator, value in filters:
            self.values.append(value)
            self.text += f" AND {column} {operator} ${len(self.values)}"

    def behind(self, place: Place) -> None:
        """Only rows behind this place; the first condition is the one that an index serves."""
        self.values += [place.at, place.id]
        at, row_id = len(self.values) - 1, len(self.values)
        self.text += f" AND created_at <= ${at} AND (created_at < ${at} OR id > ${row_id})"

    def newest_first(self) -> str:
        """Them, newest first: in this order they are counted by the index that pages are read by."""
        return f"FROM transactions WHERE {self.text} {_ORDER}"


async def pending(pool: Pool, ref: AgentRef, limit: int, offset: int) -> Listed[PendingItem]:
    """Orders that wait for a person, newest first."""
    condition = (
        "p.tenant_id = $1 AND p.agent_id = $2 AND p.status = 'pending' "
        "AND (p.expires_at IS NULL OR p.expires_at > service_now())"
    )
    async with tenant_scope(pool, ref.tenant) as connection:
        page = (
            "SELECT p.id AS queue_id, p.status, p.requested_at, t.id, t.to_address, t.value, t.chain_id, "
            "t.policy_results "
            "FROM approvals p JOIN transactions t ON t.tenant_id = p.tenant_id AND t.id = p.tx_id "
            f"WHERE {condition} ORDER BY p.requested_at DESC, p.id LIMIT $3 OFFSET $4"
        )
        by_size = fitting(page, "requested_at DESC, queue_id", f"octet_length(policy_results) + {AROUND}")
        rows = await connection.fetch(by_size, ref.tenant, ref.agent, limit, offset)
        to_count = reach(offset, limit)
        counted = to_count.query(f"FROM approvals p WHERE {condition}")
        total = to_count.total(await connection.fetchval(counted, ref.tenant, ref.agent))
        await _must_exist(connection, ref, total.rows)
    return page_of([_pending(row) for row in rows], total)


async def _must_exist(connection: Connection, ref: AgentRef, found: int) -> None:
    """Raise AgentAbsent where no rows were found and the tenant has no such agent."""
    if not found and not await connection.fetchval(
        "SELECT true FROM agents WHERE tenant_id = $1 AND id = $2", ref.tenant, ref.agent
    ):
        raise AgentAbsent


def _filters(query: TransactionFilter) -> list[_Filter]:
    given: list[_Filter] = [
        ("status", "=", query.status),
        ("chain_id", "=", query.chain_id),
        ("kind", "=", query.kind),
        ("reference_id", "=", query.reference_id),
        ("tx_hash", "=", query.tx_hash),
        ("id", "=", query.tx_id),
        ("to_address", "=", query.to_address and _spell(query.to_address)),
        ("created_at", ">=", first_moment("from", query.from_)),
        ("created_at", "<=", last_moment("to", query.to)),
    ]
    return [(column, operator, value) for column, operator, value in given if value is not None]


def _spell(address: str) -> str:
    """An address as rows have it: EVM's in its checksum, others exactly as they are."""
    return checksum(address) if _EVM.fullmatch(address) else address


def _transaction(row: Any) -> Transaction:
    # Kept are the bytes of the PSBT alone: its transaction follows from them.
    done = extract(row["signed_bytes"]) if row["kind"] == "bitcoin" and row["signed_bytes"] else None
    return Transaction(
        **_summary(row),
        **_data(row),
        finalized_tx_hex=done.final.raw.hex() if done else UNSET,
        vsize=done.final.vsize if done else UNSET,
        fee_sats=str(done.fee) if done else UNSET,
    )


def _data(row: Any) -> dict[str, Any]:
    raw = row["signed_bytes"]
    return {
        # A refused order keeps no data, nor does one that was rejected long ago.
        "data": msgspec.json.decode(row["data"]) if row["kind"] in _DOCUMENTS and row["data"] else row["data"],
        "signature": row["signature"] if row["kind"] != "evm" else None,
        "signed_transaction": encode_signed(row["kind"], raw) if raw is not None and not row["broadcast"] else None,
    }


def _summary(row: Any) -> dict[str, Any]:
    return {
        "id": str(row["id"]),
        "tx_id": str(row["id"]),
        "agent_id": row["agent_id"],
        "kind": row["kind"],
        "status": row["status"],
        "status_detail": row["status_detail"],
        "reason": row["reason"],
        "to_address": row["to_address"],
        "value": number(row["value"]),
        "chain_id": row["chain_id"],
        "caip2": row["caip2"],
        "nonce": row["nonce"],
        "tx_hash": row["tx_hash"],
        "settled_by": row["settled_by"],
        "broadcast": row["broadcast"],
        "reference_id": row["reference_id"],
        "action_id": str(row["id"]) if row["is_action"] else None,
        "authorization": _authorized(row["authorization_text"]) if row["authorization_text"] else None,
        "policy_results": decode_results(row["policy_results"]),
        "policy_version": row["policy_version"],
        "effects": msgspec.json.decode(row["effects"]),
        "replaces_tx_id": str(row["replaces_tx_id"]) if row["replaces_tx_id"] else None,
        "created_at": clock.iso(row["created_at"]),
        "signed_at": clock.iso_or_none(row["signed_at"]),
        "broadcast_at": clock.iso_or_none(row["broadcast_at"]),
        "confirmed_at": clock.iso_or_none(row["confirmed_at"]),
    }


def _pending(row: Any) -> PendingItem:
    order = PendingTransaction(
        str(row["id"]),
        row["to_address"],
        number(row["value"]),
        row["chain_id"],
        decode_results(row["policy_results"]),
    )
    return PendingItem(str(row["queue_id"]), row["status"], clock.iso(row["requested_at"]), order)


def encode_signed(kind: str, raw: bytes) -> str:
    """Signed bytes as a caller gives them to a node of their family."""
    return of_kind(kind).encode(raw)


def number(value: Any) -> str | None:
    """NUMERIC(78,0) as a plain decimal string, never in exponent form."""
    return None if value is None else format(value, "f")


async def claim_unsent(pool: Pool, limit: int) -> list[Any]:
    """Claim signed orders of all tenants whose broadcast is due; each stays claimed until its next try."""
    rows: list[Any] = await pool.fetch("SELECT * FROM claim_unsent($1, $2, $3)", limit, RESEND.first, RESEND.longest)
    return rows
