"""Queries of tenants. What looks across tenants goes through the listed SECURITY DEFINER functions."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from api.areas.tenants.credential_types import StoredAppClient, status_of
from custody.identity.app_clients import AppClient
from custody.kit import clock
from custody.kit.db import Connection, Pool, tenant_scope
from custody.kit.paging import AROUND, Listed, Page, Total, fitting, page_of, reach
from custody.protocol.identity.api_keys import ApiKey
from custody.protocol.identity.credentials import AppSecret, SigningKey
from custody.protocol.identity.refusals import AppClientAbsent
from custody.protocol.refusals import TenantAbsent
from custody.tenants.types import FLAGS, Member, PresentAuthAbuseConfig, Stats, Tenant, TenantConfig, TenantConfigBody

_CONFIG = (
    "SELECT c.document, c.judging, (SELECT array_agg(a.document ORDER BY a.created_at DESC, a.id) FROM app_clients a "
    "WHERE a.tenant_id = $1) AS clients FROM (VALUES ($1)) AS t (id) LEFT JOIN tenant_config c ON c.tenant_id = t.id"
)
_CLIENTS = fitting(
    "SELECT id, document, created_at, updated_at FROM app_clients WHERE tenant_id = $1 ORDER BY created_at DESC, id "
    "LIMIT $2 OFFSET $3",
    "created_at DESC, id",
    f"octet_length(document) + {AROUND}",
)
_HAS_TENANT = "SELECT EXISTS (SELECT FROM tenants WHERE id = $1)"
_HAS_CLIENT = "SELECT EXISTS (SELECT FROM app_clients WHERE tenant_id = $1 AND id = $2)"
_SECRETS = (
    "SELECT id, prefix, created_at, retires_at, revoked_at FROM app_secrets WHERE tenant_id = $1 AND client_id = $2 "
    "ORDER BY created_at DESC, id LIMIT $3 OFFSET $4"
)
_OF_CLIENT = "FROM app_secrets WHERE tenant_id = $1 AND client_id = $2"
_KEYS = (
    "SELECT id, prefix, created_at, retires_at, revoked_at FROM signing_keys WHERE tenant_id = $1 "
    "ORDER BY created_at DESC, id LIMIT $2 OFFSET $3"
)
_API_KEYS = (
    "SELECT id, name, prefix, created_at, retires_at, revoked_at, last_used_at FROM tenant_keys WHERE tenant_id = $1 "
    "ORDER BY created_at DESC, id LIMIT $2 OFFSET $3"
)
_MEMBERS = (
    "SELECT m.user_id, m.role, m.created_at, p.email, p.email_verified, p.wallet "
    "FROM memberships m, user_profile(m.user_id) p WHERE m.tenant_id = $1 "
    "ORDER BY m.created_at DESC, m.user_id LIMIT $2 OFFSET $3"
)


async def get(pool: Pool, tenant: str) -> Tenant:
    """The caller's own tenant."""
    async with tenant_scope(pool, tenant) as connection:
        row = await connection.fetchrow("SELECT id, name, created_at, frozen_at FROM tenants WHERE id = $1", tenant)
    if row is None:
        raise TenantAbsent
    return Tenant(
        row["id"], row["name"], clock.iso(row["created_at"]), clock.iso(row["frozen_at"]) if row["frozen_at"] else None
    )


async def get_config(pool: Pool, tenant: str, presets: Mapping[str, str]) -> TenantConfig:
    """The configuration as it is read: what was saved, else the tenant's preset, over the defaults (every flag on)."""
    async with tenant_scope(pool, tenant) as connection:
        row = await connection.fetchrow(_CONFIG, tenant)
    return shown_config(tenant, row["document"] or presets.get(tenant), row["judging"], row["clients"] or ())


def shown_config(tenant: str, text: str | None, judging: str | None, clients: Iterable[str]) -> TenantConfig:
    """A configuration as it is read, from the documents of which it consists; None where nothing was saved."""
    saved = msgspec.json.decode(text, type=TenantConfigBody) if text else TenantConfigBody()
    auth = msgspec.json.decode(judging, type=PresentAuthAbuseConfig) if judging else None
    return TenantConfig(
        tenant_id=tenant,
        display_name=saved.display_name,
        policy_exposure=saved.policy_exposure,
        policy_templates=saved.policy_templates,
        secret_route_presets=saved.secret_route_presets,
        approval_config=saved.approval_config,
        feature_flags=dict.fromkeys(FLAGS, True) | saved.feature_flags,
        theme=saved.theme,
        auth_abuse_config=auth or PresentAuthAbuseConfig(),
        app_clients=tuple(msgspec.json.decode(client, type=AppClient) for client in clients),
    )


async def app_clients(pool: Pool, tenant: str, page: Page) -> Listed[StoredAppClient]:
    """A tenant's app clients, the newest first."""
    async with tenant_scope(pool, tenant) as connection:
        rows = await connection.fetch(_CLIENTS, tenant, page.limit, page.offset)
        total = await _total(connection, page, "FROM app_clients WHERE tenant_id = $1", tenant)
    found = [
        StoredAppClient.of(
            tenant,
            msgspec.json.decode(row["document"], type=AppClient),
            clock.iso(row["created_at"]),
            clock.iso(row["updated_at"]),
        )
        for row in rows
    ]
    return page_of(found, total)


