"""Queries of e-mail domains. The scheduler's looks across tenants, through a listed function."""

from typing import Any

from custody.kit.db import Pool, tenant_scope
from custody.kit.paging import Listed, Page, cut
from custody.protocol.identity.domains import SsoDomain
from custody.protocol.identity.refusals import SsoDomainAbsent

_DOMAINS = """
SELECT domain, sso_required, token, verified_at, checked_at, missing_since, created_at,
       EXISTS (SELECT FROM saml_configs WHERE tenant_id = $1 AND document::jsonb @> '{"enabled": true}')
         OR EXISTS (SELECT FROM oidc_providers WHERE tenant_id = $1 AND document::jsonb @> '{"enabled": true}')
         AS provided
  FROM sso_domains WHERE tenant_id = $1 ORDER BY created_at DESC, domain
"""
_HAS = "SELECT EXISTS (SELECT FROM sso_domains WHERE tenant_id = $1 AND domain = $2)"
_CLAIM = "SELECT * FROM claim_sso_domains($1, $2, $3)"


async def domains(pool: Pool, tenant: str, page: Page) -> Listed[SsoDomain]:
    """A tenant's domains, the newest first; it has few."""
    async with tenant_scope(pool, tenant) as connection:
        rows = await connection.fetch(_DOMAINS, tenant)
    found = [
        SsoDomain.of(
            row["domain"],
            sso_required=row["sso_required"],
            token=row["token"],
            created_at=row["created_at"],
            verified_at=row["verified_at"],
            checked_at=row["checked_at"],
            missing_since=row["missing_since"],
            provided=row["provided"],
        )
        for row in rows
    ]
    return cut(found, page)


async def demand_domain(pool: Pool, tenant: str, domain: str) -> None:
    """Raise SsoDomainAbsent unless the tenant has the domain, proven or not."""
    async with tenant_scope(pool, tenant) as connection:
        if not await connection.fetchval(_HAS, tenant, domain):
            raise SsoDomainAbsent


async def claim(pool: Pool, limit: int, of_tenant: int, seconds: int) -> list[Any]:
    """Domains of any tenant whose record is to be looked at; nobody else looks for so many seconds."""
    rows: list[Any] = await pool.fetch(_CLAIM, limit, of_tenant, seconds)
    return rows
