"""P4: what each database role may do, and that no row of another tenant exists for it; docs/database.md too."""

import asyncio
import hmac
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import asyncpg
import pytest

from custody.identity.request_signature import canonical
from ops import places
from tests.acts.sign_on import OIDC_PROVIDER
from tests.audit.sealed import seal
from tests.fixtures.callers import Tenant, new_tenant, rule
from tests.fixtures.deployments import database_apart, deploy, owner_of
from tests.fixtures.keepsakes import vote_on_something
from tests.fixtures.people import Person, member
from tests.fixtures.postgres import Database
from tests.fixtures.server import EVM_CHAIN, Service
from tests.fixtures.signer_socket import done_as_tenant
from tests.fixtures.signers import new_quorum, new_signer
from tests.routes.vault.bitcoin import LISTED, payment, sign_psbt
from tests.routes.vault.transfers import with_signer

PAGE = Path(__file__).parents[2].joinpath("docs/database.md").read_text()
ROLES = ("api", "signer", "identity", "scheduler", "proxy")
TENANT_TABLES = (
    "tenants",
    "tenant_keys",
    "tenant_config",
    "agents",
    "sealed",
    "identity_sealed",
    "policy_heads",
    "policy_rules",
    "signers",
    "key_quorums",
    "authority_heads",
    "approver_keys",
    "approval_votes",
    "quorum_breaks",
    "intents",
    "accounts",
    "account_wallets",
    "account_aggregations",
    "import_sessions",
    "bitcoin_accounts",
    "psbt_spends",
    "outpoints",
    "transactions",
    "approvals",
    "spend",
    "spend_totals",
    "recipients",
    "breaker_marks",
    "call_charges",
    "rate",
    "nonces",
    "idempotency",
    "event_marks",
    "audit",
    "audit_unsealed",
    "audit_leaves",
    "audit_nodes",
    "audit_spans",
    "audit_checkpoints",
    "outbox",
    "events",
    "secrets",
    "credential_routes",
    "payment_routes",
    "policy_sets",
    "set_spend",
    "set_totals",
    "credential_heads",
    "memberships",
    "invitations",
    "app_clients",
    "sso_memberships",
    "wallet_external_ids",
    "oidc_providers",
    "saml_configs",
    "saml_keys",
    "saml_assertions_seen",
    "sso_domains",
    "sign_on_tests",
    "app_secrets",
    "signing_keys",
    "used_signatures",
    "idempotency_counts",
    "webhook_endpoints",
    "deliveries",
    "notification_channels",
    "notices",
    "deleted_agents",
    "wallets",
)
# What proves who a person is: identity's alone.
PEOPLE = (
    "users",
    "identities",
    "sessions",
    "sign_in_nonces",
    "sign_in_codes",
    "challenges",
    "attempts",
    "device_codes",
    "factors",
    "enrolments",
    "recovery_codes",
    "passkeys",
    "sign_in_requests",
    "exchange_codes",
    "provider_keys",
)
GLOBAL_TABLES = (
    *PEOPLE,
    "jobs",
    "retention",
    "key_versions",
    "token_keys",
    "session_keys",
    "platform_keys",
    "room_trial",
    "tortoise_migrations",
    "applied_sql",
)
JUDGED = (
    "tenants",
    "tenant_keys",
    "tenant_config",
    "agents",
    "policy_heads",
    "policy_rules",
    "signers",
    "key_quorums",
    "authority_heads",
    "approver_keys",
    "approval_votes",
    "quorum_breaks",
    "intents",
    "import_sessions",
    "bitcoin_accounts",
    "psbt_spends",
    "outpoints",
    "transactions",
    "approvals",
    "spend",
    "spend_totals",
    "recipients",
    "breaker_marks",
    "rate",
    "nonces",
    "sealed",
    "identity_sealed",
    "token_keys",
    "session_keys",
    "platform_keys",
    "secrets",
    "credential_routes",
    "payment_routes",
    "policy_sets",
    "set_spend",
    "set_totals",
    "credential_heads",
    "memberships",
    "invitations",
    "sso_domains",
    "app_clients",
    "sso_memberships",
    "wallet_external_ids",
    "oidc_providers",
    "saml_configs",
    "saml_keys",
    "saml_assertions_seen",
    "app_secrets",
    "signing_keys",
    "used_signatures",
    "webhook_endpoints",
    "deliveries",
    "notification_channels",
    "notices",
    "deleted_agents",
    "wallets",
    *PEOPLE,
)
# What sign-on writes, without an identity provider.
SIGN_ON = (
    "INSERT INTO sso_memberships SELECT tenant_id, user_id, '' FROM memberships WHERE tenant_id = $1",
    "INSERT INTO wallet_external_ids SELECT tenant_id, user_id, user_id, '', now() FROM memberships "
    "WHERE tenant_id = $1",
    "INSERT INTO saml_configs VALUES ($1, '{}', '', now())",
    "INSERT INTO call_charges SELECT tenant_id, gen_random_uuid(), id, incarnation, gen_random_uuid(), 1, NULL, now() "
    "FROM agents WHERE tenant_id = $1",
    "INSERT INTO recipients SELECT tenant_id, id, incarnation, 'paid', 'x', '', now() FROM agents WHERE tenant_id = $1",
    "INSERT INTO breaker_marks SELECT tenant_id, id, incarnation, 'failed', gen_random_uuid(), now() FROM agents "
    "WHERE tenant_id = $1",
    "INSERT INTO saml_keys VALUES ($1, gen_random_uuid(), '', now())",
    "INSERT INTO saml_assertions_seen VALUES ($1, '', now() + interval '1 day')",
    "INSERT INTO sign_on_tests VALUES ($1, 'idp', '{}', now())",
    "INSERT INTO invitations (tenant_id, id, token_hash, email, role, status, created_at, expires_at, mac) VALUES ($1, "
    "gen_random_uuid(), uuid_send(gen_random_uuid()), 'a@b.c', 'viewer', 'pending', now(), now() + '1 day', '')",
)
SIGNERS_ACTIONS = (
    "tx.signed",
    "tx.approved",
    "policy.replaced",
    "policy_set.created",
    "key.made",
    "agent.created",
    "tenant.created",
    "secret.rotated",
    "credential_route.created",
    "payment_route.created",
    "signer.created",
    "wallet.created",
    "import.begun",
    "quorum.changed",
    "user.deactivated",
    "session.began",
    "membership.changed",
    "factor.enrolled",
    "passkey.added",
    "device.approved",
    "app_client.changed",
    "app_secret.made",
    "signing_key.made",
    "platform_key.made",
    "webhook.created",
    "channel.created",
    "audit.mended",
)


