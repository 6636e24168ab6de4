"""Public keys of OIDC issuers. The scheduler fetches them; what is taken is read strictly and kept under a MAC.

They are taken from the address that stands in the provider's own document, or for the deployment's providers in the
row, which is under the MAC too: anyone who can write the database can neither have keys fetched from elsewhere nor put
in others. A set that is not taken leaves the one that is there.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from custody.kit import clock
from custody.kit.logs import logger
from custody.protocol.identity.oidc import KeptKeys, ProviderKeysMoved, PutProviderKeys
from custody.worker.acts import enter
from custody.worker.call import Call
from custody.worker.proven import PLATFORM
from custody.worker.sealing import Tampered, fields
from identity.context import Identity
from identity.sign_on import key_sets, oidc_providers
from identity.sign_on.key_sets import BadKeySet, KeySet

log = logger(__name__)
PROVIDER_KEYS_MAC = "provider-keys-mac"
# A token that was signed just before its issuer changed keys is still taken.
FORMER: Final = timedelta(hours=1)
# Sooner where a token names a key that is not here.
EVERY: Final = timedelta(minutes=15)
_READ = "SELECT * FROM provider_keys WHERE tenant_id = $1 AND provider = $2"
_LOCK = f"{_READ} FOR UPDATE"
_REGISTER = (
    "INSERT INTO provider_keys (tenant_id, provider, jwks_uri, due_at, mac) VALUES ($1, $2, $3, service_now(), $4) "
    "ON CONFLICT (tenant_id, provider) DO UPDATE SET jwks_uri = excluded.jwks_uri, due_at = excluded.due_at, "
    "mac = excluded.mac, keys = NULL, previous = NULL, fetched_at = NULL, replaced_at = NULL, asked_at = NULL, "
    "problem = NULL"
)
_KEEP = (
    "UPDATE provider_keys SET jwks_uri = $3, keys = $4, previous = $5, fetched_at = $6, replaced_at = $7, mac = $8, "
    "problem = NULL, due_at = service_now() + $9 WHERE tenant_id = $1 AND provider = $2"
)
_PROBLEM = "UPDATE provider_keys SET problem = $3, due_at = service_now() + $4 WHERE tenant_id = $1 AND provider = $2"
# At most once a minute, whatever tokens name.
_WANT = (
    "UPDATE provider_keys SET due_at = GREATEST(service_now(), asked_at + interval '1 minute') "
    "WHERE tenant_id = $1 AND provider = $2 AND due_at > GREATEST(service_now(), asked_at + interval '1 minute')"
)
_FORGET = "DELETE FROM provider_keys WHERE tenant_id = $1 AND provider = ANY($2)"
_FORGET_OTHERS = "DELETE FROM provider_keys WHERE tenant_id = $1 AND provider <> ALL($2)"


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of one provider as its row has them."""

    tenant: str
    provider: str
    jwks_uri: str
    keys: str | None = None
    previous: str | None = None
    fetched_at: datetime | None = None
    replaced_at: datetime | None = None
    # Not under the MAC: nothing is decided by it.
    problem: str | None = None

    @property
    def content(self) -> bytes:
        """Build what its MAC is over."""
        moments = (self.fetched_at, self.replaced_at)
        said = ("" if moment is None else clock.unix_microseconds(moment) for moment in moments)
        return fields(self.tenant, self.provider, self.jwks_uri, self.keys or "", self.previous or "", *said)

    def followed_by(self, keys: str, now: datetime) -> "Kept":
        """These keys, fetched now; those before them go on for a while if they are others."""
        if keys == self.keys:
            return msgspec.structs.replace(self, fetched_at=now)
        replaced_at = None if self.keys is None else now
        return msgspec.structs.replace(self, keys=keys, previous=self.keys, fetched_at=now, replaced_at=replaced_at)

    def usable(self, now: datetime) -> KeySet:
        """The keys that count at a moment."""
        found = KeySet() if self.keys is None else key_sets.read(self.keys.encode())
        if self.previous is None or self.replaced_at is None or self.replaced_at + FORMER <= now:
            return found
        return found.with_former(key_sets.read(self.previous.encode()))


def read(row: Mapping[str, Any]) -> Kept:
    """A row as it is; its MAC is not checked."""
    return Kept(
        tenant=row["tenant_id"],
        provider=row["provider"],
        jwks_uri=row["jwks_uri"],
        keys=row["keys"],
        previous=row["previous"],
        fetched_at=row["fetched_at"],
        replaced_at=row["replaced_at"],
        problem=row["problem"],
    )


