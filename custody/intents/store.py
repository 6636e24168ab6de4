"""Queries of intents."""

from typing import Any, Final

import msgspec
from msgspec import UNSET

from custody.intents.listed import MAX_LISTED_BYTES, IntentList, IntentQuery, ListedIntent
from custody.intents.types import Intent
from custody.kit import clock
from custody.kit.db import Pool, tenant_scope
from custody.kit.paging import AROUND, fitting, reach
from custody.policies.types import decode_results
from custody.protocol.signer.refusals import IntentAbsent

# From its last moment on an intent is over, whether or not somebody has written it down yet.
_DUE: Final = "i.status IN ('pending', 'authorized') AND i.expires_at <= clock.now"
_STATUS: Final = f"CASE WHEN {_DUE} THEN 'expired' ELSE i.status END AS shown_status"
_CLOCK: Final = "WITH clock AS MATERIALIZED (SELECT service_now() AS now)"
_FROM: Final = "FROM intents i, clock WHERE i.tenant_id = $1"
# Counted beyond the page: who has a million intents waits no longer for a page than who has a thousand.
# Of one that signs: what has become of its transactions since.
_TRANSACTIONS: Final = "SELECT id, status, tx_hash FROM transactions WHERE tenant_id = $1 AND id = ANY ($2::uuid[])"
# Of a row `q`, as it is shown in a list: a result in both spellings.
_SIZE: Final = (
    f"{AROUND} + COALESCE(octet_length(payload), 0) + 2 * COALESCE(octet_length(result), 0) "
    "+ COALESCE(octet_length(results), 0) + 6 * COALESCE(octet_length(reason), 0)"
)
_BESIDE: Final = (
    "i.id, i.type, i.agent_id, i.resource_type, i.resource_id, i.digest, i.status, i.expires_at, i.created_at, "
    "i.updated_at, i.created_by, i.created_by_name, i.authorized_by, i.authorized_at, i.reason, i.results, i.tx_ids"
)
# Postgres knows the length of a long text without reading it.
_SHORT: Final = ", ".join(
    f"CASE WHEN octet_length(i.{name}) <= {MAX_LISTED_BYTES} THEN i.{name} END AS {name}, "
    f"CASE WHEN octet_length(i.{name}) > {MAX_LISTED_BYTES} THEN octet_length(i.{name}) END AS {name}_bytes"
    for name in ("payload", "result")
)
_WHOLE: Final = "i.payload, i.result, NULL::integer AS payload_bytes, NULL::integer AS result_bytes"
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class _Order(msgspec.Struct, frozen=True):
    """The state of a transaction, and its hash."""

    status: str
    tx_hash: str | None


async def get(pool: Pool, tenant: str, intent_id: str) -> Intent:
    """One intent, or IntentAbsent."""
    async with tenant_scope(pool, tenant) as connection:
        row = await connection.fetchrow(f"{_CLOCK} SELECT i.*, {_STATUS} {_FROM} AND i.id = $2", tenant, intent_id)
        if row is None:
            raise IntentAbsent
        return _intent(row, await _orders(connection, tenant, [row]))


async def all_of(pool: Pool, tenant: str, query: IntentQuery) -> IntentList:
    """A page of a tenant's intents, newest first."""
    arguments: list[Any] = [tenant]
    where = ""
    if query.status is not None:
        where += f" AND {_where(query.status)}"
    kind = query.intent_type or query.intent_type_ or query.type
    for column, value in (("type", kind), ("agent_id", query.agent_id or query.wallet_id)):
        if value is not None:
            arguments.append(value)
            where += f" AND i.{column} = ${len(arguments)}"
    ordered = f"{_FROM}{where} ORDER BY i.created_at DESC, i.id"
    shown = f"SELECT {_BESIDE}, {_WHOLE if query.include else _SHORT}, {_STATUS} {ordered}"
    by_size = fitting(f"{shown} LIMIT {int(query.limit)} OFFSET {int(query.offset)}", "created_at DESC, id", _SIZE)
    page = f"{_CLOCK} {by_size}"
    to_count = reach(query.offset, query.limit)
    # In order, so by an index of the tenant's own: who has few would wait for a walk over the rows of all others.
    counted = f"{_CLOCK} {to_count.query(ordered)}"
    async with tenant_scope(pool, tenant) as connection:
        rows = await connection.fetch(page, *arguments)
        total = to_count.total(await connection.fetchval(counted, *arguments))
        orders = await _orders(connection, tenant, rows)
    intents = [_to_listed(row, orders) for row in rows]
    return IntentList(intents, total.rows, total.is_estimate, query.limit, query.offset)