@pytest.fixture(scope="module")
def apart(postgres_home: places.Home, worker_id: str) -> Database:
    """A database of this file's own."""
    return database_apart(postgres_home, f"{worker_id}_roles")


@pytest.fixture(scope="module")
def tenants(apart: Database) -> Iterator[tuple[Tenant, Tenant]]:
    """Two tenants with something in every table that one act or another writes."""
    with deploy(apart) as service, new_tenant(service) as one, new_tenant(service) as other:
        for tenant in (one, other):
            _fill(service, tenant)
            # The log keeps subtrees of sixteen rows, and bounds of 512.
            asyncio.run(_write(apart, tenant, rows=512))
        seal(service)
        asyncio.run(_publish(apart))
        # The objects that those two take away are there again.
        for tenant in (one, other):
            assert tenant.agent().sign(value=1).status_code == 200
        yield one, other


@pytest.fixture
async def owner(apart: Database) -> AsyncIterator[asyncpg.Connection]:
    """The owner of the database."""
    async with owner_of(apart) as connection:
        yield connection


@pytest.fixture(params=ROLES)
async def process(request: pytest.FixtureRequest, apart: Database) -> AsyncIterator[asyncpg.Connection]:
    """Each process' own connection."""
    connection = await asyncpg.connect(apart.urls[request.param])
    yield connection
    await connection.close()


@pytest.fixture
async def tenant_connection(process: asyncpg.Connection) -> asyncpg.Connection:
    """Each process' connection with a tenant named, so that only grants can stand in the way."""
    await process.execute(_NAME_A_TENANT)
    return process


@pytest.fixture
async def api(apart: Database) -> AsyncIterator[asyncpg.Connection]:
    """The api's connection, with a tenant named."""
    connection = await asyncpg.connect(apart.urls["api"])
    await connection.execute(_NAME_A_TENANT)
    yield connection
    await connection.close()


