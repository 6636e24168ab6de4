"""The common part of all second factors: who has one changes them only with one, and never twice at once.

Everything that changes or uses a person's factors locks the person's row first, so that of two at once the second one
sees what the first one did: a factor that was added, a code that was used, a last factor that went.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from custody.identity.roles import ANYBODY
from custody.kit import clock
from custody.protocol.identity.refusals import Deactivated, FactorAbsent
from custody.protocol.refusals import SessionBound
from custody.worker.audited import vet
from custody.worker.call import Call
from custody.worker.proven import PLATFORM, ProvenSession
from custody.worker.sealing import fields
from identity.context import Identity
from identity.people import attempts
from identity.people.persons import hold, personal

GUESSES, GUESS_SECONDS = 5, 900
# Beside it, for who guesses on and on: wrong ones alone, and no right one clears them.
LONG_GUESSES, LONG_SECONDS = 50, 7 * 86_400
_MAC = "factor-mac"
_LOCK = "SELECT set_config('custody.tenant', $2, true) FROM users WHERE id = $1 AND deactivated_at IS NULL FOR UPDATE"
_STANDS = "SELECT demand_credential($1, $2), mfa_methods($3) AS methods"
_FIND = "SELECT subject, mac FROM factors WHERE user_id = $1 AND kind = $2"
_PUT = (
    "INSERT INTO factors (user_id, kind, subject, mac, last_step, confirmed_at) "
    "VALUES ($1, $2, $3, $4, $5, service_now()) ON CONFLICT (user_id, kind) DO UPDATE SET subject = excluded.subject, "
    "mac = excluded.mac, last_step = excluded.last_step, confirmed_at = excluded.confirmed_at"
)
_REMOVE = "DELETE FROM factors WHERE user_id = $1 AND kind = $2 RETURNING true"
# Recovery codes stand in for a factor; without any they would be one themselves.
_CLEAR_CODES = (
    "DELETE FROM recovery_codes WHERE user_id = $1 AND NOT EXISTS (SELECT FROM factors WHERE user_id = $1) "
    "AND NOT EXISTS (SELECT FROM passkeys WHERE user_id = $1)"
)
_HAS_OTHER_WAYS = "SELECT EXISTS (SELECT FROM identities WHERE user_id = $1 AND tenant_id IS DISTINCT FROM $2)"
_CHANGED = "UPDATE users SET factors_changed_at = $2 WHERE id = $1"
_AUDIT = "SELECT audit_append('user', $1, $2, $3, $4, $5, $6)"


def need(call: Call[ProvenSession], methods: tuple[str, ...] | None = None) -> None:
    """Raise MfaRequired unless the person has no factor yet, or showed one recently."""
    caller = call.caller
    known = caller.methods if methods is None else methods
    if not known:
        return
    policy = caller.policy
    if caller.tenant != personal(caller.user):
        # Factors count in every tenant of a person, so only their own may waive what guards them.
        policy = msgspec.structs.replace(policy, require_for={**policy.require_for, "recoveryCodes": True})
    msgspec.structs.replace(caller, methods=known, policy=policy).need(ANYBODY, "recoveryCodes")


@asynccontextmanager
async def changing(
    identity: Identity, call: Call[ProvenSession], *, way_in: bool = False, held: tuple[str, str] | None = None
) -> AsyncIterator[Any]:
    """A transaction that may change the factors of the person who asks; the tenant in scope is the session's.

    `way_in`: the factor signs in by itself, as a passkey does. `held`: kind and subject of an identity that changes.
    """
    need(call)
    async with identity.pool.acquire() as connection, connection.transaction():
        caller = call.caller
        if held is not None:
            await hold(connection, *held)
        await lock(connection, caller.user, caller.tenant)
        row = await connection.fetchrow(_STANDS, caller.tenant, caller.standing, caller.user)
        # Again: a factor may have been added since the proof was checked.
        need(call, tuple(row["methods"]))
        if caller.bound and (way_in or not row["methods"]):
            await _spare_what_is_elsewhere(connection, caller)
        yield connection


async def _spare_what_is_elsewhere(connection: Any, caller: ProvenSession) -> None:
    """Raise SessionBound if the person has a way to sign in beside this tenant's sign-on.

    Anyone who runs the tenant's identity provider could otherwise plant a factor on somebody who owns something
    elsewhere.
    """
    if await connection.fetchval(_HAS_OTHER_WAYS, caller.user, caller.tenant):
        raise SessionBound


async def lock(connection: Any, user: str, tenant: str = PLATFORM) -> None:
    """Have the person's factors to oneself until the transaction ends, with this tenant in scope."""
    if await connection.fetchval(_LOCK, user, tenant) is None:
        raise Deactivated


async def count(identity: Identity, kind: str, user: str) -> None:
    """Take one of the guesses that a person has at a kind of code, before it is looked at."""
    await attempts.count(identity, _subject(kind, user), GUESSES, GUESS_SECONDS)
    await attempts.count(identity, _long_subject(kind, user), LONG_GUESSES, LONG_SECONDS)


async def forget(connection: Any, kind: str, user: str) -> None:
    """The code was right."""
    await attempts.forget(connection, _subject(kind, user))
    await attempts.take_back(connection, _long_subject(kind, user))


async def find(connection: Any, identity: Identity, user: str, kind: str) -> str | None:
    """Find what a person's factor is of (of an authenticator an empty text); None without one, Tampered if not ours."""
    row = await connection.fetchrow(_FIND, user, kind)
    if row is None:
        return None
    subject = row["subject"] or ""
    identity.sealer.check_mac(row["mac"], _MAC, PLATFORM, fields(user, kind, subject))
    return subject


async def put(connection: Any, identity: Identity, user: str, kind: str, subject: str = "", last_step: int = 0) -> None:
    """Make something a factor, in place of the one of its kind."""
    mac = identity.sealer.mac(_MAC, PLATFORM, fields(user, kind, subject))
    await connection.execute(_PUT, user, kind, subject or None, mac, last_step)


async def remove(connection: Any, user: str, kind: str) -> None:
    """A factor no longer counts; FactorAbsent where there is none."""
    if not await connection.fetchval(_REMOVE, user, kind):
        raise FactorAbsent
    await clear_codes(connection, user)


async def clear_codes(connection: Any, user: str) -> None:
    """After a removal: without a factor beside them the recovery codes go."""
    await connection.execute(_CLEAR_CODES, user)


async def record(
    connection: Any, call: Call[ProvenSession], action: str, kind: str, subject: str, **metadata: Any
) -> None:
    """Note what became of a factor. What any session showed before this moment is no second factor any more.

    That is so for the session that asks, too: `sessions.stepped_up` after this, or it shows a factor again.
    """
    await connection.execute(_CHANGED, call.caller.user, clock.now())
    await note(connection, call, action, kind, subject, **metadata)


async def note(
    connection: Any, call: Call[ProvenSession], action: str, kind: str, subject: str, **metadata: Any
) -> None:
    """Append to the log of the session's tenant what became of a factor or passkey."""
    await connection.execute("SELECT set_config('custody.tenant', $1, true)", call.caller.tenant)
    said = msgspec.json.encode(metadata).decode()
    await connection.execute(_AUDIT, call.caller.principal, vet(action), kind, subject, said, call.origin_row)


def _subject(kind: str, user: str) -> str:
    return f"{kind}:{user}"


def _long_subject(kind: str, user: str) -> str:
    return f"{kind}-week:{user}"
