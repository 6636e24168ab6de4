"""Migrations are history, functions are not: an upgraded database equals a new one."""

import asyncio
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from custody.database.texts import Text, parse, read
from ops import places
from ops.migrate import FUNCTIONS, migrate, missing, names, names_before
from ops.runtime import PROJECT
from tests.fixtures.postgres import in_database

# A later version, as it might come: a table that gains a column and an index, and a migration that says so.
LATER = """
ALTER TABLE tenants ADD COLUMN motto text;
CREATE INDEX tenants_motto ON tenants (motto);
"""
# An agent as an earlier version left it: three slots of this hour, one with a token, one from long ago.
SPENT_BEFORE = """
INSERT INTO tenants (id, name) VALUES ('one', 'One');
INSERT INTO agents (tenant_id, id, name, incarnation) VALUES ('one', 'a', 'A', '00000000-0000-4000-8000-000000000001');
INSERT INTO nonces (tenant_id, agent_id, address, chain_id, nonce, tx_id, state, charges)
SELECT 'one', 'a', '0xa', chain_id, nonce, gen_random_uuid(), 'sent', json_build_object(asset, json_build_object(
         'amount', amount::text, 'hour', to_char(hour AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')))::text
  FROM (SELECT date_trunc('hour', service_now()) AS now) n, LATERAL (VALUES
    (1, 0, 'evm:native', 60, n.now), (1, 1, 'evm:native', 7, n.now - interval '30 days'),
    (1, 2, 'evm:1:0xtoken', 3, n.now),
    (137, 0, 'evm:native', 30, n.now), (137, 1, 'evm:native', 10, n.now)) v (chain_id, nonce, asset, amount, hour);
INSERT INTO spend (tenant_id, agent_id, incarnation, asset, hour, amount)
SELECT 'one', 'a', '00000000-0000-4000-8000-000000000001', asset, date_trunc('hour', service_now()), amount
  FROM (VALUES ('evm:native', 105), ('solana:native', 9)) v (asset, amount)
"""
# What a catalogue says of everything that custody makes.
CATALOGUE = {
    "functions": "SELECT p.oid::regprocedure::text AS name, pg_get_functiondef(p.oid) AS text, proowner::regrole::text,"
    " (SELECT array_agg(a::text ORDER BY a::text) FROM unnest(proacl) a) AS acl, obj_description(p.oid, 'pg_proc')"
    " FROM pg_proc p WHERE pronamespace = 'public'::regnamespace",
    "types": "SELECT t.typname AS name, (SELECT array_agg(attname || ' ' || format_type(atttypid, atttypmod) ORDER BY"
    " attnum) FROM pg_attribute WHERE attrelid = t.typrelid) FROM pg_type t JOIN pg_class c ON c.oid = t.typrelid"
    " WHERE typnamespace = 'public'::regnamespace AND relkind = 'c'",
    "tables": "SELECT relname AS name, reloptions, relrowsecurity, relowner::regrole::text,"
    " (SELECT array_agg(a::text ORDER BY a::text) FROM unnest(relacl) a), obj_description(oid, 'pg_class')"
    " FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'S', 'v')",
    "columns": "SELECT c.relname || '.' || a.attname AS name, format_type(atttypid, atttypmod), attnotnull,"
    " attidentity::text, attgenerated::text, attstorage::text, pg_get_expr(adbin, adrelid),"
    " (SELECT array_agg(x::text ORDER BY x::text) FROM unnest(attacl) x) FROM pg_attribute a"
    " JOIN pg_class c ON c.oid = attrelid LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum"
    " WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND attnum > 0 AND NOT attisdropped",
    "constraints": "SELECT conrelid::regclass || '.' || conname AS name, pg_get_constraintdef(oid), convalidated"
    " FROM pg_constraint WHERE connamespace = 'public'::regnamespace",
    "indexes": "SELECT indexname AS name, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "policies": "SELECT tablename || '.' || policyname AS name, permissive, roles::text[], cmd, qual, with_check"
    " FROM pg_policies",
    "triggers": "SELECT tgrelid::regclass || '.' || tgname AS name, pg_get_triggerdef(oid) FROM pg_trigger"
    " WHERE NOT tgisinternal",
}