async def test_every_table_is_known_here(owner: asyncpg.Connection) -> None:
    tables = await owner.fetch(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
    )

    assert {row[0] for row in tables} == {*TENANT_TABLES, *GLOBAL_TABLES}


async def test_no_process_owns_a_table_or_stands_above_row_level_security(owner: asyncpg.Connection) -> None:
    above = "SELECT rolname FROM pg_roles WHERE rolname ~ '^custody_' AND rolname <> 'custody_owner' AND "
    owned = "SELECT relname FROM pg_class WHERE relowner::regrole::text IN ('custody_api', 'custody_signer', "
    members = "SELECT * FROM pg_auth_members WHERE member::regrole::text IN ('custody_api', 'custody_signer', "

    assert (
        await owner.fetch(above + "(rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb OR rolreplication)") == []
    )
    assert (
        await owner.fetch(owned + "'custody_identity', 'custody_scheduler', 'custody_proxy', 'custody_definer')") == []
    )
    assert (
        await owner.fetch(members + "'custody_identity', 'custody_scheduler', 'custody_proxy', 'custody_definer')")
        == []
    )
    assert await owner.fetchval("SELECT rolcanlogin FROM pg_roles WHERE rolname = 'custody_definer'") is False


async def test_the_grants_are_exactly_those_of_the_page(owner: asyncpg.Connection) -> None:
    found = {
        (row["relname"], role): "".join(row["privileges"])
        for role in (*ROLES, "definer")
        for row in await owner.fetch(_PRIVILEGES, f"custody_{role}")
    }

    assert {cell: may for cell, may in found.items() if may} == _grants_on_the_page()


@pytest.mark.parametrize("role", ["api", "proxy"])
async def test_a_role_reads_exactly_the_columns_of_the_page(owner: asyncpg.Connection, role: str) -> None:
    found = await owner.fetch(_COLUMNS, f"custody_{role}")

    listed = {
        (table, column)
        for table, columns in re.findall(rf"^\| {role} \| `(\w+)` \| ((?:`\w+` ?)+) \|$", PAGE, re.M)
        for column in re.findall(r"\w+", columns)
    }
    assert {(row["relname"], row["attname"]) for row in found} == listed


async def test_functions_that_look_across_tenants_are_exactly_those_of_the_page(owner: asyncpg.Connection) -> None:
    rows = await owner.fetch("SELECT proname, proowner::regrole::text AS owner, proconfig FROM pg_proc WHERE prosecdef")

    assert {row["proname"] for row in rows} == set(
        re.findall(r"^\| `(\w+)` \| (?:api|signer|identity|scheduler|proxy|all|nobody)", PAGE, re.M)
    )
    assert {row["owner"] for row in rows} == {"custody_definer"}
    assert {tuple(row["proconfig"]) for row in rows} == {("search_path=public, pg_temp",)}


async def test_no_function_is_executable_by_public(owner: asyncpg.Connection) -> None:
    public = await owner.fetch(
        "SELECT proname FROM pg_proc p, aclexplode(COALESCE(proacl, acldefault('f', proowner))) a "
        "WHERE pronamespace = 'public'::regnamespace AND prokind = 'f' AND a.grantee = 0"
    )

    assert public == []