async def put(identity: Identity, message: PutProviderKeys, call: Call[None]) -> KeptKeys:
    """Take a set that was fetched, or note why there is none."""
    tenant, problem = message.tenant or PLATFORM, message.problem
    found: str | None = None
    try:
        if message.keys is not None:
            found = key_sets.condense(message.keys)
    except BadKeySet as bad:
        problem = bad.problem
    async with identity.pool.acquire() as connection, connection.transaction():
        await enter(connection, tenant)
        kept = await _present(connection, identity, tenant, message.provider)
        if kept is None or kept.jwks_uri != message.jwks_uri:
            raise ProviderKeysMoved
        if found is None:
            await connection.execute(_PROBLEM, tenant, message.provider, problem or "set_empty", EVERY)
            return KeptKeys(problem or "set_empty")
        await _keep(connection, identity, kept.followed_by(found, clock.now()))
    return KeptKeys(None)


async def key_set(connection: Any, identity: Identity, tenant: str, provider: str) -> KeySet:
    """The keys that count now, none before they were first fetched; Tampered unless identity wrote them.

    The transaction must be in the tenant; `platform` is that of the deployment's own providers.
    """
    row = await connection.fetchrow(_READ, tenant, provider)
    if row is None:
        return KeySet()
    kept = _open(identity, row)
    if tenant != PLATFORM:
        # An older row of this provider would be whole, and might have the keys of an issuer that it had before.
        found = await oidc_providers.find(connection, identity, tenant, provider)
        if found is None or found.jwks_uri != kept.jwks_uri:
            raise Tampered
    return kept.usable(clock.now())


async def want(identity: Identity, tenant: str, provider: str) -> None:
    """Have the keys fetched, now or a minute after they were last asked for.

    Those of the deployment's own providers are registered again if another identity process, which was started without
    that provider, has forgotten them.
    """
    async with identity.pool.acquire() as connection, connection.transaction():
        if tenant == PLATFORM:
            await register(connection, identity, tenant, provider, identity.oauth_key_sets[provider])
        else:
            await connection.execute(_WANT, tenant, provider)


async def register(connection: Any, identity: Identity, tenant: str, provider: str, jwks_uri: str) -> Kept:
    """Have the keys of a provider fetched from this address; those from another one are dropped."""
    row = await connection.fetchrow(_LOCK, tenant, provider)
    if row is not None and row["jwks_uri"] == jwks_uri and _is_ours(identity, row):
        await connection.execute(_WANT, tenant, provider)
        return read(row)
    fresh = Kept(tenant=tenant, provider=provider, jwks_uri=jwks_uri)
    mac = identity.sealer.mac(PROVIDER_KEYS_MAC, tenant, fresh.content)
    await connection.execute(_REGISTER, tenant, provider, jwks_uri, mac)
    return fresh


async def register_own(connection: Any, identity: Identity) -> None:
    """The deployment's own providers with the addresses of their keys: these, and no others any more."""
    await connection.execute(_FORGET_OTHERS, PLATFORM, list(identity.oauth_key_sets))
    for provider, jwks_uri in identity.oauth_key_sets.items():
        await register(connection, identity, PLATFORM, provider, jwks_uri)


async def forget(connection: Any, tenant: str, providers: Sequence[str]) -> None:
    """Drop the keys of providers that are gone."""
    await connection.execute(_FORGET, tenant, providers)


async def _present(connection: Any, identity: Identity, tenant: str, provider: str) -> Kept | None:
    """Read what is kept, locked; of a tenant's provider with the address in its document, whatever the row says."""
    row = await connection.fetchrow(_LOCK, tenant, provider)
    if row is None:
        return None
    if tenant == PLATFORM:
        return _open(identity, row)
    found = await oidc_providers.find(connection, identity, tenant, provider)
    if found is None:
        return None
    kept = Kept(tenant=tenant, provider=provider, jwks_uri=found.jwks_uri)
    if not _is_ours(identity, row):
        log.error("the kept keys of an issuer fail their integrity check and are replaced", extra={"tenant": tenant})
        return kept
    return read(row) if row["jwks_uri"] == found.jwks_uri else kept


async def _keep(connection: Any, identity: Identity, kept: Kept) -> None:
    mac = identity.sealer.mac(PROVIDER_KEYS_MAC, kept.tenant, kept.content)
    values = (kept.jwks_uri, kept.keys, kept.previous, kept.fetched_at, kept.replaced_at, mac, EVERY)
    await connection.execute(_KEEP, kept.tenant, kept.provider, *values)


def _open(identity: Identity, row: Mapping[str, Any]) -> Kept:
    kept = read(row)
    identity.sealer.check_mac(row["mac"], PROVIDER_KEYS_MAC, kept.tenant, kept.content)
    return kept


def _is_ours(identity: Identity, row: Mapping[str, Any]) -> bool:
    try:
        _open(identity, row)
    except Tampered:
        return False
    return True
