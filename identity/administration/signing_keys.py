"""Keys with which a tenant signs its requests; sealed, for checking a MAC takes the key."""

from datetime import timedelta
from typing import Any

from custody.kit import clock, ids, tokens
from custody.protocol.identity.credentials import CreateSigningKey, Deleted, NewSigningKey, RevokeSigningKey
from custody.protocol.identity.refusals import SigningKeyAbsent, TooManySigningKeys
from custody.worker.acts import acting, remember, tell
from custody.worker.call import Call
from custody.worker.proven import ProvenSession
from custody.worker.sealing import Context, fields
from identity.context import Identity

OVERLAP = timedelta(days=7)
MAX_LIVING = 10
SIGNING_KEY_MAC = "signing-key-mac"
_PURPOSE = "signing-key"
_USABLE = (
    "SELECT k.id, k.prefix, k.mac, s.blob FROM signing_keys k JOIN identity_sealed s ON s.tenant_id = k.tenant_id "
    "AND s.owner_kind = 'signing_key' AND s.owner = k.id::text "
    "WHERE k.tenant_id = $1 AND ($2::uuid IS NULL OR k.id = $2) AND k.revoked_at IS NULL "
    "AND (k.retires_at IS NULL OR k.retires_at > service_now()) ORDER BY k.created_at DESC"
)
# For how long a dead one is listed, and how many; what is sealed of it goes with it.
_CLEAR = (
    "DELETE FROM signing_keys WHERE tenant_id = $1 AND id IN (SELECT id FROM (SELECT id, "
    "LEAST(revoked_at, retires_at) AS ended, rank() OVER (ORDER BY LEAST(revoked_at, retires_at) DESC, id) AS place "
    "FROM signing_keys WHERE tenant_id = $1 AND LEAST(revoked_at, retires_at) <= service_now()) dead "
    "WHERE ended < service_now() - interval '90 days' OR place > 100)"
)
_COUNT = (
    "SELECT count(*) FROM signing_keys WHERE tenant_id = $1 AND revoked_at IS NULL "
    "AND (retires_at IS NULL OR retires_at > service_now())"
)
_SUPERSEDE = (
    "UPDATE signing_keys SET retires_at = $2 WHERE tenant_id = $1 AND retires_at IS NULL AND revoked_at IS NULL"
)
_ADD = "INSERT INTO signing_keys (tenant_id, id, prefix, mac, created_at) VALUES ($1, $2, $3, $4, $5)"
_SEAL = (
    "INSERT INTO identity_sealed (tenant_id, owner_kind, owner, purpose, key_version, blob) "
    "VALUES ($1, 'signing_key', $2, $3, $4, $5)"
)
_REVOKE = (
    "UPDATE signing_keys SET revoked_at = service_now() WHERE tenant_id = $1 AND id = $2 AND revoked_at IS NULL "
    "AND (retires_at IS NULL OR retires_at > service_now()) RETURNING id"
)
_DESTROY = "DELETE FROM identity_sealed WHERE tenant_id = $1 AND owner_kind = 'signing_key' AND owner = $2"


async def create(identity: Identity, message: CreateSigningKey, call: Call[ProvenSession]) -> NewSigningKey:
    """A new key, shown this once; those before it go on working for seven days."""
    tenant, now = call.caller.tenant, clock.now()
    key, shown = ids.new_uuid(), tokens.new_api_key("rsk")
    prefix = tokens.prefix_of(shown)
    blob = identity.sealer.seal(shown.encode(), _place(tenant, key))
    async with acting(identity, call) as connection:
        await connection.execute(_CLEAR, tenant)
        if await connection.fetchval(_COUNT, tenant) >= MAX_LIVING:
            raise TooManySigningKeys
        await connection.execute(_SUPERSEDE, tenant, now + OVERLAP)
        await connection.execute(_ADD, tenant, key, prefix, _mac(identity, tenant, key, prefix), now)
        await connection.execute(_SEAL, tenant, key, _PURPOSE, identity.sealer.key_version, blob)
        await tell(connection, call, "signing_key.created", "signing_key", key, prefix=prefix)
        await remember(connection, call, None)
    return NewSigningKey(
        id=key, prefix=prefix, status="active", created_at=clock.iso(now), retires_at=None, signing_secret=shown
    )


async def revoke(identity: Identity, message: RevokeSigningKey, call: Call[ProvenSession]) -> Deleted:
    """End a key at once and destroy what is sealed of it."""
    tenant, outcome = call.caller.tenant, Deleted(message.key)
    async with acting(identity, call) as connection:
        if await connection.fetchval(_REVOKE, tenant, message.key) is None:
            raise SigningKeyAbsent
        await connection.execute(_DESTROY, tenant, message.key)
        await tell(connection, call, "signing_key.revoked", "signing_key", message.key)
        await remember(connection, call, outcome)
    return outcome


async def usable(connection: Any, identity: Identity, tenant: str) -> list[tuple[str, str]]:
    """Id and secret of every active or retiring key of the tenant that the transaction is in, the newest first."""
    return [_open(identity, tenant, row) for row in await connection.fetch(_USABLE, tenant, None)]


async def one(connection: Any, identity: Identity, tenant: str, key: str) -> tuple[str, str] | None:
    """The same of one key; None where there is none that works."""
    row = await connection.fetchrow(_USABLE, tenant, key)
    return None if row is None else _open(identity, tenant, row)


def _open(identity: Identity, tenant: str, row: Any) -> tuple[str, str]:
    key = str(row["id"])
    identity.sealer.check_mac(row["mac"], SIGNING_KEY_MAC, tenant, fields(tenant, key, row["prefix"]))
    return key, identity.sealer.open(row["blob"], _place(tenant, key)).decode()


def _place(tenant: str, key: str) -> Context:
    return Context(tenant, "signing_key", key, _PURPOSE)


def _mac(identity: Identity, tenant: str, key: str, prefix: str) -> bytes:
    return identity.sealer.mac(SIGNING_KEY_MAC, tenant, fields(tenant, key, prefix))