@pytest.mark.parametrize("table", JUDGED)
async def test_the_api_writes_nothing_that_is_judged(api: asyncpg.Connection, table: str) -> None:
    for statement in (f"INSERT INTO {table} DEFAULT VALUES", f"DELETE FROM {table}", f"TRUNCATE {table}"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await api.execute(statement)
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await api.execute(f"UPDATE {table} SET {await _first_column(api, table)} = NULL")


@pytest.mark.parametrize(
    "table", ["sealed", "platform_keys", "nonces", "rate", "credential_heads", "used_signatures", *PEOPLE]
)
async def test_the_api_does_not_even_read_what_it_need_not(api: asyncpg.Connection, table: str) -> None:
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await api.execute(f"SELECT FROM {table}")


@pytest.mark.parametrize("table", ["audit", "outbox", "events"])
async def test_appended_rows_cannot_be_changed(tenant_connection: asyncpg.Connection, table: str) -> None:
    for act in (f"INSERT INTO {table} DEFAULT VALUES", f"UPDATE {table} SET tenant_id = ''", f"DELETE FROM {table}"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await tenant_connection.execute(act)
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await tenant_connection.execute(f"TRUNCATE {table}")


async def test_no_role_changes_the_schema_or_the_clock(process: asyncpg.Connection) -> None:
    for statement in (
        "CREATE TABLE mine ()",
        "CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "DROP TABLE agents",
        "ALTER TABLE agents DISABLE ROW LEVEL SECURITY",
        "DROP POLICY own_tenant ON agents",
        "CREATE SCHEMA mine",
        "CREATE OR REPLACE FUNCTION service_now() RETURNS timestamptz LANGUAGE sql AS 'SELECT now()'",
        "SET ROLE custody_owner",
        "SET ROLE custody_definer",
        "SET SESSION AUTHORIZATION custody_owner",
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await process.execute(statement)


@pytest.mark.parametrize("name", ["api", "scheduler", "proxy"])
async def test_only_the_signer_tells_of_acts_and_emits_events(apart: Database, name: str) -> None:
    connection = await asyncpg.connect(apart.urls[name])
    try:
        await connection.execute(_NAME_A_TENANT)
        for statement in (
            "SELECT audit_append('system', 'me', 'page.seen', 'r', 'i', '{}', '{}')",
            "SELECT outbox_append(NULL, '[]')",
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(statement)
    finally:
        await connection.close()


@pytest.mark.parametrize("action", SIGNERS_ACTIONS)
async def test_other_roles_cannot_write_audit_actions_of_the_signer_even_with_a_grant(
    owner: asyncpg.Connection, action: str
) -> None:
    with pytest.raises(asyncpg.RaiseError, match="may not write the audit action"):
        await owner.execute(_APPEND, action)


async def test_an_audit_row_says_who_wrote_it(apart: Database, owner: asyncpg.Connection) -> None:
    connection = await asyncpg.connect(apart.urls["signer"])
    try:
        await connection.execute(_APPEND, "page.seen")
    finally:
        await connection.close()

    assert await owner.fetchval("SELECT written_by FROM audit WHERE action = 'page.seen'") == "custody_signer"


@pytest.mark.parametrize("table", TENANT_TABLES)
async def test_without_a_tenant_there_is_no_row(
    process: asyncpg.Connection, tenants: tuple[Tenant, Tenant], table: str
) -> None:
    with pytest.raises((asyncpg.UndefinedObjectError, asyncpg.InsufficientPrivilegeError)):
        await process.fetch(f"SELECT * FROM {table}")
    # After a transaction that had a tenant the setting is empty instead of unset.
    await process.execute("SELECT set_config('custody.tenant', 'somebody', true)")
    if "r" in await _may(process, table):
        assert await process.fetch(f"SELECT * FROM {table}") == []


@pytest.mark.parametrize("table", TENANT_TABLES)
async def test_no_row_of_another_tenant_is_visible_or_writable(
    process: asyncpg.Connection, owner: asyncpg.Connection, tenants: tuple[Tenant, Tenant], table: str
) -> None:
    one, other = tenants
    column = "id" if table == "tenants" else "tenant_id"
    count = f"SELECT count(*) FROM {table} WHERE {column} = $1"
    assert await owner.fetchval(count, one.id) > 0
    assert await owner.fetchval(count, other.id) > 0
    may = await _may(process, table)

    async with process.transaction():
        await process.execute("SELECT set_config('custody.tenant', $1, true)", one.id)
        if "r" in may:
            assert {row[0] for row in await process.fetch(f"SELECT DISTINCT {column} FROM {table}")} == {one.id}
        if "w" in may:
            assert (
                await process.execute(f"UPDATE {table} SET {column} = {column} WHERE {column} = $1", other.id)
                == "UPDATE 0"
            )
        if "d" in may:
            assert await process.execute(f"DELETE FROM {table} WHERE {column} = $1", other.id) == "DELETE 0"
    if "w" in may:
        await _cannot_move_a_row(process, table, column, one, other)


async def test_every_tenant_table_has_row_level_security_for_every_process(owner: asyncpg.Connection) -> None:
    rows = await owner.fetch(
        "SELECT c.relname, c.relrowsecurity, p.polroles::regrole[]::text[] AS roles, p.polcmd, "
        "pg_get_expr(p.polqual, p.polrelid) AS rule FROM pg_class c JOIN pg_policy p ON p.polrelid = c.oid "
        "WHERE p.polname = 'own_tenant'"
    )

    assert {row["relname"] for row in rows} == set(TENANT_TABLES)
    for row in rows:
        assert row["relrowsecurity"]
        # Identity has policies of its own, on the tables that it may see at all.
        assert set(row["roles"]) == {f"custody_{role}" for role in ROLES if role != "identity"}
        assert row["polcmd"] == b"*"
        assert re.fullmatch(r"\((tenant_id|id) = current_setting\('custody.tenant'::text\)\)", row["rule"])


async def test_every_key_of_a_tenant_table_starts_with_the_tenant(owner: asyncpg.Connection) -> None:
    keys = await owner.fetch(
        "SELECT c.conrelid::regclass::text AS name, c.contype, a.attname FROM pg_constraint c "
        "JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1] "
        "WHERE c.contype IN ('p', 'f') AND c.connamespace = 'public'::regnamespace"
    )

    first = {(row["name"], row["attname"]) for row in keys if row["name"] not in GLOBAL_TABLES}
    assert {name for name, column in first if column == "tenant_id"} == {*TENANT_TABLES} - {"tenants"}
    # What the operator sent belongs to no tenant, so its foreign key is a column that is null for it; a person belongs
    # to none either.
    assert {cell for cell in first if cell[1] != "tenant_id"} == {
        ("tenants", "id"),
        ("idempotency", "tenant_row"),
        ("used_signatures", "tenant_row"),
        ("memberships", "user_id"),
        ("wallet_external_ids", "user_id"),
        ("identity_sealed", "user_id"),
    }


_NAME_A_TENANT = "SELECT set_config('custody.tenant', 'nobody', false)"
_APPEND = "SELECT set_config('custody.tenant', 'nobody', true), audit_append('system', 'me', $1, 'r', 'i', '{}', '{}')"
_PRIVILEGES = """
SELECT relname, ARRAY(
    SELECT word FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER'],
                            ARRAY['r', 'a', 'u', 'd', 'T', 'R', 't']) AS p (privilege, word)
     WHERE has_table_privilege($1, oid, privilege)) AS privileges
  FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
   AND relname NOT IN ('tortoise_migrations', 'applied_sql')"""

_COLUMNS = """
SELECT relname, attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
 WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
   AND NOT has_table_privilege($1, c.oid, 'SELECT')
   AND (has_column_privilege($1, c.oid, attnum, 'SELECT')
     OR has_column_privilege($1, c.oid, attnum, 'INSERT, UPDATE, REFERENCES'))"""


def _grants_on_the_page() -> dict[tuple[str, str], str]:
    words = {
        "R": "r",
        "W": "raud",
        "W, no deleting": "rau",
        "appends": "a",
        "R, appends": "ra",
        "R, deletes": "rd",
        "R, appends, deletes": "rad",
        "some columns": "",
        "": "",
    }
    cells = {}
    for line in re.findall(r"^\| `\w+` (?:\|[^|\n]*){5}\|$", PAGE, re.M):
        table, *may = (cell.strip() for cell in line.strip("|").split("|"))
        for role, word in zip(("api", "signer", "identity", "scheduler", "definer"), may, strict=True):
            # Single columns that may be updated stand behind; they are no grant on the table.
            cells[(table.strip("`"), role)] = words[re.sub(r"(?:, and|,) `.*", "", word)]
    return {cell: may for cell, may in cells.items() if may}


async def _may(process: asyncpg.Connection, table: str) -> str:
    may = await process.fetchrow(
        "SELECT has_table_privilege($1, 'SELECT'), has_table_privilege($1, 'UPDATE'), "
        "has_table_privilege($1, 'DELETE')",
        table,
    )
    return "".join(letter for letter, held in zip("rwd", may, strict=True) if held)


async def _cannot_move_a_row(process: asyncpg.Connection, table: str, column: str, one: Tenant, other: Tenant) -> None:
    await process.execute("SELECT set_config('custody.tenant', $1, false)", one.id)
    with pytest.raises((asyncpg.InsufficientPrivilegeError, asyncpg.GeneratedAlwaysError)):
        await process.execute(f"UPDATE {table} SET {column} = $1", other.id)


async def _first_column(connection: asyncpg.Connection, table: str) -> str:
    return await connection.fetchval(
        "SELECT attname FROM pg_attribute WHERE attrelid = $1::regclass AND attnum = 1", table
    )


async def _write(database: Database, tenant: Tenant, rows: int) -> None:
    async with owner_of(database) as owner, owner.transaction():
        await owner.execute("SELECT set_config('custody.tenant', $1, true)", tenant.id)
        await owner.execute(
            "SELECT audit_append('system', 'me', 'test.made', 'thing', 'one', '{}', '{}') FROM generate_series(1, $1)",
            rows,
        )
        for statement in SIGN_ON:
            await owner.execute(statement, tenant.id)


async def _publish(database: Database) -> None:
    connection = await asyncpg.connect(database.urls["scheduler"])
    assert await connection.fetchval("SELECT publish_events(100)") > 0
    await connection.close()


def _fill(service: Service, tenant: Tenant) -> None:
    tenant.ok("PUT", f"/tenants/{tenant.id}/config", tenant.ok("GET", f"/tenants/{tenant.id}/config"))
    together = {"name": "All", "policies": [rule("spending-limit", maxPerDay="1000000", scope="set")]}
    done_as_tenant(service, tenant.key, "ReplacePolicySet", {"policy_set": "tenant"} | together)
    agent = tenant.agent(rule("spending-limit", maxPerDay="10"), rule("auto-approve-threshold", threshold="5"))
    assert agent.sign(value=1, key="a key of mine").status_code == 200
    assert agent.sign(value=6).status_code == 202
    assert agent.sign(value=11).status_code == 403
    tenant.ok("DELETE", f"/agents/{tenant.agent().id}")
    secret = done_as_tenant(service, tenant.key, "CreateSecret", {"name": "openai", "value": "a value"})["id"]
    fields = {"hostPattern": "api.example.com", "injectAs": "header", "injectKey": "authorization"}
    done_as_tenant(service, tenant.key, "CreateCredentialRoute", {"secret": secret, "fields": fields})
    paid = {"hostPattern": "api.example.com", "maxPerCall": {f"evm:1:0x{'0a' * 20}": "1"}}
    done_as_tenant(service, tenant.key, "CreatePaymentRoute", {"fields": paid})
    with closing(member(service, tenant, "owner", mfa=True)) as person:
        _administer(person, f"/tenants/{tenant.id}", tenant)
        new_quorum(person, agent, [new_signer(person, agent)["id"]], threshold=1)
        vote_on_something(service, tenant, person)
        person.ok("POST", f"/vault/{agent.id}/import/init", {"chain": "evm"})
        payer = with_signer(person, tenant.agent(LISTED), "sign_transaction")
        assert sign_psbt(payer, payment(payer, 10_000)).status_code == 200
        person.ok("POST", "/accounts", {"id": "mine", "wallet_ids": [agent.id]})
        person.ok("POST", "/accounts/mine/aggregations", {})
        person.ok("POST", "/intents", {"intentType": "rpc", "payload": {"method": "eth_chainId", "chainId": EVM_CHAIN}})


def _administer(person: Person, path: str, tenant: Tenant) -> None:
    person.ok("POST", f"{path}/app-clients", {"id": "web", "name": "Web"})
    person.ok("POST", f"{path}/app-clients/web/secrets", {})
    person.ok("POST", f"{path}/sso-domains", {"domain": "example.com"})
    key, content = person.ok("POST", f"{path}/request-signing-keys", {})["signingSecret"], b'{"id":"signed","name":"S"}'
    said = canonical("POST", "/agents", tenant.id, None, None, "a signed request", content)
    headers = {
        "Content-Type": "application/json",
        "Idempotency-Key": "a signed request",
        "X-Service-Signature": f"v1={hmac.digest(key.encode(), said, 'sha256').hex()}",
    }
    assert tenant.post("/agents", content=content, headers=headers).status_code == 201
    person.ok("PUT", f"{path}/oidc-providers", {"providers": [OIDC_PROVIDER]})
    webhook = person.ok("POST", "/webhooks", {"url": "http://127.0.0.1:9/"})["id"]
    person.ok("POST", f"/webhooks/{webhook}/test")
    topic = {"kind": "ntfy", "target": "http://127.0.0.1:9/topic"}
    channel = person.ok("POST", "/notification-channels", topic)["id"]
    person.ok("POST", f"/notification-channels/{channel}/test")
    # What a process has counted of keys is written before its figures are shown.
    assert person.ok("GET", f"{path}/idempotency-metrics")["counters"]["observed"] > 0