def _where(status: str) -> str:
    # The column itself stands in each, for the index to be of use.
    if status in {"pending", "authorized"}:
        return f"i.status = '{status}' AND i.expires_at > clock.now"
    return f"(i.status = 'expired' OR ({_DUE}))" if status == "expired" else f"i.status = '{status}'"


async def due(pool: Pool, limit: int) -> list[Any]:
    """Intents of all tenants whose time is up, or whose node was never heard of."""
    rows: list[Any] = await pool.fetch("SELECT * FROM due_intents($1)", limit)
    return rows


async def _orders(connection: Any, tenant: str, rows: list[Any]) -> dict[str, _Order]:
    wanted = [one for row in rows if row["status"] in {"executed", "failed"} for one in row["tx_ids"]]
    found = await connection.fetch(_TRANSACTIONS, tenant, wanted) if wanted else []
    return {str(row["id"]): _Order(row["status"], row["tx_hash"]) for row in found}


def _intent(row: Any, orders: dict[str, _Order]) -> Intent:
    result = None if row["result"] is None else _update(_decode(row["result"]), orders)
    return Intent(**_beside(row), payload=_decode(row["payload"]), execution_result=result, execution_result_=result)


def _to_listed(row: Any, orders: dict[str, _Order]) -> ListedIntent:
    payload, result, bytes_left_out = row["payload"], row["result"], row["result_bytes"]
    told = None if result is None else _update(_decode(result), orders)
    left_out = UNSET if bytes_left_out else told
    return ListedIntent(
        **_beside(row),
        payload=UNSET if payload is None else _decode(payload),
        payload_bytes=row["payload_bytes"] or UNSET,
        execution_result=left_out,
        execution_result_=left_out,
        execution_result_bytes=bytes_left_out or UNSET,
    )


def _beside(row: Any) -> dict[str, Any]:
    created_at, expires_at = row["created_at"], row["expires_at"]
    id_ = str(row["id"])
    return {
        "id": id_,
        "intent_id": id_,
        "intent_type": row["type"],
        "intent_type_": row["type"],
        "agent_id": row["agent_id"],
        "wallet_id": row["agent_id"],
        "resource_type": row["resource_type"],
        "resource_type_": row["resource_type"],
        "resource_id": row["resource_id"],
        "resource_id_": row["resource_id"],
        "digest": row["digest"].hex(),
        "status": row["shown_status"],
        "expires_at": clock.iso(expires_at),
        "expires_at_": clock.unix_microseconds(expires_at) // 1000,
        "created_at": clock.iso(created_at),
        "created_at_": clock.unix_microseconds(created_at) // 1000,
        "updated_at": clock.iso(row["updated_at"]),
        "created_by": row["created_by"],
        "created_by_display_name": row["created_by_name"],
        "created_by_display_name_": row["created_by_name"],
        "authorized_by": None if row["authorized_by"] is None else str(row["authorized_by"]),
        "authorized_at": clock.iso_or_none(row["authorized_at"]),
        "reason": row["reason"],
        "policy_results": None if row["results"] is None else decode_results(row["results"]),
    }


def _update(result: dict[str, Any], orders: dict[str, _Order]) -> dict[str, Any]:
    """The result, with what has become of each transaction until now."""
    if "transactions" in result:
        return {**result, "transactions": [_now(one, orders) for one in result["transactions"]]}
    return _now(result, orders)


def _now(result: dict[str, Any], orders: dict[str, _Order]) -> dict[str, Any]:
    order = orders.get(str(result.get("txId")))
    return result if order is None else {**result, "status": order.status, "txHash": order.tx_hash}