@pytest.fixture
def databases(postgres_home: places.Home, worker_id: str, request: pytest.FixtureRequest) -> tuple[str, str]:
    """The owner's addresses of two databases in which nothing is."""
    owner_url = postgres_home.file("db", "owner.url").read_text()
    made = [f"up_{worker_id}_{number}_{abs(hash(request.node.nodeid))}" for number in (1, 2)]

    async def create() -> None:
        connection = await asyncpg.connect(in_database(owner_url, "postgres"))
        for name in made:
            await connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        await connection.close()

    asyncio.run(create())
    return in_database(owner_url, made[0]), in_database(owner_url, made[1])


@pytest.fixture
def before_parts(tmp_path: Path) -> Iterator[str]:
    """The migrations before spend was kept by the coin of each chain, as a package."""
    package = f"before_{tmp_path.name.replace('-', '_')}"
    folder = tmp_path / package
    folder.mkdir()
    (folder / "__init__.py").touch()
    for name in names_before()[: names_before().index("0015_parts")]:
        shutil.copy(PROJECT / "custody/migrations/before_1_0" / f"{name}.py", folder)
    sys.path.insert(0, str(tmp_path))
    yield package
    sys.path.remove(str(tmp_path))


@pytest.fixture
def later(tmp_path: Path) -> Iterator[str]:
    """The migrations of this version and one more, as a package."""
    package = f"later_{tmp_path.name.replace('-', '_')}"
    folder = tmp_path / package
    folder.mkdir()
    (folder / "__init__.py").touch()
    for name in names():
        (folder / f"{name}.py").write_text((PROJECT / "custody/migrations" / f"{name}.py").read_text())
    last = (PROJECT / "custody/migrations" / f"{names()[-1]}.py").read_text()
    text = last.replace(names()[-2], names()[-1]).replace("sql(__name__)", f"[RunSQL({LATER!r})]")
    importing = "from tortoise.migrations.operations import RunSQL\n"
    (folder / "9999_later.py").write_text(text.replace("from custody.migrations import sql\n", importing))
    sys.path.insert(0, str(tmp_path))
    yield package
    sys.path.remove(str(tmp_path))


async def test_an_upgraded_database_equals_a_new_one(
    databases: tuple[str, str], postgres_home: places.Home, later: str
) -> None:
    old, new = databases
    await migrate(old, postgres_home)
    before = await fill(old)

    assert await migrate(old, postgres_home, package=later, texts=texts_of_later()) == ["9999_later", FUNCTIONS]
    await migrate(new, postgres_home, package=later, texts=texts_of_later())

    assert difference(await catalogue(old), await catalogue(new)) == {}
    assert await rows_of(old) == before
    assert await missing(old, texts_of_later(), later) == []


# What functions of today read that was not there then.
LATER_TABLES = (
    "sso_domains",
    "sso_memberships",
    "saml_configs",
    "saml_keys",
    "oidc_providers",
    "provider_keys",
    "notification_channels",
    "notices",
    "invitations",
    "wallet_external_ids",
    "fee_paid",
    " i.id",
    "i.verified",
    "spend_totals",
    "policy_set",
    "set_spend",
    "set_totals",
    "set_charge",
    "recipient",
    "release_at",
    "release_look_at",
    "breaker",
    "sets_stamp",
    "micro_usd",
    "payment_routes",
    "call_charges",
)


