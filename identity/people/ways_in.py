"""The check that a person can still sign in: nobody may lose the last way in by mistake, or by somebody else's act."""

from typing import Any

# By a passkey, or by what they have proven themselves.
_OWN = (
    "SELECT EXISTS (SELECT FROM passkeys WHERE user_id = $1) OR EXISTS (SELECT FROM identities "
    "WHERE user_id = $1 AND tenant_id IS NULL AND verified AND ($2::uuid IS NULL OR id <> $2))"
)
_ANY = (
    "SELECT EXISTS (SELECT FROM passkeys WHERE user_id = $1) OR EXISTS (SELECT FROM identities "
    "WHERE user_id = $1 AND blocked_at IS NULL)"
)


async def has_without(connection: Any, user: str, identity: str) -> bool:
    """Say whether a way of the person's own is left without this identity; a tenant's sign-on is none."""
    return bool(await connection.fetchval(_OWN, user, identity))


async def has_any(connection: Any, user: str) -> bool:
    """Say whether any way is left, a tenant's sign-on too."""
    return bool(await connection.fetchval(_ANY, user))
