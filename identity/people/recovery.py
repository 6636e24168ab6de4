"""Recovery codes: ten, each for once, for the day on which every other factor is lost.

They are kept as MACs alone. A MAC depends on the version of the key it was made with, so a code is found by trying it
against each of the person's own.
"""

import secrets
from typing import Any

from custody.protocol.identity.factors import Confirmed, NewRecoveryCodes, RecoveryCodes
from custody.protocol.identity.refusals import CodeInvalid, NoFactor
from custody.protocol.identity.sessions import SignedIn
from custody.worker.call import Call
from custody.worker.proven import PLATFORM, ProvenSession
from custody.worker.sealing import Tampered, fields
from identity.context import Identity
from identity.people import factors, sessions, typed_codes

COUNT = 10
# No 0 and o, no 1, i and l: ten of these are 49.5 bits.
_LETTERS = "23456789abcdefghjkmnpqrstuvwxyz"
_HALF = 5
_MAC = "recovery-code"
_ANY_LEFT = "SELECT EXISTS (SELECT FROM recovery_codes WHERE user_id = $1 AND used_at IS NULL)"
_ANY_FACTOR = (
    "SELECT EXISTS (SELECT FROM factors WHERE user_id = $1) OR EXISTS (SELECT FROM passkeys WHERE user_id = $1)"
)
_CLEAR = "DELETE FROM recovery_codes WHERE user_id = $1"
_PUT = "INSERT INTO recovery_codes (user_id, mac) SELECT $1, unnest($2::bytea[])"
_UNUSED = "SELECT mac FROM recovery_codes WHERE user_id = $1 AND used_at IS NULL"
_USE = (
    "UPDATE recovery_codes SET used_at = service_now() "
    "WHERE user_id = $1 AND mac = $2 AND used_at IS NULL RETURNING true"
)


async def renew(identity: Identity, message: NewRecoveryCodes, call: Call[ProvenSession]) -> RecoveryCodes:
    """Ten new codes in place of all that there are."""
    user = call.caller.user
    async with factors.changing(identity, call) as connection:
        if not await connection.fetchval(_ANY_FACTOR, user):
            raise NoFactor
        codes = await _make(connection, identity, user)
        await factors.record(connection, call, "factor.codes_made", "factor", "recovery", count=COUNT)
    return RecoveryCodes(codes)


async def beside(connection: Any, identity: Identity, user: str) -> list[str] | None:
    """Make what is shown once beside a new factor: codes, unless the person has some that are not used."""
    if await connection.fetchval(_ANY_LEFT, user):
        return None
    return await _make(connection, identity, user)


def confirmation(session: SignedIn, codes: list[str] | None) -> Confirmed:
    """The session after a factor was confirmed, with the codes that came with it."""
    return Confirmed(
        session.token,
        session.refresh_token,
        session.expires_in,
        session.user,
        session.tenant,
        session.mfa,
        session.provider,
        codes,
    )


async def step_up(identity: Identity, call: Call[ProvenSession], code: str) -> SignedIn:
    """The session after a recovery code, which this uses up."""
    user = call.caller.user
    await factors.count(identity, "recovery", user)
    async with identity.pool.acquire() as connection, connection.transaction():
        await factors.lock(connection, user)
        rows = await connection.fetch(_UNUSED, user)
        mac = next((row["mac"] for row in rows if _is_of(identity, row["mac"], user, code)), None)
        if mac is None or not await connection.fetchval(_USE, user, mac):
            raise CodeInvalid
        await factors.forget(connection, "recovery", user)
        return await sessions.stepped_up(connection, identity, call, "recovery")


async def _make(connection: Any, identity: Identity, user: str) -> list[str]:
    codes = [f"{_half()}-{_half()}" for _ in range(COUNT)]
    macs = [identity.sealer.mac(_MAC, PLATFORM, _content(user, code)) for code in codes]
    await connection.execute(_CLEAR, user)
    await connection.execute(_PUT, user, macs)
    return codes


def _half() -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(_HALF))


def _is_of(identity: Identity, mac: bytes, user: str, code: str) -> bool:
    try:
        identity.sealer.check_mac(mac, _MAC, PLATFORM, _content(user, code))
    except Tampered:
        return False
    return True


def _content(user: str, code: str) -> bytes:
    """A code counts however people type it: with or without the dash, in any case."""
    return fields(user, typed_codes.read_recovery_code(code))