async def app_secrets(pool: Pool, tenant: str, client: str, page: Page) -> Listed[AppSecret]:
    """List an app client's secrets, the newest first; AppClientAbsent if there is no such client."""
    async with tenant_scope(pool, tenant) as connection:
        rows = await connection.fetch(_SECRETS, tenant, client, page.limit, page.offset)
        total = await _total(connection, page, _OF_CLIENT, tenant, client)
        if not total.rows and not await connection.fetchval(_HAS_CLIENT, tenant, client):
            raise AppClientAbsent
    return page_of([AppSecret(app_id=f"{tenant}/{client}", **_life(row)) for row in rows], total)


async def signing_keys(pool: Pool, tenant: str, page: Page) -> Listed[SigningKey]:
    """List a tenant's request-signing keys, the newest first."""
    async with tenant_scope(pool, tenant) as connection:
        rows = await connection.fetch(_KEYS, tenant, page.limit, page.offset)
        total = await _total(connection, page, "FROM signing_keys WHERE tenant_id = $1", tenant)
    return page_of([SigningKey(**_life(row)) for row in rows], total)


async def api_keys(pool: Pool, tenant: str, page: Page) -> Listed[ApiKey]:
    """List a tenant's API keys, the newest first; TenantAbsent if there is no such tenant."""
    async with tenant_scope(pool, tenant) as connection:
        rows = await connection.fetch(_API_KEYS, tenant, page.limit, page.offset)
        total = await _total(connection, page, "FROM tenant_keys WHERE tenant_id = $1", tenant)
        if not total.rows and not await connection.fetchval(_HAS_TENANT, tenant):
            raise TenantAbsent
    return page_of([_api_key(row) for row in rows], total)


def _api_key(row: Any) -> ApiKey:
    used = row["last_used_at"]
    return ApiKey(name=row["name"], last_used_at=clock.iso(used) if used else None, **_life(row))


async def members(pool: Pool, tenant: str, page: Page) -> Listed[Member]:
    """A tenant's members, the newest first; TenantAbsent if there is no such tenant."""
    async with tenant_scope(pool, tenant) as connection:
        rows = await connection.fetch(_MEMBERS, tenant, page.limit, page.offset)
        total = await _total(connection, page, "FROM memberships WHERE tenant_id = $1", tenant)
        if not total.rows and not await connection.fetchval(_HAS_TENANT, tenant):
            raise TenantAbsent
    found = [
        Member(
            user_id=str(row["user_id"]),
            role=row["role"],
            email=row["email"],
            email_verified=row["email_verified"],
            wallet_address=row["wallet"],
            created_at=clock.iso(row["created_at"]),
        )
        for row in rows
    ]
    return page_of(found, total)


async def _total(connection: Connection, page: Page, rows_of: str, *arguments: str) -> Total:
    to_count = reach(page.offset, page.limit)
    return to_count.total(await connection.fetchval(to_count.query(rows_of), *arguments))


def _life(row: Any) -> dict[str, Any]:
    retires_at, revoked_at = row["retires_at"], row["revoked_at"]
    return {
        "id": str(row["id"]),
        "prefix": row["prefix"],
        "status": status_of(retires_at, revoked_at, clock.now()),
        "created_at": clock.iso(row["created_at"]),
        "retires_at": clock.iso(retires_at) if retires_at else None,
    }


async def platform_get(pool: Pool, tenant: str) -> Tenant:
    """Any tenant, with the number of its agents."""
    row = await pool.fetchrow("SELECT * FROM platform_tenant($1)", tenant)
    if row is None:
        raise TenantAbsent
    frozen = clock.iso(row["frozen_at"]) if row["frozen_at"] else None
    return Tenant(row["id"], row["name"], clock.iso(row["created_at"]), frozen, row["agent_count"])


async def platform_all(pool: Pool, page: Page) -> Listed[Tenant]:
    """Every tenant, newest first."""
    to_count = reach(page.offset, page.limit)
    rows = await pool.fetch("SELECT * FROM platform_tenants($1, $2, $3)", page.limit, page.offset, to_count.most + 1)
    found = [
        Tenant(
            row["id"],
            row["name"],
            clock.iso(row["created_at"]),
            clock.iso(row["frozen_at"]) if row["frozen_at"] else None,
        )
        for row in rows
    ]
    total = to_count.total(rows[0]["total"]) if rows else Total((await platform_stats(pool)).tenants)
    return page_of(found, total)


async def platform_stats(pool: Pool) -> Stats:
    """The whole deployment in three figures."""
    row = await pool.fetchrow("SELECT * FROM platform_stats()")
    return Stats(row["tenants"], row["agents"], row["transactions"])


async def usage(pool: Pool, tenant: str) -> Any:
    """Read a tenant's use of each quota; TenantAbsent if there is no such tenant."""
    async with tenant_scope(pool, tenant) as connection:
        if not await connection.fetchval(_HAS_TENANT, tenant):
            raise TenantAbsent
        return await connection.fetchrow("SELECT * FROM usage_read($1)", tenant)
