"""The checks of `custody doctor` on sign-on: secrets that tenants name, and keys of their identity providers."""

import asyncpg
import msgspec

from custody.kit import oauth_endpoints
from ops.findings import Finding
from ops.settings import Settings

_SHOWN = 5
_STALE = """
SELECT tenant_id, provider, COALESCE(problem, 'never fetched') AS why FROM provider_keys
 WHERE COALESCE(fetched_at, '-infinity') < service_now() - interval '1 day' ORDER BY tenant_id, provider LIMIT 100
"""
_PROVIDERS = "SELECT tenant_id, id, document FROM oidc_providers ORDER BY tenant_id, id"


class _Provider(msgspec.Struct, frozen=True, rename="camel"):
    enabled: bool = False
    client_secret_env: str | None = None


def own_clients(settings: Settings) -> Finding:
    """Google, Discord and X: each has both variables or neither."""
    ids = oauth_endpoints.client_ids(settings.environment)
    secrets = oauth_endpoints.client_secrets(settings.environment)
    if half := sorted(ids.keys() ^ secrets.keys()):
        names = ", ".join(f"{name.upper()}_CLIENT_{'SECRET' if name in ids else 'ID'}" for name in half)
        return Finding("sign-in providers", f"not set: {names}", "set both variables of a provider, or neither")
    on = sorted(ids)
    return Finding("sign-in providers", f"on: {', '.join(on)}" if on else "none of Google, Discord and X")


async def client_secrets(connection: asyncpg.Connection, settings: Settings) -> Finding:
    """Each variable that an enabled OIDC provider of a tenant names is set."""
    subject = "secrets of identity providers"
    rows = [
        (f"{row['id']} of {row['tenant_id']}", found.client_secret_env)
        for row in await connection.fetch(_PROVIDERS)
        if (found := msgspec.json.decode(row["document"], type=_Provider)).enabled and found.client_secret_env
    ]
    unset = [f"{name} ({provider})" for provider, name in rows if not settings.environment.get(name, "").strip()]
    if unset:
        cure = "set them for the api and restart it, or tell the tenant to name another"
        return Finding(subject, f"not set: {', '.join(unset[:_SHOWN])}", cure)
    return Finding(subject, f"{len(rows)} named, each is set")


async def keys(connection: asyncpg.Connection) -> Finding:
    """The keys of each issuer were fetched within a day."""
    subject = "keys of identity providers"
    rows = await connection.fetch(_STALE)
    if rows:
        worst = ", ".join(f"{row['provider']} of {row['tenant_id']} ({row['why']})" for row in rows[:_SHOWN])
        cure = "check that a scheduler runs and reaches the issuer; its tenant sees the reason at its provider"
        return Finding(subject, f"not fetched for a day: {worst}", cure)
    return Finding(subject, "each was fetched within a day")
