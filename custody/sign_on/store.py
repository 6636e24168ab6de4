"""Queries about a tenant's identity providers."""

from datetime import datetime
from typing import NamedTuple

import msgspec

from custody.kit import clock
from custody.kit.db import Pool, tenant_scope
from custody.protocol.identity.sign_on import SamlKey, Tried
from custody.sign_on.try_types import LastTest

_SAML_KEYS = (
    "SELECT id, certificate, created_at, ends_at FROM saml_keys WHERE tenant_id = $1 "
    "AND (ends_at IS NULL OR ends_at > service_now()) ORDER BY created_at DESC, id"
)


class StoredSaml(NamedTuple):
    """A SAML configuration as its row has it."""

    document: str
    updated_at: datetime


async def saml(pool: Pool, tenant: str) -> StoredSaml | None:
    """The tenant's SAML configuration."""
    async with tenant_scope(pool, tenant) as connection:
        row = await connection.fetchrow("SELECT document, updated_at FROM saml_configs WHERE tenant_id = $1", tenant)
    return StoredSaml(row["document"], row["updated_at"]) if row else None


async def saml_keys(pool: Pool, tenant: str) -> list[SamlKey]:
    """The keys that open assertions of the tenant's SAML provider, the newest first."""
    async with tenant_scope(pool, tenant) as connection:
        rows = await connection.fetch(_SAML_KEYS, tenant)
    return [
        SamlKey(
            id=str(row["id"]),
            certificate=row["certificate"],
            created_at=clock.iso(row["created_at"]),
            opens_until=clock.iso_or_none(row["ends_at"]),
        )
        for row in rows
    ]


async def last_test(pool: Pool, tenant: str, provider: str) -> LastTest | None:
    """Read the result of the last test of one of the tenant's providers."""
    async with tenant_scope(pool, tenant) as connection:
        row = await connection.fetchrow(
            "SELECT report, ended_at FROM sign_on_tests WHERE tenant_id = $1 AND provider = $2", tenant, provider
        )
    return None if row is None else test_of(row["report"], row["ended_at"])


def test_of(report: str, ended_at: datetime) -> LastTest:
    """A try as its row has it."""
    tried = msgspec.json.decode(report, type=Tried)
    return LastTest(tried.ok, clock.iso(ended_at), tried.problem, tried.checks)
