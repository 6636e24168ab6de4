"""Passkeys (WebAuthn): registered, signed in with, shown as a second factor, removed. Decisions 5.

A sign-in names nobody: the passkey says whose it is, so no answer tells which accounts there are.
"""

from typing import Any
from uuid import UUID

import asyncpg

from custody.kit import clock, ids
from custody.kit.errors import Conflict, NotFound, Unauthenticated
from custody.protocol.messages import (
    Done,
    NewPasskeyChallenge,
    NewSignInChallenge,
    Outcome,
    RegisterPasskey,
    RemovePasskey,
    SignInWithPasskey,
)
from signer.context import Ask, Signer
from signer.people import challenges, factors, recovery, sessions
from signer.people.webauthn_answers import (
    Asserted,
    Assertion,
    Attestation,
    Registered,
    assertion_options,
    registration_options,
    site_of,
)
from signer.proofs import PLATFORM, ProvenSession
from signer.sealing import fields

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


class PasskeyUnknown(Unauthenticated):
    """This passkey is not registered here."""


class PasskeyCloned(Unauthenticated):
    """This passkey's count went back, as that of a copy does; sign in another way and remove it."""


class UserUnverified(Unauthenticated):
    """The passkey did not ask who you are; here it has to, by code, finger or face."""


class PasskeyTaken(Conflict):
    """This passkey is registered already."""


class TooManyPasskeys(Conflict):
    """You have 20 passkeys; remove one that you do not use."""


class PasskeyAbsent(NotFound):
    """You have no such passkey."""


async def new_challenge(signer: Signer, message: NewPasskeyChallenge, ask: Ask[ProvenSession]) -> Outcome:
    """Options for a browser: to make a passkey, or to show one of the person's own."""
    user, site = ask.caller.user, site_of(signer.public_url)
    if message.purpose == "register":
        factors.need(ask)
    async with signer.pool.acquire() as connection:
        known = [row["credential_id"] for row in await connection.fetch(_OWN, user)]
        if message.purpose == "step_up" and not known:
            raise factors.FactorAbsent
        challenge = await challenges.new(connection, signer, message.purpose, ask.caller)
        if message.purpose == "step_up":
            return Done(assertion_options(site, challenge, known, verify_user=True))
        profile = await connection.fetchrow("SELECT * FROM user_profile($1)", user)
    name = profile["email"] or profile["wallet"] or user
    return Done(registration_options(site, challenge, UUID(user).bytes, name, known))


async def new_sign_in_challenge(signer: Signer, message: NewSignInChallenge, ask: Ask[None]) -> Outcome:
    """Options for a browser in which nobody is signed in; they name no passkey."""
    async with signer.pool.acquire() as connection:
        challenge = await challenges.new(connection, signer, "sign_in")
    return Done(assertion_options(site_of(signer.public_url), challenge, [], verify_user=False))


async def register(signer: Signer, message: RegisterPasskey, ask: Ask[ProvenSession]) -> Outcome:
    """A passkey counts from now on, to sign in and as a second factor; recovery codes come with the first factor."""
    factors.need(ask)
    answer = Attestation(message.credential)
    await challenges.take(signer, answer.challenge, "register", ask.caller)
    made = answer.check(site_of(signer.public_url), answer.challenge)
    passkey, now, name = ids.new_uuid(), clock.now(), message.name or DEFAULT_NAME
    async with factors.changing(signer, ask) as connection:
        await _put(connection, signer, ask.caller.user, made, (passkey, name, now))
        await factors.changed(connection, ask, "passkey.added", "passkey", passkey, name=name)
        codes = await recovery.beside(connection, signer, ask.caller.user)
    return Done({"id": passkey, "name": name, "createdAt": clock.iso(now), "transports": made.transports} | codes)


async def remove(signer: Signer, message: RemovePasskey, ask: Ask[ProvenSession]) -> Outcome:
    """A passkey of the person's own no longer counts."""
    user = ask.caller.user
    async with factors.changing(signer, ask) as connection:
        if not await connection.fetchval(_REMOVE, message.passkey, user):
            raise PasskeyAbsent
        await factors.clear_codes(connection, user)
        await factors.changed(connection, ask, "passkey.removed", "passkey", message.passkey)
    return Done({"deleted": message.passkey})


async def sign_in(signer: Signer, message: SignInWithPasskey, ask: Ask[None]) -> Outcome:
    """A session for the person whose passkey this is; with fresh MFA if it asked who he is."""
    row, asserted = await _asserted(signer, message.credential, None)
    user, verified = str(row["user_id"]), asserted.user_verified
    async with signer.pool.acquire() as connection, connection.transaction():
        await factors.lock(connection, user)
        await _use(connection, row, asserted)
        return Done(
            await sessions.begin(
                connection, signer, ask.origin, user, tenant=message.tenant, provider="passkey",
                amr=("passkey", "mfa") if verified else ("passkey",), mfa=verified,
            )
        )  # fmt: skip


async def step_up(signer: Signer, ask: Ask[ProvenSession], credential: dict[str, Any]) -> dict[str, Any]:
    """The session after a passkey that asked who its person is."""
    await factors.count(signer, "passkey", ask.caller.user)
    row, asserted = await _asserted(signer, credential, ask.caller)
    if not asserted.user_verified:
        raise UserUnverified
    async with signer.pool.acquire() as connection, connection.transaction():
        await factors.lock(connection, ask.caller.user)
        await _use(connection, row, asserted)
        await factors.forget(connection, "passkey", ask.caller.user)
        return await sessions.raised(connection, signer, ask, "passkey")


async def _asserted(signer: Signer, credential: dict[str, Any], caller: ProvenSession | None) -> tuple[Any, Asserted]:
    """The row of a passkey and what it signed; of the caller's own, where somebody is signed in."""
    answer = Assertion(credential)
    await challenges.take(signer, answer.challenge, "step_up" if caller else "sign_in", caller)
    async with signer.pool.acquire() as connection:
        row = await connection.fetchrow(_FIND, answer.credential_id)
    if row is None or (caller is not None and str(row["user_id"]) != caller.user):
        raise PasskeyUnknown
    user = str(row["user_id"])
    signer.sealer.check_mac(row["mac"], _MAC, PLATFORM, fields(user, answer.credential_id, row["public_key"]))
    # Only where nobody is signed in does the passkey have to say whose it is; it never may say another.
    if answer.user_handle != UUID(user).bytes and (caller is None or answer.user_handle is not None):
        raise PasskeyUnknown
    asserted = answer.check(site_of(signer.public_url), answer.challenge, bytes(row["public_key"]))
    return row, asserted


async def _use(connection: Any, row: Any, asserted: Asserted) -> None:
    if not await connection.fetchval(_USE, row["id"], asserted.sign_count):
        raise PasskeyCloned


async def _put(connection: Any, signer: Signer, user: str, made: Registered, shown: tuple[Any, ...]) -> None:
    if await connection.fetchval(_COUNT, user) >= MAX_PASSKEYS:
        raise TooManyPasskeys
    passkey, name, now = shown
    mac = signer.sealer.mac(_MAC, PLATFORM, fields(user, made.credential_id, made.public_key))
    try:
        await connection.execute(
            _PUT, passkey, user, made.credential_id, made.public_key, made.sign_count, made.transports, name, mac, now
        )
    except asyncpg.UniqueViolationError:
        raise PasskeyTaken from None
