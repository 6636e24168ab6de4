"""An attacker in a process has its database role, and SQL at will: what it can do then is what the page says.

Statements are made from the catalogue: every function that the role may call, with each argument in turn hostile, and
every table that it may write. docs/database.md.
"""

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.audit.sealed import Log
from tests.audit.test_sealing import stopped_logs, waiting
from tests.fixtures.deployments import owner_of

PAGE = Path(__file__).parents[2].joinpath("docs/database.md").read_text()
# What the signer may call and write is most of what there is; what it must not is in tests/stores/test_roles.py.
ROLES = ("api", "scheduler", "proxy")

_FUNCTIONS = """
SELECT proname, COALESCE(proargnames, '{}') AS names,
       ARRAY(SELECT format_type(t, NULL) FROM unnest(proargtypes) WITH ORDINALITY AS u (t, n) ORDER BY n) AS types
  FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prokind = 'f' AND prorettype <> 'trigger'::regtype
   AND has_function_privilege($1, oid, 'EXECUTE') ORDER BY proname"""
_WRITABLE = """
SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
   AND (has_any_column_privilege($1, oid, 'INSERT') OR has_any_column_privilege($1, oid, 'UPDATE')
     OR has_table_privilege($1, oid, 'DELETE') OR has_table_privilege($1, oid, 'TRUNCATE'))"""
_TABLES = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY 1"

