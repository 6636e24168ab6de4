"""Passkeys (WebAuthn): registered, signed in with, shown as a second factor, removed.

A sign-in names nobody: the passkey says whose it is, so no answer tells which accounts there are.
"""

from typing import Any
from uuid import UUID

import asyncpg

from custody.kit import clock, ids
from custody.protocol.identity.factors import (
    ItemToken,
    NewItemChallenge,
    NewPasskey,
    NewPasskeyChallenge,
    RegisterPasskey,
    RemovedFactor,
    RemovePasskey,
    TouchItem,
)
from custody.protocol.identity.refusals import (
    FactorAbsent,
    LastLoginMethod,
    PasskeyAbsent,
    PasskeyCloned,
    PasskeyTaken,
    PasskeyUnknown,
    TooManyPasskeys,
    UserUnverified,
)
from custody.protocol.identity.sessions import SignedIn
from custody.protocol.identity.sign_in import NewSignInChallenge, SignInWithPasskey
from custody.worker.call import Call
from custody.worker.proven import PLATFORM, ProvenSession
from custody.worker.sealing import fields
from identity.context import Identity
from identity.people import challenges, factors, recovery, registration, sessions, ways_in
from identity.people.webauthn_answers import (
    Asserted,
    Assertion,
    Attestation,
    Registered,
    assertion_options,
    registration_options,
    site_of,
)
from identity.sign_on.domains import demand_own_way_in

MAX_PASSKEYS = 20
DEFAULT_NAME = "Passkey"
_MAC = "passkey-mac"
_OWN = "SELECT credential_id FROM passkeys WHERE user_id = $1 ORDER BY created_at DESC"
_COUNT = "SELECT count(*) FROM passkeys WHERE user_id = $1"
_FIND = "SELECT id, user_id, public_key, sign_count, mac FROM passkeys WHERE credential_id = $1"
_PUT = (
    "INSERT INTO passkeys (id, user_id, credential_id, public_key, sign_count, transports, name, mac, created_at) "
    "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"
)
# Of two answers with one count, or when the count went back, one finds no row. Some passkeys never count.
_USE = (
    "UPDATE passkeys SET sign_count = $2, used_at = service_now() "
    "WHERE id = $1 AND (sign_count < $2 OR (sign_count = 0 AND $2 = 0)) RETURNING true"
)
_REMOVE = "DELETE FROM passkeys WHERE id = $1 AND user_id = $2 RETURNING true"


async def new_challenge(identity: Identity, message: NewPasskeyChallenge, call: Call[ProvenSession]) -> dict[str, Any]:
    """Options for a browser: to make a passkey, or to show one of the person's own."""
    user, site = call.caller.user, site_of(identity.public_url)
    if message.purpose == "register":
        factors.need(call)
    async with identity.pool.acquire() as connection:
        known = [row["credential_id"] for row in await connection.fetch(_OWN, user)]
        if message.purpose == "step_up" and not known:
            raise FactorAbsent
        challenge = await challenges.new(connection, identity, message.purpose, call.caller)
        if message.purpose == "step_up":
            return assertion_options(site, challenge, known, verify_user=True)
        profile = await connection.fetchrow("SELECT * FROM user_profile($1)", user)
    name = profile["email"] or profile["wallet"] or user
    return registration_options(site, challenge, UUID(user).bytes, name, known)


async def new_sign_in_challenge(identity: Identity, message: NewSignInChallenge, call: Call[None]) -> dict[str, Any]:
    """Options for a browser in which nobody is signed in; they name no passkey."""
    async with identity.pool.acquire() as connection:
        challenge = await challenges.new(connection, identity, "sign_in")
    return assertion_options(site_of(identity.public_url), challenge, [], verify_user=False)


async def register(identity: Identity, message: RegisterPasskey, call: Call[ProvenSession]) -> NewPasskey:
    """A passkey counts from now on, to sign in and as a second factor; recovery codes come with the first factor."""
    factors.need(call)
    answer = Attestation(message.credential)
    await challenges.take(identity, answer.challenge, "register", call.caller)
    made = answer.check(site_of(identity.public_url), answer.challenge)
    passkey, now, name = ids.new_uuid(), clock.now(), message.name or DEFAULT_NAME
    async with factors.changing(identity, call, way_in=True) as connection:
        await _put(connection, identity, call.caller.user, made, (passkey, name, now))
        await factors.record(connection, call, "passkey.added", "passkey", passkey, name=name)
        codes = await recovery.beside(connection, identity, call.caller.user)
    return NewPasskey(passkey, name, clock.iso(now), list(made.transports), codes)


async def remove(identity: Identity, message: RemovePasskey, call: Call[ProvenSession]) -> RemovedFactor:
    """A passkey of the person's own no longer counts."""
    user = call.caller.user
    async with factors.changing(identity, call, way_in=True) as connection:
        if not await connection.fetchval(_REMOVE, message.passkey, user):
            raise PasskeyAbsent
        if not await ways_in.has_any(connection, user):
            raise LastLoginMethod
        await factors.clear_codes(connection, user)
        await factors.record(connection, call, "passkey.removed", "passkey", message.passkey)
    return RemovedFactor(message.passkey)