async def test_spend_from_before_the_coins_of_chains_were_counted_counts_on(
    databases: tuple[str, str], postgres_home: places.Home, before_parts: str
) -> None:
    url, _ = databases
    # The functions of today that its tables allow.
    newer = {
        text.name
        for text in read()
        if (any(part in text.sql for part in (".client_id", " intents ")) and not text.name.startswith("find_"))
        or any(part in text.sql for part in LATER_TABLES)
    }
    texts = [one for one in read() if one.name not in newer and not any(f" {name}(" in one.sql for name in newer)]
    await migrate(url, postgres_home, package=before_parts, texts=texts)
    owner = await asyncpg.connect(url)
    await owner.execute(SPENT_BEFORE)

    await migrate(url, postgres_home)

    found = await owner.fetch("SELECT asset, amount::text FROM spend WHERE amount > 0 ORDER BY asset, amount")
    assert [tuple(row) for row in found] == [
        ("evm:137:native", "40"),
        ("evm:1:native", "60"),
        # Of a slot that is gone, and what no slot counts.
        ("evm:native", "5"),
        ("solana:native", "9"),
    ]
    charges = await owner.fetch("SELECT charges::json::text AS says FROM nonces ORDER BY chain_id, nonce")
    assert [row["says"].split('"')[1] for row in charges] == [
        "evm:1:native",
        "evm:native",  # Its hour counts nowhere any more.
        "evm:1:0xtoken",
        "evm:137:native",
        "evm:137:native",
    ]
    await owner.close()


async def test_the_comparison_sees_what_an_upgrade_forgets(
    databases: tuple[str, str], postgres_home: places.Home, later: str
) -> None:
    old, new = databases
    await migrate(old, postgres_home)
    await migrate(new, postgres_home, package=later, texts=texts_of_later())

    found = difference(await catalogue(old), await catalogue(new))

    assert found == {
        "columns": ["tenants.motto"],
        "functions": ["agent_get(text,text)", "platform_stats()", "utc_day()", "utc_day(text)", "welcome()"],
        "indexes": ["tenants_motto"],
    }


async def test_a_function_of_an_older_version_goes_and_a_signature_changes_under_what_stands_on_it(
    databases: tuple[str, str], postgres_home: places.Home
) -> None:
    url, _ = databases
    await migrate(url, postgres_home)
    owner = await asyncpg.connect(url)
    await owner.execute(
        "CREATE POLICY awake ON agents AS RESTRICTIVE FOR SELECT TO custody_api USING (service_now() > created_at)"
    )
    policy = await owner.fetchval("SELECT qual FROM pg_policies WHERE policyname = 'awake'")
    changed = {
        "service_now": ("service_now()", "service_now(p_zone text DEFAULT 'UTC')"),
        "lock_agent": ("RETURNS void", "RETURNS integer"),
    }
    texts = [
        with_part_replaced(text, *changed.get(text.name, ("", ""))) for text in read() if text.name != "usage_read"
    ]

    assert await migrate(url, postgres_home, texts=texts) == [FUNCTIONS]

    there = {
        row["proname"]: row["args"]
        for row in await owner.fetch(
            "SELECT proname, pg_get_function_arguments(oid) || ' ' || pg_get_function_result(oid) AS args"
            " FROM pg_proc WHERE pronamespace = 'public'::regnamespace"
        )
    }
    assert "usage_read" not in there
    assert there["service_now"] == "p_zone text DEFAULT 'UTC'::text timestamp with time zone"
    assert there["lock_agent"] == "p_tenant text, p_agent text integer"
    assert len(there) == len([text for text in texts if text.kind == "function"])
    assert await owner.fetchval("SELECT qual FROM pg_policies WHERE policyname = 'awake'") == policy
    await owner.execute("INSERT INTO tenants (id, name) VALUES ('t', 'T')")
    assert await owner.fetchval("SELECT created_at IS NOT NULL FROM tenants WHERE id = 't'")
    await owner.close()


