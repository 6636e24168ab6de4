"""Queries that find a credential by the digest of its secret, across tenants: the credential says whose it is."""

from datetime import datetime

import msgspec

from custody.kit.db import Pool


class TenantKey(msgspec.Struct, frozen=True):
    """A tenant's API key that works."""

    tenant: str
    id: str
    prefix: str
    name: str | None
    retires_at: datetime | None


class AppSecret(msgspec.Struct, frozen=True):
    """A secret of an app client that still works, with what the signer wrote about both."""

    tenant: str
    client: str
    enabled: bool
    document: str
    mac: bytes
    client_mac: bytes
    prefix: str
    retires_at: datetime | None


class PlatformKey(msgspec.Struct, frozen=True):
    """A key of the operator; without scopes it may do everything."""

    prefix: str
    scopes: list[str] | None


async def tenant_key(pool: Pool, digest: bytes) -> TenantKey | None:
    """The key with this digest."""
    row = await pool.fetchrow("SELECT * FROM find_tenant_key($1)", digest)
    if row is None:
        return None
    return TenantKey(row["tenant_id"], str(row["id"]), row["prefix"], row["name"], row["retires_at"])


async def app_secret(pool: Pool, digest: bytes) -> AppSecret | None:
    """The secret with this digest."""
    row = await pool.fetchrow("SELECT * FROM find_app_secret($1)", digest)
    if row is None:
        return None
    return AppSecret(
        row["tenant_id"],
        row["client_id"],
        row["enabled"],
        row["document"],
        row["mac"],
        row["client_mac"],
        row["prefix"],
        row["retires_at"],
    )


async def platform_key(pool: Pool, digest: bytes) -> PlatformKey | None:
    """The key with this digest."""
    row = await pool.fetchrow("SELECT prefix, scopes FROM find_platform_key($1)", digest)
    return None if row is None else PlatformKey(row["prefix"], row["scopes"])
