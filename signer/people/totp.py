"""Authenticator apps (RFC 6238: SHA-1, six digits, thirty seconds). A code works once, and no older one after it.

The seed is shown when it is made and never again; it counts only after a code of it was shown. Decisions 5.
"""

import base64
import os
from typing import Any

from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.hotp import HOTP
from cryptography.hazmat.primitives.twofactor.totp import TOTP

from custody.kit import clock, tokens
from custody.protocol.messages import ConfirmTotp, Done, EnrolTotp, Outcome, RemoveTotp
from signer.context import Ask, Signer
from signer.people import enrolments, factors, recovery, sessions
from signer.people.codes import CodeInvalid
from signer.people.enrolments import Enrolment
from signer.proofs import PLATFORM, ProvenSession
from signer.sealing import Context

ISSUER = "Custody"
DIGITS, STEP_SECONDS = 6, 30
# Clocks differ, and people type: one step before and one after count too.
WINDOW = (1, 0, -1)
# As long as a SHA-1, as RFC 4226 recommends.
_SEED_BYTES = 20
_PURPOSE, _BEGUN = "totp", "totp-enrolment"
_SCOPE = "SELECT set_config('custody.tenant', $1, true)"
_KEEP = (
    "INSERT INTO sealed (tenant_id, owner_kind, owner, purpose, key_version, blob) VALUES ($1, 'user', $2, $3, $4, $5)"
)
_OPEN = "SELECT blob FROM sealed WHERE tenant_id = $1 AND owner_kind = 'user' AND owner = $2 AND purpose = $3"
_DESTROY = "DELETE FROM sealed WHERE tenant_id = $1 AND owner_kind = 'user' AND owner = $2 AND purpose = $3"
_USE = "UPDATE factors SET last_step = $2 WHERE user_id = $1 AND kind = 'totp' AND last_step < $2 RETURNING true"


async def enrol(signer: Signer, message: EnrolTotp, ask: Ask[ProvenSession]) -> Outcome:
    """A seed, as text and as the address that an app reads from a picture."""
    user, seed = ask.caller.user, os.urandom(_SEED_BYTES)
    async with factors.changing(signer, ask) as connection:
        if await factors.find(connection, signer, user, "totp") is not None:
            raise factors.FactorExists
        profile = await connection.fetchrow("SELECT * FROM user_profile($1)", user)
        begun = Enrolment(blob=signer.sealer.seal(seed, _context(user, _BEGUN)))
        expires_at = await enrolments.begin(connection, signer, user, "totp", begun)
    name = profile["email"] or profile["wallet"] or user
    uri = TOTP(seed, DIGITS, SHA1(), STEP_SECONDS).get_provisioning_uri(name, ISSUER)  # noqa: S303 - as apps have it
    secret = base64.b32encode(seed).decode()
    return Done({"secret": secret, "otpauthUri": uri, "expiresAt": clock.iso(expires_at)})


async def confirm(signer: Signer, message: ConfirmTotp, ask: Ask[ProvenSession]) -> Outcome:
    """The seed counts from now on; the session has shown it, and recovery codes come with it."""
    user = ask.caller.user
    factors.need(ask)
    await factors.count(signer, "totp", user)
    async with factors.changing(signer, ask) as connection:
        begun = await enrolments.find(connection, signer, user, "totp")
        seed = signer.sealer.open(begun.blob, _context(user, _BEGUN))
        step = _step_of(seed, message.code)
        if step is None:
            raise CodeInvalid
        await enrolments.end(connection, user, "totp")
        # This code was its first use.
        await factors.put(connection, signer, user, "totp", last_step=step)
        await connection.execute(_SCOPE, PLATFORM)
        sealed = signer.sealer.seal(seed, _context(user, _PURPOSE))
        await connection.execute(_KEEP, PLATFORM, user, _PURPOSE, signer.sealer.key_version, sealed)
        await factors.forget(connection, "totp", user)
        await factors.changed(connection, ask, "factor.enrolled", "factor", "totp")
        codes = await recovery.beside(connection, signer, user)
        return Done(await sessions.raised(connection, signer, ask, "totp") | codes)


async def remove(signer: Signer, message: RemoveTotp, ask: Ask[ProvenSession]) -> Outcome:
    """The authenticator no longer counts, and its seed is gone."""
    user = ask.caller.user
    async with factors.changing(signer, ask) as connection:
        await factors.remove(connection, user, "totp")
        await connection.execute(_SCOPE, PLATFORM)
        await connection.execute(_DESTROY, PLATFORM, user, _PURPOSE)
        await factors.changed(connection, ask, "factor.removed", "factor", "totp")
    return Done({"deleted": "totp"})


async def step_up(signer: Signer, ask: Ask[ProvenSession], code: str) -> dict[str, Any]:
    """The session after a code of the authenticator, which this uses up."""
    user = ask.caller.user
    await factors.count(signer, "totp", user)
    async with signer.pool.acquire() as connection, connection.transaction():
        await factors.lock(connection, user)
        if await factors.find(connection, signer, user, "totp") is None:
            raise CodeInvalid
        blob = await connection.fetchval(_OPEN, PLATFORM, user, _PURPOSE)
        step = _step_of(signer.sealer.open(blob or b"", _context(user, _PURPOSE)), code)
        if step is None or not await connection.fetchval(_USE, user, step):
            raise CodeInvalid
        await factors.forget(connection, "totp", user)
        return await sessions.raised(connection, signer, ask, "totp")


def _step_of(seed: bytes, code: str) -> int | None:
    """The newest time step that the code may be of now: where two have the same code, both are used up."""
    now = int(clock.now().timestamp()) // STEP_SECONDS
    hotp, given = HOTP(seed, DIGITS, SHA1()), code.encode()  # noqa: S303 - as apps have it
    fitting = [now + off for off in WINDOW if tokens.equal(hotp.generate(now + off), given)]
    return fitting[0] if fitting else None


def _context(user: str, purpose: str) -> Context:
    return Context(PLATFORM, "user", user, purpose)
