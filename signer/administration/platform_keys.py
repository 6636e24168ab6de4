"""Platform keys that do some things only. Made on this machine, by who holds the unscoped one. Spec 2/4.4."""

from typing import Any

from custody.kit import clock, ids, tokens
from custody.kit.errors import Forbidden, Invalid, NotFound
from custody.protocol.messages import CreatePlatformKey, Done, ListPlatformKeys, Outcome, RevokePlatformKey
from signer.administration.acts import operating, remember, tell
from signer.context import Ask, Signer
from signer.proofs import PLATFORM, PLATFORM_KEY_MAC, ProvenPlatform
from signer.sealing import fields

SCOPES = (
    "platform:tenant:read", "platform:tenant:write", "platform:user:read", "platform:user:write",
    "platform:tenant-user:read", "platform:gas-spend:read",
)  # fmt: skip
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
    """This scope is not known."""


class PlatformKeyAbsent(NotFound):
    """There is no such platform key that still works; the one of the key file is changed in the file."""


class OnlyUnscoped(Forbidden):
    """Only the unscoped platform key, that of the key file, makes and ends others."""


async def create(signer: Signer, message: CreatePlatformKey, ask: Ask[ProvenPlatform]) -> Outcome:
    """A key with these scopes alone, shown this once."""
    _insist_on_unscoped(ask.caller)
    scopes = sorted(set(message.scopes))
    if unknown := [scope for scope in scopes if scope not in SCOPES]:
        raise UnknownScope(f"The scope {unknown[0]!r} is not known; the scopes are {', '.join(SCOPES)}.")
    key, shown, now = ids.new_uuid(), tokens.new_api_key("pk"), clock.now()
    hashed, prefix = tokens.digest(shown), tokens.prefix_of(shown)
    mac = signer.sealer.mac(PLATFORM_KEY_MAC, PLATFORM, fields(hashed, *scopes))
    async with operating(signer, ask) as connection:
        await connection.execute(_ADD, hashed, prefix, scopes, mac, key, message.name, now)
        await tell(connection, ask, "platform_key.created", "platform_key", key, prefix=prefix, scopes=scopes)
        await remember(connection, ask, None)
    return Done({"id": key, "name": message.name, "prefix": prefix, "scopes": scopes, "key": shown})


async def revoke(signer: Signer, message: RevokePlatformKey, ask: Ask[ProvenPlatform]) -> Outcome:
    """End a key at once."""
    _insist_on_unscoped(ask.caller)
    outcome = Done({"deleted": message.key})
    async with operating(signer, ask) as connection:
        prefix = await connection.fetchval(_REVOKE, message.key)
        if prefix is None:
            raise PlatformKeyAbsent
        await tell(connection, ask, "platform_key.revoked", "platform_key", message.key, prefix=prefix)
        await remember(connection, ask, outcome)
    return outcome


async def list_all(signer: Signer, message: ListPlatformKeys, ask: Ask[ProvenPlatform]) -> Outcome:
    """The keys that there are and were, the newest first; what their holders know is nowhere."""
    _insist_on_unscoped(ask.caller)
    async with signer.pool.acquire() as connection:
        return Done({"keys": [_shown(row) for row in await connection.fetch(_ALL)]})


def _insist_on_unscoped(caller: ProvenPlatform) -> None:
    # Whatever SERVICE_SCOPED_PLATFORM_KEYS says: otherwise a scoped key could make itself one without.
    if caller.scopes is not None:
        raise OnlyUnscoped


def _shown(row: Any) -> dict[str, Any]:
    return {
        "id": str(row["id"]) if row["id"] else None, "name": row["name"], "prefix": row["prefix"],
        "scopes": row["scopes"], "fromFile": row["from_file"], "createdAt": clock.iso(row["created_at"]),
        "revokedAt": clock.iso(row["revoked_at"]) if row["revoked_at"] else None,
    }  # fmt: skip
