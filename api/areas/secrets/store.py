"""Queries of secrets and credential routes. The sealed values are out of this process' reach."""

import asyncio
from datetime import datetime
from typing import Any

import msgspec

from api.areas.secrets.types import CallableApi
from custody.credentials import types as credentials
from custody.credentials.payment_routes import PaymentRouteFields
from custody.kit import clock
from custody.kit.db import Pool, tenant_scope
from custody.kit.paging import AROUND, Listed, Page, fitting, page_of, reach
from custody.kit.refs import AgentRef
from custody.protocol.signer.order_refusals import AgentAbsent
from custody.protocol.signer.payment_routes import PaymentRoute
from custody.protocol.signer.refusals import CredentialRouteAbsent, PaymentRouteAbsent, SecretAbsent
from custody.protocol.signer.secrets import CredentialRoute, Secret

_READ = "SELECT id, name, description, version, expires_at, created_at, rotated_at FROM secrets"
_ORDER = "created_at DESC, id"
_PAGE = f"ORDER BY {_ORDER} LIMIT $2 OFFSET $3"
_ROUTES = "SELECT id, secret_id, fields, created_at FROM credential_routes WHERE tenant_id = $1"
_PAYMENT_ROUTES = "SELECT id, fields, created_at FROM payment_routes WHERE tenant_id = $1"
_LIVING = "WHERE tenant_id = $1 AND deleted_at IS NULL"
_STANDING = """
SELECT a.frozen_at IS NOT NULL AS agent_frozen, t.frozen_at IS NOT NULL AS tenant_frozen
  FROM agents a JOIN tenants t ON t.id = a.tenant_id WHERE a.tenant_id = $1 AND a.id = $2
"""
# In the order in which the proxy tries them.
_TRIED = """
SELECT r.id, r.secret_id, r.fields, r.created_at, s.name, s.version,
       CASE WHEN s.deleted_at IS NOT NULL THEN 'deleted' WHEN s.expires_at <= service_now() THEN 'expired' END AS lost
  FROM credential_routes r LEFT JOIN secrets s ON s.tenant_id = r.tenant_id AND s.id = r.secret_id
 WHERE r.tenant_id = $1 ORDER BY r.priority DESC, r.created_at, r.id
"""
# What an agent's requests can fall to now. A further secret counts as the first one does: without it nothing goes out.
_OF_AGENT = """
FROM credential_routes r LEFT JOIN secrets s ON s.tenant_id = r.tenant_id AND s.id = r.secret_id,
     (SELECT service_now() AS now OFFSET 0) clock
WHERE r.tenant_id = $1 AND COALESCE((r.fields::jsonb->>'enabled')::boolean, true)
  AND (COALESCE(r.fields::jsonb->'agents', '[]') = '[]' OR r.fields::jsonb->'agents' ? $2)
  AND s.deleted_at IS NULL AND (s.expires_at IS NULL OR s.expires_at > clock.now)
  AND NOT EXISTS (
    SELECT FROM jsonb_array_elements(COALESCE(r.fields::jsonb->'alsoInject', '[]')) also
      LEFT JOIN secrets o ON o.tenant_id = r.tenant_id AND o.id = (also->>'secretId')::uuid
     WHERE o.id IS NULL OR o.deleted_at IS NOT NULL OR o.expires_at <= clock.now)
"""
# Whether demands to pay may be paid there; how much and to whom is between the route and the signer.
_PAYS = """
EXISTS (SELECT FROM payment_routes p
         WHERE p.tenant_id = r.tenant_id AND COALESCE((p.fields::jsonb->>'enabled')::boolean, true)
           AND (COALESCE(p.fields::jsonb->'agents', '[]') = '[]' OR p.fields::jsonb->'agents' ? $2)
           AND p.fields::jsonb->>'hostPattern' = r.fields::jsonb->>'hostPattern'
           AND (COALESCE(p.fields::jsonb->>'method', '*') IN ('*', r.fields::jsonb->>'method')
                OR COALESCE(r.fields::jsonb->>'method', '*') = '*'))
"""
_APIS_ORDER = "priority DESC, created_at, id"
_fields = msgspec.json.Decoder(credentials.RouteFields).decode
_payment_fields = msgspec.json.Decoder(PaymentRouteFields).decode


