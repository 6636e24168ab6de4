"""Authenticator apps (RFC 6238: SHA-1, six digits, thirty seconds). A code works once, and no older one after it.

The seed is shown when it is made and never again; it counts only after a code of it was shown.
"""

import base64
import os

from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.hotp import HOTP
from cryptography.hazmat.primitives.twofactor.totp import TOTP

from custody.kit import clock, tokens
from custody.protocol.identity.factors import (
    Confirmed,
    ConfirmTotp,
    EnrolTotp,
    RemovedFactor,
    RemoveTotp,
    TotpEnrolment,
)
from custody.protocol.identity.refusals import CodeInvalid, FactorExists
from custody.protocol.identity.sessions import SignedIn
from custody.worker.call import Call
from custody.worker.proven import PLATFORM, ProvenSession
from custody.worker.sealing import Context
from identity.context import Identity
from identity.people import enrolments, factors, recovery, sessions, typed_codes
from identity.people.enrolments import Enrolment

ISSUER = "Custody"
DIGITS, STEP_SECONDS = 6, 30
# Clocks differ, and people type: one step before and one after count too.
WINDOW = (1, 0, -1)
# As long as a SHA-1, as RFC 4226 recommends.
_SEED_BYTES = 20
_PURPOSE, _BEGUN = "totp", "totp-enrolment"
_SCOPE = "SELECT set_config('custody.tenant', $1, true)"
_KEEP = (
    "INSERT INTO identity_sealed (tenant_id, owner_kind, owner, purpose, key_version, blob) "
    "VALUES ($1, 'user', $2, $3, $4, $5)"
)
_OPEN = "SELECT blob FROM identity_sealed WHERE tenant_id = $1 AND owner_kind = 'user' AND owner = $2 AND purpose = $3"
_DESTROY = "DELETE FROM identity_sealed WHERE tenant_id = $1 AND owner_kind = 'user' AND owner = $2 AND purpose = $3"
_USE = "UPDATE factors SET last_step = $2 WHERE user_id = $1 AND kind = 'totp' AND last_step < $2 RETURNING true"


async def enrol(identity: Identity, message: EnrolTotp, call: Call[ProvenSession]) -> TotpEnrolment:
    """A seed, as text and as the address that an app reads from a picture."""
    user, seed = call.caller.user, os.urandom(_SEED_BYTES)
    async with factors.changing(identity, call) as connection:
        if await factors.find(connection, identity, user, "totp") is not None:
            raise FactorExists
        profile = await connection.fetchrow("SELECT * FROM user_profile($1)", user)
        begun = Enrolment(blob=identity.sealer.seal(seed, _context(user, _BEGUN)))
        expires_at = await enrolments.begin(connection, identity, user, "totp", begun)
    name = profile["email"] or profile["wallet"] or user
    uri = TOTP(seed, DIGITS, SHA1(), STEP_SECONDS).get_provisioning_uri(name, ISSUER)  # noqa: S303 - as apps have it
    secret = base64.b32encode(seed).decode()
    return TotpEnrolment(secret, uri, clock.iso(expires_at))


async def confirm(identity: Identity, message: ConfirmTotp, call: Call[ProvenSession]) -> Confirmed:
    """The seed counts from now on; the session has shown it, and recovery codes come with it."""
    user = call.caller.user
    factors.need(call)
    await factors.count(identity, "totp", user)
    async with factors.changing(identity, call) as connection:
        begun = await enrolments.find(connection, identity, user, "totp")
        seed = identity.sealer.open(begun.blob, _context(user, _BEGUN))
        step = _step_of(seed, message.code)
        if step is None:
            raise CodeInvalid
        await enrolments.end(connection, user, "totp")
        # This code was its first use.
        await factors.put(connection, identity, user, "totp", last_step=step)
        await connection.execute(_SCOPE, PLATFORM)
        sealed = identity.sealer.seal(seed, _context(user, _PURPOSE))
        await connection.execute(_KEEP, PLATFORM, user, _PURPOSE, identity.sealer.key_version, sealed)
        await factors.forget(connection, "totp", user)
        await factors.record(connection, call, "factor.enrolled", "factor", "totp")
        codes = await recovery.beside(connection, identity, user)
        return recovery.confirmation(await sessions.stepped_up(connection, identity, call, "totp"), codes)


async def remove(identity: Identity, message: RemoveTotp, call: Call[ProvenSession]) -> RemovedFactor:
    """The authenticator no longer counts, and its seed is gone."""
    user = call.caller.user
    async with factors.changing(identity, call) as connection:
        await factors.remove(connection, user, "totp")
        await connection.execute(_SCOPE, PLATFORM)
        await connection.execute(_DESTROY, PLATFORM, user, _PURPOSE)
        await factors.record(connection, call, "factor.removed", "factor", "totp")
    return RemovedFactor("totp")


async def step_up(identity: Identity, call: Call[ProvenSession], code: str) -> SignedIn:
    """The session after a code of the authenticator, which this uses up."""
    user = call.caller.user
    await factors.count(identity, "totp", user)
    async with identity.pool.acquire() as connection, connection.transaction():
        await factors.lock(connection, user)
        if await factors.find(connection, identity, user, "totp") is None:
            raise CodeInvalid
        blob = await connection.fetchval(_OPEN, PLATFORM, user, _PURPOSE)
        step = _step_of(identity.sealer.open(blob or b"", _context(user, _PURPOSE)), code)
        if step is None or not await connection.fetchval(_USE, user, step):
            raise CodeInvalid
        await factors.forget(connection, "totp", user)
        return await sessions.stepped_up(connection, identity, call, "totp")


def _step_of(seed: bytes, code: str) -> int | None:
    """The newest time step that the code may be of now: where two have the same code, both are used up."""
    now = int(clock.now().timestamp()) // STEP_SECONDS
    hotp, given = HOTP(seed, DIGITS, SHA1()), typed_codes.read_digits(code).encode()  # noqa: S303 - as apps have it
    fitting = [now + off for off in WINDOW if tokens.equal(hotp.generate(now + off), given)]
    return fitting[0] if fitting else None


def _context(user: str, purpose: str) -> Context:
    return Context(PLATFORM, "user", user, purpose)
