"""Platform keys that do some things only. Made on this machine, by who holds the unscoped one."""

from typing import Any

from custody.kit import clock, ids, tokens
from custody.kit.errors import Invalid, NotFound
from custody.protocol.identity.credentials import (
    CreatePlatformKey,
    Deleted,
    ListPlatformKeys,
    NewPlatformKey,
    PlatformKey,
    PlatformKeys,
    RevokePlatformKey,
)
from custody.worker.acts import operating, remember, tell
from custody.worker.call import Call
from custody.worker.proofs import PLATFORM_KEY_MAC
from custody.worker.proven import PLATFORM, ProvenPlatform
from custody.worker.sealing import fields
from identity.context import Identity

SCOPES = (
    "platform:tenant:read",
    "platform:tenant:write",
    "platform:user:read",
    "platform:user:write",
    "platform:tenant-user:read",
    "platform:gas-spend:read",
)
_ADD = (
    "INSERT INTO platform_keys (key_hash, prefix, scopes, mac, id, name, created_at) "
    "VALUES ($1, $2, $3, $4, $5, $6, $7)"
)
_REVOKE = (
    "UPDATE platform_keys SET revoked_at = service_now() "
    "WHERE id = $1 AND NOT from_file AND revoked_at IS NULL RETURNING prefix"
)
_ALL = (
    "SELECT id, name, prefix, scopes, from_file, created_at, revoked_at FROM platform_keys "
    "ORDER BY created_at DESC, prefix LIMIT 1000"
)


class UnknownScope(Invalid):
    """Unknown scope."""


class PlatformKeyAbsent(NotFound):
    """No such active platform key; the key of the key file can only be changed in that file."""


async def create(identity: Identity, message: CreatePlatformKey, call: Call[ProvenPlatform]) -> NewPlatformKey:
    """A key with these scopes alone, shown this once."""
    call.caller.need_unscoped()
    scopes = sorted(set(message.scopes))
    if unknown := [scope for scope in scopes if scope not in SCOPES]:
        raise UnknownScope(f"The scope {unknown[0]!r} is unknown; the scopes are {', '.join(SCOPES)}.")
    key, shown, now = ids.new_uuid(), tokens.new_api_key("pk"), clock.now()
    hashed, prefix = tokens.digest(shown), tokens.prefix_of(shown)
    mac = identity.sealer.mac(PLATFORM_KEY_MAC, PLATFORM, fields(hashed, *scopes))
    async with operating(identity, call) as connection:
        await connection.execute(_ADD, hashed, prefix, scopes, mac, key, message.name, now)
        await tell(connection, call, "platform_key.created", "platform_key", key, prefix=prefix, scopes=scopes)
        await remember(connection, call, None)
    return NewPlatformKey(key, message.name, prefix, scopes, shown)


async def revoke(identity: Identity, message: RevokePlatformKey, call: Call[ProvenPlatform]) -> Deleted:
    """End a key at once."""
    call.caller.need_unscoped()
    outcome = Deleted(message.key)
    async with operating(identity, call) as connection:
        prefix = await connection.fetchval(_REVOKE, message.key)
        if prefix is None:
            raise PlatformKeyAbsent
        await tell(connection, call, "platform_key.revoked", "platform_key", message.key, prefix=prefix)
        await remember(connection, call, outcome)
    return outcome


async def list_all(identity: Identity, message: ListPlatformKeys, call: Call[ProvenPlatform]) -> PlatformKeys:
    """The keys that there are and were, the newest first; what their holders know is nowhere."""
    call.caller.need_unscoped()
    async with identity.pool.acquire() as connection:
        return PlatformKeys([_to_public(row) for row in await connection.fetch(_ALL)])


def _to_public(row: Any) -> PlatformKey:
    return PlatformKey(
        id=str(row["id"]) if row["id"] else None,
        name=row["name"],
        prefix=row["prefix"],
        scopes=row["scopes"],
        from_file=row["from_file"],
        created_at=clock.iso(row["created_at"]),
        revoked_at=clock.iso(row["revoked_at"]) if row["revoked_at"] else None,
    )
