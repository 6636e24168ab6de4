"""Refresh tokens, which many providers replace with each use: one at a time refreshes, and what comes is kept sealed.

The proxy sends the request that `begin` hands out, and says with the lease how it ended. The next refresh token belongs
to the version of the secret that it came of: a value that somebody put in its place meanwhile is never written over.
The lease is what proves the second step, because the agent may be frozen by then, and its token be over.
"""

import asyncio
from datetime import timedelta
from typing import Any, Final

import msgspec

from custody.credentials.token_exchange import RefreshToken, TokenExchange, ValueNotForExchange, read_value
from custody.kit import clock, ids
from custody.protocol.signer.refusals import RefreshUnderWay
from custody.protocol.signer.secrets import BeginRefresh, EndRefresh, RefreshBegun, RefreshEnded
from custody.worker.acts import enter
from custody.worker.audited import vet
from custody.worker.call import Call
from custody.worker.proven import ProvenAgent
from signer import reveal, token_requests
from signer.context import Signer
from signer.credentials import REFRESH, open_value, place_of_refresh

# Longer than a provider is waited for, and than what it said takes to arrive here.
LEASE: Final = timedelta(seconds=60)
_LOCK = (
    "SELECT version, refresh_lease, refresh_until > service_now() AS taken FROM secrets "
    "WHERE tenant_id = $1 AND id = $2 AND deleted_at IS NULL FOR UPDATE"
)
_TAKE = "UPDATE secrets SET refresh_lease = $3, refresh_until = service_now() + $4 WHERE tenant_id = $1 AND id = $2"
_LEAVE = "UPDATE secrets SET refresh_lease = NULL, refresh_until = NULL WHERE tenant_id = $1 AND id = $2"
_NEWEST = "SELECT blob FROM sealed WHERE tenant_id = $1 AND owner_kind = 'secret' AND owner = $2::text AND purpose = $3"
_KEEP = (
    "INSERT INTO sealed (tenant_id, owner_kind, owner, purpose, key_version, blob) "
    "VALUES ($1, 'secret', $2::text, $3, $4, $5) ON CONFLICT (tenant_id, owner_kind, owner, purpose) "
    "DO UPDATE SET key_version = excluded.key_version, blob = excluded.blob"
)
_AUDIT = "SELECT audit_append('system', 'proxy', $1, 'secret', $2, $3, $4)"


async def begin(signer: Signer, message: BeginRefresh, call: Call[ProvenAgent]) -> RefreshBegun:
    """Hand out the request to nobody else for as long as the lease lasts; RefreshUnderWay while another one has it."""
    tenant = call.caller.tenant
    row, secret, said = await reveal.judge(signer, message.route, call.caller)
    if secret is None or said.exchange is None:
        raise reveal.SecretUnavailable(reason="unfit")
    held = _read(said.exchange, open_value(signer.sealer, tenant, secret, row))
    lease = ids.new_uuid()
    async with signer.pool.acquire() as connection, connection.transaction():
        await enter(connection, tenant)
        locked = await connection.fetchrow(_LOCK, tenant, secret)
        if locked is None or locked["taken"] or locked["version"] != row["version"]:
            raise RefreshUnderWay
        if locked["refresh_lease"] is not None:
            await _tell(connection, call.origin_row, "secret.refresh_unknown", secret, row["version"])
        await connection.execute(_TAKE, tenant, secret, lease, LEASE)
        blob = await connection.fetchval(_NEWEST, tenant, secret, REFRESH)
    if blob is not None:
        newest = signer.sealer.open(blob, place_of_refresh(tenant, secret, row["version"])).decode()
        held = msgspec.structs.replace(held, refresh_token=newest)
    return RefreshBegun(lease, await asyncio.to_thread(token_requests.build, said.exchange, held, clock.now()))


async def end(signer: Signer, message: EndRefresh, call: Call[None]) -> RefreshEnded:
    """Seal what the provider gave in place of the refresh token; not kept if the secret was rotated meanwhile."""
    tenant, secret = message.tenant, message.secret
    async with signer.pool.acquire() as connection, connection.transaction():
        await enter(connection, tenant)
        locked = await connection.fetchrow(_LOCK, tenant, secret)
        if locked is None or str(locked["refresh_lease"]) != message.lease:
            return RefreshEnded(False)
        await connection.execute(_LEAVE, tenant, secret)
        version = locked["version"]
        if message.refresh_token is not None:
            blob = signer.sealer.seal(message.refresh_token.encode(), place_of_refresh(tenant, secret, version))
            await connection.execute(_KEEP, tenant, secret, REFRESH, signer.sealer.key_version, blob)
            await _tell(connection, call.origin_row, "secret.refreshed", secret, version)
        elif message.unknown:
            await _tell(connection, call.origin_row, "secret.refresh_unknown", secret, version)
    return RefreshEnded(message.refresh_token is not None)


def _read(exchange: TokenExchange, value: bytes) -> RefreshToken:
    try:
        held = read_value(exchange, value)
    except ValueNotForExchange:
        held = None
    if not isinstance(held, RefreshToken):
        raise reveal.SecretUnavailable(reason="unfit")
    return held


async def _tell(connection: Any, origin: Any, action: str, secret: str, version: int) -> None:
    said = msgspec.json.encode({"version": version}).decode()
    await connection.execute(_AUDIT, vet(action), secret, said, origin)