_DEEP = """(repeat('{"a":', 5000) || '1' || repeat('}', 5000))"""
HOSTILE = {
    "act": (
        "NULL",
        "ROW('agent:a', 'POST /vault/{agentId}/sign', 'k', 'f', 'a', 'agent', 'a', '{}', NULL)",
        "ROW('me', 'POST /accounts', 'k', 'f', convert_to(repeat('x', 1000000), 'UTF8'), 'system', 'me', '{}', NULL)",
        "ROW('me', 'POST /accounts', NULL, NULL, NULL, 'system', repeat('x', 1000000), '[1]', NULL)",
        "ROW(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    ),
    "json": ("NULL", "'[1]'", '\'{"a": "\\u0000"}\'', "json_build_object('a', repeat('x', 100000))", f"{_DEEP}::json"),
    "smallint": ("NULL", "0", "-1", "32767", "-32768"),
    "text": ("NULL", "''", "'platform'", "'nobody'", "repeat('x', 1000000)", _DEEP, "E'a\\nb 1 .'", "'[1]'", "'1e999'"),
    "uuid": ("NULL", "gen_random_uuid()"),
    "bytea": ("NULL", "''", "convert_to(repeat('x', 1000000), 'UTF8')"),
    "boolean": ("NULL", "true"),
    "integer": ("NULL", "0", "-1", "2147483647", "-2147483648"),
    "bigint": ("NULL", "0", "-1", "9223372036854775807", "-9223372036854775808"),
    "double precision": ("NULL", "'NaN'", "'Infinity'", "-1", "1e300", "1e15"),
    "timestamp with time zone": ("NULL", "'infinity'", "'-infinity'", "'12000-01-01Z'", "'4713-01-01Z BC'"),
}
_ACT = "ROW('me', 'POST /accounts', {}, '', '', 'system', 'me', '{{}}', ARRAY[NULL, NULL, NULL]::text[])"
# What a role that is no worker may say in an audit log.
OWN_ACTS = {("custody_proxy", "proxy.request"), ("custody_api", "account.created")}
USUAL = {
    "act": _ACT.format("gen_random_uuid()::text::bytea"),
    "uuid": "gen_random_uuid()",
    "bytea": "''",
    "boolean": "true",
    "json": "'{}'",
    "smallint": "1",
    "integer": "1",
    "bigint": "1",
    "double precision": "1",
    "timestamp with time zone": "service_now()",
}
USUAL_TEXT = {
    "p_action": "'account.created'",
    "p_metadata": "'{}'",
    "p_what": "'events'",
    "p_name": "'seal'",
    "p_outcomes": "'failed'",
}


@pytest.fixture
async def owner(log: Log) -> AsyncIterator[asyncpg.Connection]:
    """The owner of the database."""
    async with owner_of(log.service.database) as connection:
        yield connection


@pytest.mark.parametrize("role", ROLES)
async def test_the_page_lists_every_function_that_a_role_may_call(owner: asyncpg.Connection, role: str) -> None:
    found = {row["proname"] for row in await owner.fetch(_FUNCTIONS, f"custody_{role}")}

    assert found == _on_the_page(role, "calls")


@pytest.mark.parametrize("role", ROLES)
async def test_a_role_with_sql_at_will_does_what_the_page_says_and_harms_no_log(
    log: Log, owner: asyncpg.Connection, role: str
) -> None:
    before, began = await _everything(owner), await owner.fetchval("SELECT service_now()")
    newest = await owner.fetchval("SELECT max(seq) FROM audit")
    attacker = await asyncpg.connect(log.service.database.urls[role])
    try:
        await attacker.execute("SELECT set_config('custody.tenant', $1, false)", log.tenant.id)
        taken = [await _try(attacker, one) for one in await _statements(owner, role, log.tenant.id)]
    finally:
        await attacker.close()

    # A good part was taken; none was a fault of the server, or ended the connection.
    assert None in taken
    assert [one for one in taken if one is not None and one.startswith(("XX", "08", "57P"))] == []
    after = await _everything(owner)
    assert {table for table in after if after[table] != before[table]} <= _on_the_page(role, "changes")
    for row in await owner.fetch("SELECT * FROM audit WHERE seq > $1", newest):
        assert (row["written_by"], row["action"]) in OWN_ACTS
        assert row["tenant_id"] == log.tenant.id
        assert row["created_at"] >= began
        assert max(len(str(value).encode()) for value in row.values()) <= 65_536
    await _nobody_is_harmed(log)


@pytest.mark.parametrize("role", ROLES)
async def test_a_role_reads_what_it_may_of_one_tenant_at_a_time(log: Log, owner: asyncpg.Connection, role: str) -> None:
    attacker = await asyncpg.connect(log.service.database.urls[role])
    try:
        for tenant in ("platform", "nobody", "%", "' OR true --", log.tenant.id):
            await attacker.execute("SELECT set_config('custody.tenant', $1, false)", tenant)
            for table in await _with_a_tenant(owner, role):
                rows = await attacker.fetch(f"SELECT DISTINCT tenant_id FROM {table}")
                assert {row[0] for row in rows} <= {tenant}
    finally:
        await attacker.close()


async def test_a_scheduler_cannot_make_a_delivery_that_nobody_can_read(log: Log) -> None:
    webhook = log.owner.ok("POST", "/webhooks", {"url": "http://127.0.0.1:9/"})["id"]
    log.owner.ok("POST", f"/webhooks/{webhook}/test")
    attacker = await asyncpg.connect(log.service.database.urls["scheduler"])
    try:
        claimed = await attacker.fetch("SELECT * FROM claim_deliveries(100, 60, 8, '{}', '{}')")
        mine = next(row for row in claimed if row["tenant_id"] == log.tenant.id)
        for outcome, error, status, wait in (
            ("failed", "x" * 1_000_000, 500, 1.0),
            ("failed", "x", 2**31 - 1, 1.0),
            ("failed", "x", -1, 1.0),
            ("unsent", "x", 500, 1e15),
            ("unsent", "x", 500, 1e12),
            ("unsent", "x", 500, -1e13),
        ):
            with pytest.raises((asyncpg.CheckViolationError, asyncpg.DataError)):
                await attacker.fetch(
                    "SELECT deliveries_ended($1, $2, $3, $4, $5, $6, $7)",
                    [log.tenant.id],
                    [mine["id"]],
                    [mine["attempt"]],
                    [outcome],
                    [error],
                    [status],
                    [wait],
                )
    finally:
        await attacker.close()

    assert log.owner.get(f"/webhooks/{webhook}/deliveries").status_code == 200


async def test_a_lock_that_a_role_holds_keeps_one_log_waiting_and_no_other(log: Log) -> None:
    attacker = await asyncpg.connect(log.service.database.urls["proxy"])
    try:
        await attacker.execute("SELECT pg_advisory_lock(hashtextextended('custody-audit:' || $1, 0))", log.tenant.id)
        log.act()
        log.seal()
        assert await waiting(log) == 1
    finally:
        await attacker.close()
    log.seal()

    assert (await waiting(log), log.tenant.id in stopped_logs(log.service)) == (0, False)


async def _nobody_is_harmed(log: Log) -> None:
    log.act()
    log.seal()
    assert (await waiting(log), log.tenant.id in stopped_logs(log.service)) == (0, False)
    path = f"/tenants/{log.tenant.id}"
    for address in ("/audit/events?limit=200", "/audit/export?format=csv", f"{path}/idempotency-metrics", "/ready"):
        answer = log.owner.get(address)
        assert answer.status_code == 200, (address, answer.text)
    assert log.problem(log.export()) is None


async def _statements(owner: asyncpg.Connection, role: str, tenant: str) -> list[str]:
    found = []
    for row in await owner.fetch(_FUNCTIONS, f"custody_{role}"):
        arguments = list(zip(row["types"], row["names"][: len(row["types"])], strict=True))
        usual = [_usual(kind, name, tenant) for kind, name in arguments]
        found.append(_call(row["proname"], usual))
        for place, (kind, _) in enumerate(arguments):
            found += [_call(row["proname"], [*usual[:place], odd, *usual[place + 1 :]]) for odd in _hostile(kind)]
    for row in await owner.fetch(_WRITABLE, f"custody_{role}"):
        found += await _writes(owner, row["relname"], tenant)
    return found


def _call(name: str, arguments: list[str]) -> str:
    return f"SELECT * FROM {name}({', '.join(arguments)})"


def _usual(kind: str, name: str, tenant: str) -> str:
    element = kind.removesuffix("[]")
    counts = f'\'[{{"tenant":"{tenant}","observed":1}}]\''
    value = USUAL.get(element) or {**USUAL_TEXT, "p_counts": counts}.get(name, f"'{tenant}'")
    return f"ARRAY[{value}]::{kind}" if kind != element else f"({value})::{kind}"


def _hostile(kind: str) -> Iterator[str]:
    element = kind.removesuffix("[]")
    if kind == element:
        yield from (f"({value})::{kind}" for value in HOSTILE[kind])
        return
    yield from (f"NULL::{kind}", f"'{{}}'::{kind}", f"array_fill(NULL::{element}, ARRAY[1001])")
    yield from (f"ARRAY[{value}]::{kind}" for value in HOSTILE[element])


async def _writes(owner: asyncpg.Connection, table: str, tenant: str) -> list[str]:
    columns = await owner.fetch(
        "SELECT attname, format_type(atttypid, NULL) AS kind FROM pg_attribute "
        "WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped",
        table,
    )
    found = [f"DELETE FROM {table}", f"TRUNCATE {table}", f"INSERT INTO {table} DEFAULT VALUES"]
    for column in columns:
        for odd in _hostile(column["kind"]):
            found.append(f"UPDATE {table} SET {column['attname']} = {odd} WHERE tenant_id = '{tenant}'")
            usual = [odd if one is column else _usual(one["kind"], one["attname"], tenant) for one in columns]
            found.append(f"INSERT INTO {table} VALUES ({', '.join(usual)})")
    return found


async def _try(attacker: asyncpg.Connection, statement: str) -> str | None:
    """None where the database took it, else the state that it answered."""
    try:
        await attacker.fetch(statement)
    except (asyncpg.PostgresError, ValueError, OverflowError) as problem:
        return getattr(problem, "sqlstate", "22000")
    return None


async def _everything(owner: asyncpg.Connection) -> dict[str, Any]:
    """Of each table how many rows it has, and a sum over them."""
    return {
        row[0]: tuple(
            await owner.fetchrow(f"SELECT count(*), sum(hashtextextended(t::text, 0)::numeric) FROM {row[0]} t")
        )
        for row in await owner.fetch(_TABLES)
    }


async def _with_a_tenant(owner: asyncpg.Connection, role: str) -> list[str]:
    rows = await owner.fetch(
        "SELECT relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id'"
        " WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
        " AND has_column_privilege($1, c.oid, a.attnum, 'SELECT')",
        f"custody_{role}",
    )
    return [row[0] for row in rows]


def _on_the_page(role: str, what: str) -> set[str]:
    line = re.search(rf"^\| {role} {what} \|([^|\n]*)\|$", PAGE, re.MULTILINE)
    assert line is not None, f"docs/database.md has no line `{role} {what}`"
    return set(re.findall(r"`(\w+)`", line[1]))