async def sign_in(identity: Identity, message: SignInWithPasskey, call: Call[None]) -> SignedIn:
    """A session for the person whose passkey this is; with fresh MFA if it asked who they are."""
    row, asserted = await _assertion(identity, message.credential, None)
    user, verified = str(row["user_id"]), asserted.user_verified
    async with identity.pool.acquire() as connection, connection.transaction():
        await registration.admit(connection, identity, call.origin, user, tenant=message.tenant, app=message.app)
        await factors.lock(connection, user)
        await _use(connection, row, asserted)
        await demand_own_way_in(connection, identity, user)
        return await sessions.begin(
            connection,
            identity,
            call.origin,
            user,
            tenant=message.tenant,
            provider="passkey",
            amr=("passkey", "mfa") if verified else ("passkey",),
            mfa=verified,
        )


async def step_up(identity: Identity, call: Call[ProvenSession], credential: dict[str, Any]) -> SignedIn:
    """The session after a passkey that asked who its person is."""
    await factors.count(identity, "passkey", call.caller.user)
    row, asserted = await _assertion(identity, credential, call.caller)
    if not asserted.user_verified:
        raise UserUnverified
    async with identity.pool.acquire() as connection, connection.transaction():
        await factors.lock(connection, call.caller.user)
        await _use(connection, row, asserted)
        await factors.forget(connection, "passkey", call.caller.user)
        return await sessions.stepped_up(connection, identity, call, "passkey")


async def new_item_challenge(
    identity: Identity, message: NewItemChallenge, call: Call[ProvenSession]
) -> dict[str, Any]:
    """Options for a browser to show one of the person's own passkeys for one item."""
    async with identity.pool.acquire() as connection:
        known = [row["credential_id"] for row in await connection.fetch(_OWN, call.caller.user)]
        if not known:
            raise FactorAbsent
        item = (message.approval, message.digest)
        challenge = await challenges.new(connection, identity, "approve", call.caller, item)
    return assertion_options(site_of(identity.public_url), challenge, known, verify_user=True)


async def touch_item(identity: Identity, message: TouchItem, call: Call[ProvenSession]) -> ItemToken:
    """A token to approve one item, after a passkey that asked who its person is; the session gains nothing."""
    await factors.count(identity, "passkey", call.caller.user)
    item = (message.approval, message.digest)
    row, asserted = await _assertion(identity, message.credential, call.caller, item)
    if not asserted.user_verified:
        raise UserUnverified
    async with identity.pool.acquire() as connection, connection.transaction():
        await factors.lock(connection, call.caller.user)
        await _use(connection, row, asserted)
        await factors.forget(connection, "passkey", call.caller.user)
        return await sessions.confirm_item(connection, identity, call, item)


async def _assertion(
    identity: Identity, credential: dict[str, Any], caller: ProvenSession | None, item: challenges.Item | None = None
) -> tuple[Any, Asserted]:
    """The row of a passkey and what it signed; of the caller's own, where somebody is signed in."""
    answer = Assertion(credential)
    purpose: challenges.Purpose = "approve" if item else "step_up" if caller else "sign_in"
    await challenges.take(identity, answer.challenge, purpose, caller, item)
    async with identity.pool.acquire() as connection:
        row = await connection.fetchrow(_FIND, answer.credential_id)
    if row is None or (caller is not None and str(row["user_id"]) != caller.user):
        raise PasskeyUnknown
    user = str(row["user_id"])
    identity.sealer.check_mac(row["mac"], _MAC, PLATFORM, fields(user, answer.credential_id, row["public_key"]))
    # Only where nobody is signed in does the passkey have to say whose it is; it never may say another.
    if answer.user_handle != UUID(user).bytes and (caller is None or answer.user_handle is not None):
        raise PasskeyUnknown
    asserted = answer.check(site_of(identity.public_url), answer.challenge, bytes(row["public_key"]))
    return row, asserted


async def _use(connection: Any, row: Any, asserted: Asserted) -> None:
    if not await connection.fetchval(_USE, row["id"], asserted.sign_count):
        raise PasskeyCloned


async def _put(connection: Any, identity: Identity, user: str, made: Registered, shown: tuple[Any, ...]) -> None:
    if await connection.fetchval(_COUNT, user) >= MAX_PASSKEYS:
        raise TooManyPasskeys
    passkey, name, now = shown
    mac = identity.sealer.mac(_MAC, PLATFORM, fields(user, made.credential_id, made.public_key))
    try:
        await connection.execute(
            _PUT, passkey, user, made.credential_id, made.public_key, made.sign_count, made.transports, name, mac, now
        )
    except asyncpg.UniqueViolationError:
        raise PasskeyTaken from None
