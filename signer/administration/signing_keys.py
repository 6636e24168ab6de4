"""Keys with which a tenant signs its requests; sealed, for checking a MAC takes the key. Spec 2/2.5, decisions 6."""

from datetime import timedelta
from typing import Any

from custody.kit import clock, ids, tokens
from custody.kit.errors import Conflict, NotFound
from custody.protocol.messages import Done, NewSigningKey, Outcome, RevokeSigningKey
from signer.administration.acts import acting, remember, tell
from signer.context import Ask, Signer
from signer.proofs import ProvenSession
from signer.sealing import Context, fields

OVERLAP = timedelta(days=7)
MAX_LIVING = 10
SIGNING_KEY_MAC = "signing-key-mac"
_PURPOSE = "signing-key"
_USABLE = (
    "SELECT k.id, k.prefix, k.mac, s.blob FROM signing_keys k JOIN sealed s ON s.tenant_id = k.tenant_id "
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
    "INSERT INTO sealed (tenant_id, owner_kind, owner, purpose, key_version, blob) "
    "VALUES ($1, 'signing_key', $2, $3, $4, $5)"
)
_REVOKE = (
    "UPDATE signing_keys SET revoked_at = service_now() WHERE tenant_id = $1 AND id = $2 AND revoked_at IS NULL "
    "AND (retires_at IS NULL OR retires_at > service_now()) RETURNING id"
)
_DESTROY = "DELETE FROM sealed WHERE tenant_id = $1 AND owner_kind = 'signing_key' AND owner = $2"


class SigningKeyAbsent(NotFound):
    """There is no such key that still works."""


class TooManySigningKeys(Conflict):
    """A tenant has at most 10 request-signing keys that work; revoke one first."""


async def create(signer: Signer, message: NewSigningKey, ask: Ask[ProvenSession]) -> Outcome:
    """A new key, shown this once; those before it go on working for seven days."""
    tenant, now = ask.caller.tenant, clock.now()
    key, shown = ids.new_uuid(), tokens.new_api_key("rsk")
    prefix = tokens.prefix_of(shown)
    blob = signer.sealer.seal(shown.encode(), _place(tenant, key))
    async with acting(signer, ask) as connection:
        await connection.execute(_CLEAR, tenant)
        if await connection.fetchval(_COUNT, tenant) >= MAX_LIVING:
            raise TooManySigningKeys
        await connection.execute(_SUPERSEDE, tenant, now + OVERLAP)
        await connection.execute(_ADD, tenant, key, prefix, _mac(signer, tenant, key, prefix), now)
        await connection.execute(_SEAL, tenant, key, _PURPOSE, signer.sealer.key_version, blob)
        await tell(connection, ask, "signing_key.created", "signing_key", key, prefix=prefix)
        await remember(connection, ask, None)
    return Done({"id": key, "prefix": prefix, "createdAt": clock.iso(now), "signingSecret": shown})


async def revoke(signer: Signer, message: RevokeSigningKey, ask: Ask[ProvenSession]) -> Outcome:
    """End a key at once and destroy what is sealed of it."""
    tenant, outcome = ask.caller.tenant, Done({"deleted": message.key})
    async with acting(signer, ask) as connection:
        if await connection.fetchval(_REVOKE, tenant, message.key) is None:
            raise SigningKeyAbsent
        await connection.execute(_DESTROY, tenant, message.key)
        await tell(connection, ask, "signing_key.revoked", "signing_key", message.key)
        await remember(connection, ask, outcome)
    return outcome


async def usable(connection: Any, signer: Signer, tenant: str) -> list[tuple[str, str]]:
    """Id and secret of every active or retiring key of the tenant that the transaction is in, the newest first."""
    return [_opened(signer, tenant, row) for row in await connection.fetch(_USABLE, tenant, None)]


async def one(connection: Any, signer: Signer, tenant: str, key: str) -> tuple[str, str] | None:
    """The same of one key; None where there is none that works."""
    row = await connection.fetchrow(_USABLE, tenant, key)
    return None if row is None else _opened(signer, tenant, row)


def _opened(signer: Signer, tenant: str, row: Any) -> tuple[str, str]:
    key = str(row["id"])
    signer.sealer.check_mac(row["mac"], SIGNING_KEY_MAC, tenant, fields(tenant, key, row["prefix"]))
    return key, signer.sealer.open(row["blob"], _place(tenant, key)).decode()


def _place(tenant: str, key: str) -> Context:
    return Context(tenant, "signing_key", key, _PURPOSE)


def _mac(signer: Signer, tenant: str, key: str, prefix: str) -> bytes:
    return signer.sealer.mac(SIGNING_KEY_MAC, tenant, fields(tenant, key, prefix))
