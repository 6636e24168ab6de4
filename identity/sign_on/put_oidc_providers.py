"""An administrator replaces a tenant's OIDC providers, which say whose word counts for who somebody is.

The api has asked the issuer for what an administrator left out, and is not believed: every field is checked again, and
all of them are in the audit log by their ids and issuers.
"""

from typing import Any

import msgspec

from custody.identity.oidc_provider import InvalidOidcProvider, OidcProvider, check_all
from custody.kit import clock
from custody.protocol.identity.oidc import OidcProviderState, PutOidcProviders, StoredOidcProviders
from custody.worker.acts import acting, remember, tell
from custody.worker.call import Call
from custody.worker.proven import ProvenSession
from custody.worker.sealing import fields
from identity.context import Identity
from identity.sign_on import domains, keys
from identity.sign_on.oidc_providers import OIDC_PROVIDER_MAC

_IDS = "SELECT id FROM oidc_providers WHERE tenant_id = $1"
_PUT = (
    "INSERT INTO oidc_providers AS p (tenant_id, id, document, place, mac, created_at, updated_at) "
    "VALUES ($1, $2, $3, $4, $5, $6, $6) ON CONFLICT (tenant_id, id) DO UPDATE SET document = excluded.document, "
    "place = excluded.place, mac = excluded.mac, updated_at = CASE WHEN p.document = excluded.document "
    "THEN p.updated_at ELSE excluded.updated_at END RETURNING created_at, updated_at"
)
# Of another provider under the same id, it would say nothing true.
_FORGET_TESTS = "DELETE FROM sign_on_tests WHERE tenant_id = $1 AND provider = ANY($2)"
_DELETE = "DELETE FROM oidc_providers WHERE tenant_id = $1 AND id = ANY($2)"


async def put(identity: Identity, message: PutOidcProviders, call: Call[ProvenSession]) -> StoredOidcProviders:
    """Replace all of them. Sign-ins that are under way with a changed one end."""
    tenant = call.caller.tenant
    try:
        given = [msgspec.convert(document, OidcProvider) for document in message.providers]
    except msgspec.ValidationError as problem:
        raise InvalidOidcProvider(f"providers: {problem}", fields=["providers"]) from None
    providers = check_all(given, tenant, identity.public_url)
    async with acting(identity, call) as connection:
        before = {row["id"] for row in await connection.fetch(_IDS, tenant)}
        gone = sorted(before - {provider.id for provider in providers})
        await connection.execute(_DELETE, tenant, gone)
        await connection.execute(_FORGET_TESTS, tenant, gone)
        await keys.forget(connection, tenant, gone)
        outcome = StoredOidcProviders(
            [await _put(connection, identity, tenant, provider, place) for place, provider in enumerate(providers)]
        )
        said = {
            "issuers": {provider.id: provider.issuer for provider in providers},
            "enabled": [provider.id for provider in providers if provider.enabled],
            "removed": gone,
        }
        if said["enabled"]:
            await domains.end_living(connection, identity, tenant)
        await tell(connection, call, "sso.oidc_providers_changed", "oidc_providers", tenant, **said)
        await remember(connection, call, outcome)
    return outcome


async def _put(
    connection: Any, identity: Identity, tenant: str, provider: OidcProvider, place: int
) -> OidcProviderState:
    text = msgspec.json.encode(provider, order="sorted").decode()
    mac = identity.sealer.mac(OIDC_PROVIDER_MAC, tenant, fields(tenant, provider.id, text))
    row = await connection.fetchrow(_PUT, tenant, provider.id, text, place, mac, clock.now())
    known = await keys.register(connection, identity, tenant, provider.id, provider.jwks_uri)
    return OidcProviderState(
        document=text,
        created_at=clock.iso(row["created_at"]),
        updated_at=clock.iso(row["updated_at"]),
        keys_fetched_at=clock.iso_or_none(known.fetched_at),
        keys_problem=known.problem,
    )
