"""Secrets of app clients: shown once, kept as their hash under a MAC, superseded with an overlap."""

from datetime import timedelta
from typing import Any

from custody.kit import clock, ids, tokens
from custody.protocol.identity.credentials import CreateAppSecret, Deleted, NewAppSecret, RevokeAppSecret
from custody.protocol.identity.refusals import AppClientAbsent, AppSecretAbsent, TooManyAppSecrets
from custody.worker.acts import acting, remember, tell
from custody.worker.call import Call
from custody.worker.proofs import APP_SECRET_MAC
from custody.worker.proven import ProvenSession
from custody.worker.sealing import fields
from identity.context import Identity

OVERLAP = timedelta(hours=24)
MAX_LIVING = 10
_CLIENT = "SELECT id FROM app_clients WHERE tenant_id = $1 AND id = $2"
# For how long a dead one is listed, and how many.
_CLEAR = (
    "DELETE FROM app_secrets WHERE tenant_id = $1 AND id IN (SELECT id FROM (SELECT id, "
    "LEAST(revoked_at, retires_at) AS ended, rank() OVER (ORDER BY LEAST(revoked_at, retires_at) DESC, id) AS place "
    "FROM app_secrets WHERE tenant_id = $1 AND client_id = $2 AND LEAST(revoked_at, retires_at) <= service_now()) dead "
    "WHERE ended < service_now() - interval '90 days' OR place > 100)"
)
_COUNT = (
    "SELECT count(*) FROM app_secrets WHERE tenant_id = $1 AND client_id = $2 AND revoked_at IS NULL "
    "AND (retires_at IS NULL OR retires_at > service_now())"
)
_SUPERSEDE = (
    "UPDATE app_secrets SET retires_at = $3 WHERE tenant_id = $1 AND client_id = $2 AND retires_at IS NULL "
    "AND revoked_at IS NULL"
)
_ADD = (
    "INSERT INTO app_secrets (tenant_id, id, client_id, secret_hash, prefix, mac, created_at) "
    "VALUES ($1, $2, $3, $4, $5, $6, $7)"
)
_REVOKE = (
    "UPDATE app_secrets SET revoked_at = service_now() WHERE tenant_id = $1 AND client_id = $2 AND id = $3 "
    "AND revoked_at IS NULL AND (retires_at IS NULL OR retires_at > service_now()) RETURNING id"
)


async def rotate(identity: Identity, message: CreateAppSecret, call: Call[ProvenSession]) -> NewAppSecret:
    """A new secret, shown this once; the one before it goes on working for 24 hours."""
    tenant, client, now = call.caller.tenant, message.client, clock.now()
    secret, shown = ids.new_uuid(), tokens.new_api_key("as")
    hashed, prefix = tokens.digest(shown), tokens.prefix_of(shown)
    mac = identity.sealer.mac(APP_SECRET_MAC, tenant, fields(tenant, client, hashed))
    async with acting(identity, call) as connection:
        await _make_room(connection, tenant, client)
        await connection.execute(_SUPERSEDE, tenant, client, now + OVERLAP)
        await connection.execute(_ADD, tenant, secret, client, hashed, prefix, mac, now)
        await tell(connection, call, "app_secret.created", "app_secret", secret, clientId=client, prefix=prefix)
        await remember(connection, call, None)
    return NewAppSecret(
        id=secret,
        prefix=prefix,
        status="active",
        created_at=clock.iso(now),
        retires_at=None,
        app_id=f"{tenant}/{client}",
        app_secret=shown,
    )


async def revoke(identity: Identity, message: RevokeAppSecret, call: Call[ProvenSession]) -> Deleted:
    """End a secret at once; also what its holder has under way is not done any more."""
    outcome = Deleted(message.secret)
    async with acting(identity, call) as connection:
        if await connection.fetchval(_REVOKE, call.caller.tenant, message.client, message.secret) is None:
            raise AppSecretAbsent
        await tell(connection, call, "app_secret.revoked", "app_secret", message.secret, clientId=message.client)
        await remember(connection, call, outcome)
    return outcome


async def _make_room(connection: Any, tenant: str, client: str) -> None:
    if await connection.fetchval(_CLIENT, tenant, client) is None:
        raise AppClientAbsent
    await connection.execute(_CLEAR, tenant, client)
    if await connection.fetchval(_COUNT, tenant, client) >= MAX_LIVING:
        raise TooManyAppSecrets
