"""A tenant's API keys: shown once, kept as their hash under a MAC, replaced with an overlap, revoked at once."""

from typing import Any

import asyncpg

from custody.kit import clock, ids, tokens
from custody.kit.logs import logger
from custody.protocol.identity.api_keys import (
    ApiKey,
    CreateApiKey,
    CreateApiKeyIn,
    NewApiKey,
    RevokeApiKey,
    RevokeApiKeyIn,
)
from custody.protocol.identity.refusals import ApiKeyAbsent, LastApiKey, TooManyApiKeys
from custody.worker.acts import acting, operating_in, remember, tell
from custody.worker.call import Call
from custody.worker.proofs import TENANT_KEY_MAC
from custody.worker.proven import ProvenPlatform, ProvenSession, ProvenTenant
from custody.worker.sealing import fields
from identity.context import Identity

log = logger(__name__)
MAX_LIVING = 10
_LIVES = "revoked_at IS NULL AND (retires_at IS NULL OR retires_at > service_now())"
# For how long a dead one is listed, and how many.
_CLEAR = (
    "DELETE FROM tenant_keys WHERE tenant_id = $1 AND id IN (SELECT id FROM (SELECT id, "
    "LEAST(revoked_at, retires_at) AS ended, rank() OVER (ORDER BY LEAST(revoked_at, retires_at) DESC, id) AS place "
    "FROM tenant_keys WHERE tenant_id = $1 AND LEAST(revoked_at, retires_at) <= service_now()) dead "
    "WHERE ended < service_now() - interval '90 days' OR place > 100)"
)
_COUNT = f"SELECT count(*) FROM tenant_keys WHERE tenant_id = $1 AND {_LIVES}"  # noqa: S608 - a constant
# Those that retire already keep their time.
_SUPERSEDE = (
    "UPDATE tenant_keys SET retires_at = service_now() + make_interval(secs => $2) WHERE tenant_id = $1 "
    "AND retires_at IS NULL AND revoked_at IS NULL RETURNING prefix"
)
_ADD = (
    "INSERT INTO tenant_keys (tenant_id, id, key_hash, name, prefix, mac, created_at) "
    "VALUES ($1, $2, $3, $4, $5, $6, $7)"
)
_LIVING = f"SELECT id, retires_at FROM tenant_keys WHERE tenant_id = $1 AND {_LIVES}"  # noqa: S608 - a constant
_REVOKE = (
    "UPDATE tenant_keys SET revoked_at = service_now() WHERE tenant_id = $1 AND id = $2 "
    "RETURNING name, prefix, created_at, retires_at, last_used_at"
)
_NOTE = "SELECT note_key_use($1, $2)"


async def create(identity: Identity, message: CreateApiKey, call: Call[ProvenSession]) -> NewApiKey:
    """A new key, shown this once; the active one goes on working for the overlap."""
    async with acting(identity, call) as connection:
        return await _create(connection, identity, call, call.caller.tenant, message)


async def create_in(identity: Identity, message: CreateApiKeyIn, call: Call[ProvenPlatform]) -> NewApiKey:
    """The same for any tenant, by the operator."""
    async with operating_in(identity, call, message.tenant) as connection:
        return await _create(connection, identity, call, message.tenant, message)


async def revoke(identity: Identity, message: RevokeApiKey, call: Call[ProvenSession]) -> ApiKey:
    """End a key at once; also what its holder has under way is not done any more."""
    async with acting(identity, call) as connection:
        return await _revoke(connection, call, call.caller.tenant, message)


async def revoke_in(identity: Identity, message: RevokeApiKeyIn, call: Call[ProvenPlatform]) -> ApiKey:
    """The same in any tenant, by the operator."""
    async with operating_in(identity, call, message.tenant) as connection:
        return await _revoke(connection, call, message.tenant, message)


async def note_use(identity: Identity, caller: ProvenTenant) -> None:
    """Note that a key was used; nobody is refused because that cannot be written."""
    try:
        await identity.pool.execute(_NOTE, caller.tenant, caller.standing.hash)
    except asyncpg.PostgresError as problem:
        log.warning("the use of a key was not noted", extra={"problem": type(problem).__name__})


async def _create(
    connection: Any, identity: Identity, call: Call[Any], tenant: str, message: CreateApiKey | CreateApiKeyIn
) -> NewApiKey:
    key, shown, now = ids.new_uuid(), tokens.new_api_key("ck"), clock.now()
    hashed, prefix = tokens.digest(shown), tokens.prefix_of(shown)
    mac = identity.sealer.mac(TENANT_KEY_MAC, tenant, fields(tenant, hashed))
    await connection.execute(_CLEAR, tenant)
    replaced = [row["prefix"] for row in await connection.fetch(_SUPERSEDE, tenant, float(message.overlap_seconds))]
    # After that: a key that an overlap of no length ended takes no place.
    if await connection.fetchval(_COUNT, tenant) >= MAX_LIVING:
        raise TooManyApiKeys
    await connection.execute(_ADD, tenant, key, hashed, message.name, prefix, mac, now)
    told = {"prefix": prefix, "replaces": replaced, "overlapSeconds": message.overlap_seconds}
    await tell(connection, call, "api_key.created", "api_key", key, **told)
    await remember(connection, call, None)
    return NewApiKey(
        id=key,
        name=message.name,
        prefix=prefix,
        status="active",
        created_at=clock.iso(now),
        retires_at=None,
        last_used_at=None,
        api_key=shown,
    )


async def _revoke(connection: Any, call: Call[Any], tenant: str, message: RevokeApiKey | RevokeApiKeyIn) -> ApiKey:
    living = {str(row["id"]): row["retires_at"] for row in await connection.fetch(_LIVING, tenant)}
    if message.key not in living:
        raise ApiKeyAbsent
    others = [retires_at for key, retires_at in living.items() if key != message.key]
    # The active one, where no other is; and of those that retire the last, where there is no active one any more.
    if not message.force and (not others or (living[message.key] is None and None not in others)):
        raise LastApiKey
    row = await connection.fetchrow(_REVOKE, tenant, message.key)
    outcome = ApiKey(
        id=message.key,
        name=row["name"],
        prefix=row["prefix"],
        status="revoked",
        created_at=clock.iso(row["created_at"]),
        retires_at=clock.iso(row["retires_at"]) if row["retires_at"] else None,
        last_used_at=clock.iso(row["last_used_at"]) if row["last_used_at"] else None,
    )
    await tell(connection, call, "api_key.revoked", "api_key", message.key, prefix=row["prefix"], forced=message.force)
    await remember(connection, call, outcome)
    return outcome