class Candidates(msgspec.Struct, frozen=True):
    """The basis to decide an agent's request: whether it may ask at all, and the routes in the order of their trial."""

    agent_frozen: bool
    tenant_frozen: bool
    routes: list[credentials.CredentialRoute]
    created_at: dict[str, datetime]

    def to_public(self, route: credentials.CredentialRoute) -> CredentialRoute:
        """One of the routes as callers see it."""
        return _to_public(route.id, route.secret_id, route.fields, self.created_at[route.id])


async def get(pool: Pool, tenant: str, secret: str) -> Secret:
    """One secret; SecretAbsent if there is none, or none any more."""
    async with tenant_scope(pool, tenant) as connection:
        row = await connection.fetchrow(f"{_READ} {_LIVING} AND id = $2", tenant, secret)
    if row is None:
        raise SecretAbsent
    return _secret(row)


async def all_of(pool: Pool, tenant: str, page: Page) -> Listed[Secret]:
    """A tenant's secrets, newest first."""
    async with tenant_scope(pool, tenant) as connection:
        rows = await connection.fetch(fitting(f"{_READ} {_LIVING} {_PAGE}", _ORDER), tenant, page.limit, page.offset)
        to_count = reach(page.offset, page.limit)
        total = to_count.total(await connection.fetchval(to_count.query(f"FROM secrets {_LIVING}"), tenant))
    return page_of([_secret(row) for row in rows], total)


async def routes_of(pool: Pool, tenant: str, page: Page) -> Listed[CredentialRoute]:
    """A tenant's credential routes, newest first, also those whose secret is gone."""
    async with tenant_scope(pool, tenant) as connection:
        rows = await connection.fetch(
            fitting(f"{_ROUTES} {_PAGE}", _ORDER, f"octet_length(fields) + {AROUND}"),
            tenant,
            page.limit,
            page.offset,
        )
        to_count = reach(page.offset, page.limit)
        counted = to_count.query("FROM credential_routes WHERE tenant_id = $1")
        total = to_count.total(await connection.fetchval(counted, tenant))
    shown = [
        _to_public(str(row["id"]), _id(row["secret_id"]), _fields(row["fields"]), row["created_at"]) for row in rows
    ]
    return page_of(shown, total)


async def route(pool: Pool, tenant: str, route_id: str) -> CredentialRoute:
    """One credential route; CredentialRouteAbsent if there is none."""
    async with tenant_scope(pool, tenant) as connection:
        row = await connection.fetchrow(
            f"{_ROUTES} AND id = $2",
            tenant,
            route_id,
        )
    if row is None:
        raise CredentialRouteAbsent
    return _to_public(str(row["id"]), _id(row["secret_id"]), _fields(row["fields"]), row["created_at"])


async def payment_routes_of(pool: Pool, tenant: str, page: Page) -> Listed[PaymentRoute]:
    """A tenant's payment routes, newest first."""
    async with tenant_scope(pool, tenant) as connection:
        rows = await connection.fetch(
            fitting(f"{_PAYMENT_ROUTES} {_PAGE}", _ORDER, f"octet_length(fields) + {AROUND}"),
            tenant,
            page.limit,
            page.offset,
        )
        to_count = reach(page.offset, page.limit)
        counted = to_count.query("FROM payment_routes WHERE tenant_id = $1")
        total = to_count.total(await connection.fetchval(counted, tenant))
    return page_of([_payment_route(row) for row in rows], total)


async def payment_route(pool: Pool, tenant: str, route_id: str) -> PaymentRoute:
    """One payment route; PaymentRouteAbsent if there is none."""
    async with tenant_scope(pool, tenant) as connection:
        row = await connection.fetchrow(f"{_PAYMENT_ROUTES} AND id = $2", tenant, route_id)
    if row is None:
        raise PaymentRouteAbsent
    return _payment_route(row)


