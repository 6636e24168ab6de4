"""Queries of tenants' OIDC providers and of their keys."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from custody.identity.oidc_provider import OidcProvider
from custody.kit import clock
from custody.kit.db import Pool, tenant_scope
from custody.protocol.identity.oidc import OidcProviderState
from custody.sign_on import store
from custody.sign_on.try_types import LastTest

_PROVIDERS = (
    "SELECT p.document, p.created_at, p.updated_at, k.fetched_at, k.problem, t.report, t.ended_at "
    "FROM oidc_providers p LEFT JOIN provider_key_states($1) k ON k.provider = p.id "
    "LEFT JOIN sign_on_tests t ON t.tenant_id = p.tenant_id AND t.provider = p.id "
    "WHERE p.tenant_id = $1 ORDER BY p.place, p.id"
)
_ADMITTING = "SELECT tenants_admitting($1)"
_DUE = "SELECT tenant_id, provider, jwks_uri FROM due_provider_keys($1, $2)"


class StoredProvider(NamedTuple):
    """A provider, when it was made and last changed, the state of its keys, and the last try."""

    provider: OidcProvider
    created_at: str
    updated_at: str
    keys_fetched_at: str | None
    keys_problem: str | None
    last_test: LastTest | None = None


class DueKeys(NamedTuple):
    """A key set to fetch; `platform` as the tenant of the deployment's own providers."""

    tenant: str
    provider: str
    jwks_uri: str


def of_state(state: OidcProviderState) -> StoredProvider:
    """A provider as identity says that it is stored."""
    return StoredProvider(
        msgspec.json.decode(state.document, type=OidcProvider),
        state.created_at,
        state.updated_at,
        state.keys_fetched_at,
        state.keys_problem,
    )


async def providers(pool: Pool, tenant: str) -> list[StoredProvider]:
    """The tenant's providers, in their order."""
    async with tenant_scope(pool, tenant) as connection:
        rows = await connection.fetch(_PROVIDERS, tenant)
    return [
        StoredProvider(
            msgspec.json.decode(row["document"], type=OidcProvider),
            clock.iso(row["created_at"]),
            clock.iso(row["updated_at"]),
            clock.iso_or_none(row["fetched_at"]),
            row["problem"],
            None if row["report"] is None else store.test_of(row["report"], row["ended_at"]),
        )
        for row in rows
    ]


async def admitting(pool: Pool, keys: Sequence[str]) -> int:
    """Count the tenants that have one of these keys, up to two."""
    return int(await pool.fetchval(_ADMITTING, keys))


async def claim(pool: Pool, limit: int, seconds: int) -> list[DueKeys]:
    """Key sets of any tenant that are to be fetched; a claim is over by itself."""
    return [DueKeys(*row) for row in await pool.fetch(_DUE, limit, seconds)]
