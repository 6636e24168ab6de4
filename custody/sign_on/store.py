"""Queries about a tenant's identity providers."""

from datetime import datetime
from typing import NamedTuple

import msgspec

from custody.kit import clock
from custody.kit.db import Pool, tenant_scope
from custody.protocol.identity.sign_on import Tried
from custody.sign_on.try_types import LastTest


class StoredSaml(NamedTuple):
    """A SAML configuration as its row has it."""

    document: str
    updated_at: datetime


async def saml(pool: Pool, tenant: str) -> StoredSaml | None:
    """The tenant's SAML configuration."""
    async with tenant_scope(pool, tenant) as connection:
        row = await connection.fetchrow("SELECT document, updated_at FROM saml_configs WHERE tenant_id = $1", tenant)
    return StoredSaml(row["document"], row["updated_at"]) if row else None


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