async def candidates(pool: Pool, ref: AgentRef) -> Candidates:
    """Read what the proxy knows when this agent asks; AgentAbsent if there is none."""
    async with tenant_scope(pool, ref.tenant) as connection:
        standing = await connection.fetchrow(_STANDING, ref.tenant, ref.agent)
        if standing is None:
            raise AgentAbsent
        rows = await connection.fetch(_TRIED, ref.tenant)
    # A tenant may have 10,000 routes; others must not wait while they are read.
    return await asyncio.to_thread(_candidates, standing, rows)


async def apis_of(pool: Pool, ref: AgentRef, page: Page) -> Listed[CallableApi]:
    """The APIs that an agent may call, in the order in which a request falls to them; AgentAbsent if there is none."""
    columns = f"r.id, r.priority, r.created_at, r.fields, {_PAYS} AS pays"
    listed = f"SELECT {columns} {_OF_AGENT} ORDER BY r.priority DESC, r.created_at, r.id"
    async with tenant_scope(pool, ref.tenant) as connection:
        standing = await connection.fetchrow(_STANDING, ref.tenant, ref.agent)
        if standing is None:
            raise AgentAbsent
        by_size = fitting(f"{listed} LIMIT $3 OFFSET $4", _APIS_ORDER, f"octet_length(fields) + {AROUND}")
        rows = await connection.fetch(by_size, ref.tenant, ref.agent, page.limit, page.offset)
        to_count = reach(page.offset, page.limit)
        total = to_count.total(await connection.fetchval(to_count.query(_OF_AGENT), ref.tenant, ref.agent))
    enabled = not (standing["agent_frozen"] or standing["tenant_frozen"])
    return page_of([_api(_fields(row["fields"]), enabled=enabled, pays=row["pays"]) for row in rows], total)


def _api(fields: credentials.RouteFields, *, enabled: bool, pays: bool) -> CallableApi:
    """One of them, without anything of a secret."""
    return CallableApi(
        host_pattern=fields.host_pattern,
        path_pattern=fields.path_pattern,
        method=fields.method,
        enabled=enabled,
        cost_micro_usd=fields.cost_micro_usd,
        max_micro_usd=fields.max_micro_usd,
        pays=pays,
    )


def _id(found: Any) -> str | None:
    return None if found is None else str(found)


def _secret(row: Any) -> Secret:
    return Secret(
        id=str(row["id"]),
        name=row["name"],
        description=row["description"],
        version=row["version"],
        expires_at=clock.iso(row["expires_at"]) if row["expires_at"] else None,
        created_at=clock.iso(row["created_at"]),
        rotated_at=clock.iso(row["rotated_at"]) if row["rotated_at"] else None,
    )


def _candidates(standing: Any, rows: list[Any]) -> Candidates:
    return Candidates(
        agent_frozen=standing["agent_frozen"],
        tenant_frozen=standing["tenant_frozen"],
        routes=[_candidate(row) for row in rows],
        created_at={str(row["id"]): row["created_at"] for row in rows},
    )


def _candidate(row: Any) -> credentials.CredentialRoute:
    return credentials.CredentialRoute(
        id=str(row["id"]),
        secret_id=_id(row["secret_id"]),
        fields=_fields(row["fields"]),
        secret_name=row["name"] or "",
        secret_version=row["version"] or 0,
        secret_lost=row["lost"],
    )


def _payment_route(row: Any) -> PaymentRoute:
    said = msgspec.structs.asdict(_payment_fields(row["fields"]))
    return PaymentRoute(id=str(row["id"]), created_at=clock.iso(row["created_at"]), **said)


def _to_public(
    route: str, secret: str | None, fields: credentials.RouteFields, created_at: datetime
) -> CredentialRoute:
    return CredentialRoute(
        id=route,
        secret_id=secret,
        host_pattern=fields.host_pattern,
        path_pattern=fields.path_pattern,
        method=fields.method,
        inject_as=fields.inject_as,
        inject_key=fields.inject_key,
        inject_format=fields.inject_format,
        priority=fields.priority,
        enabled=fields.enabled,
        agents=fields.agents,
        also_inject=fields.also_inject,
        keep_authorization=fields.keep_authorization,
        exchange=fields.exchange,
        ranges=fields.ranges,
        cost_micro_usd=fields.cost_micro_usd,
        max_micro_usd=fields.max_micro_usd,
        usage=fields.usage,
        created_at=clock.iso(created_at),
    )