async def test_several_at_once_make_the_functions_once(databases: tuple[str, str], postgres_home: places.Home) -> None:
    url, _ = databases
    await migrate(url, postgres_home)
    script = (
        "import asyncio, sys; from pathlib import Path; from ops import places; from ops.migrate import migrate; "
        "from custody.database.texts import read; "
        "texts = [text for text in read() if text.name != 'usage_read']; "
        "print(asyncio.run(migrate(sys.argv[1], places.open_home(Path(sys.argv[2])), texts=texts)))"
    )

    runs = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", script, url, str(postgres_home.path), stdout=asyncio.subprocess.PIPE
        )
        for _ in range(3)
    ]
    answers = [(await run.communicate())[0].decode().strip() for run in runs]

    assert sorted(answers) == ["['functions']", "[]", "[]"]


def texts_of_later() -> list[Text]:
    """The functions of a later version: one gone, one new, one with another body, one with another signature."""
    texts = [text for text in read() if text.name != "platform_stats"]
    changed = {
        "agent_get": ("WHERE a.tenant_id = p_tenant", "WHERE p_tenant = a.tenant_id"),
        "utc_day": ("utc_day()", "utc_day(p_zone text DEFAULT 'UTC')"),
    }
    new = (
        "-- Promises: Greets.\n-- Runs as: caller\n-- Execute: api\n\n"
        "CREATE FUNCTION welcome() RETURNS text\nLANGUAGE sql AS $$\n  SELECT 'welcome'\n$$;\n"
    )
    return [*(with_part_replaced(text, *changed.get(text.name, ("", ""))) for text in texts), parse("welcome", new)]


def with_part_replaced(text: Text, old: str, new: str) -> Text:
    """The text with a part of it changed."""
    if not old:
        return text
    assert old in text.file
    return parse(text.name, text.file.replace(old, new))


async def fill(url: str) -> dict[str, list[str]]:
    """A database with rows in it, and those rows."""
    owner = await asyncpg.connect(url)
    await owner.execute("""
        INSERT INTO tenants (id, name) VALUES ('one', 'One'), ('two', 'Two');
        INSERT INTO users (id, created_at) VALUES ('00000000-0000-4000-8000-000000000001', now());
        INSERT INTO memberships (tenant_id, user_id, role, mac, created_at)
        VALUES ('one', '00000000-0000-4000-8000-000000000001', 'owner', 'm', now());
        INSERT INTO secrets (tenant_id, id, name, version, created_at)
        VALUES ('one', '00000000-0000-4000-8000-000000000002', 's', 1, now());
        SELECT set_config('custody.tenant', 'one', false);
        INSERT INTO audit (tenant_id, written_by, actor_type, actor_id, action, resource_type, resource_id, metadata,
                           created_at)
        VALUES ('one', 'x', 'system', 'x', 'tenant.created', 'tenant', 'one', '{}', now());
        INSERT INTO outbox (tenant_id, event, data, created_at) VALUES ('one', 'tx.signed', '{}', now());
    """)
    await owner.close()
    return await rows_of(url)


async def rows_of(url: str) -> dict[str, list[str]]:
    """Return the rows of some tables, without columns that came later."""
    owner = await asyncpg.connect(url)
    columns = {
        "tenants": "id, name, created_at",
        "memberships": "*",
        "secrets": "*",
        "audit": "*",
        "audit_unsealed": "*",
        "outbox": "*",
        "retention": "*",
    }
    found = {
        table: [row["said"] for row in await owner.fetch(f"SELECT ({which})::text AS said FROM {table} ORDER BY 1")]
        for table, which in ((table, which if which != "*" else f"{table}.*") for table, which in columns.items())
    }
    await owner.close()
    return found


async def catalogue(url: str) -> dict[str, dict[str, object]]:
    """Return the objects of a database, by name."""
    owner = await asyncpg.connect(url)
    found = {
        kind: {row["name"]: tuple(row) for row in await owner.fetch(question)} for kind, question in CATALOGUE.items()
    }
    await owner.close()
    return found


def difference(one: dict[str, dict[str, object]], other: dict[str, dict[str, object]]) -> dict[str, list[str]]:
    """The names of each kind that two databases do not have alike."""
    return {
        kind: names
        for kind in one
        if (names := sorted(n for n in {*one[kind], *other[kind]} if one[kind].get(n) != other[kind].get(n)))
    }
