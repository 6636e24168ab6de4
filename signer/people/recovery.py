"""Recovery codes: ten, each for once, for the day on which every other factor is lost. Decisions 5.

They are kept as MACs alone. A MAC depends on the version of the key it was made with, so a code is found by trying it
against each of the person's own.
"""

import secrets
from typing import Any

from custody.kit.errors import Conflict
from custody.protocol.messages import Done, NewRecoveryCodes, Outcome
from signer.context import Ask, Signer
from signer.people import factors, sessions
from signer.people.codes import CodeInvalid
from signer.proofs import PLATFORM, ProvenSession
from signer.sealing import Tampered, fields

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


class NoFactor(Conflict):
    """Recovery codes stand in for a second factor; enrol one first."""


async def renew(signer: Signer, message: NewRecoveryCodes, ask: Ask[ProvenSession]) -> Outcome:
    """Ten new codes in place of all that there are."""
    user = ask.caller.user
    async with factors.changing(signer, ask) as connection:
        if not await connection.fetchval(_ANY_FACTOR, user):
            raise NoFactor
        codes = await _make(connection, signer, user)
        await factors.changed(connection, ask, "factor.codes_made", "factor", "recovery", count=COUNT)
    return Done({"recoveryCodes": codes})


async def beside(connection: Any, signer: Signer, user: str) -> dict[str, list[str]]:
    """What a session's answer shows once beside a new factor: codes, unless the person has some that are not used."""
    if await connection.fetchval(_ANY_LEFT, user):
        return {}
    return {"recoveryCodes": await _make(connection, signer, user)}


async def step_up(signer: Signer, ask: Ask[ProvenSession], code: str) -> dict[str, Any]:
    """The session after a recovery code, which this uses up."""
    user = ask.caller.user
    await factors.count(signer, "recovery", user)
    async with signer.pool.acquire() as connection, connection.transaction():
        await factors.lock(connection, user)
        rows = await connection.fetch(_UNUSED, user)
        mac = next((row["mac"] for row in rows if _is_of(signer, row["mac"], user, code)), None)
        if mac is None or not await connection.fetchval(_USE, user, mac):
            raise CodeInvalid
        await factors.forget(connection, "recovery", user)
        return await sessions.raised(connection, signer, ask, "recovery")


async def _make(connection: Any, signer: Signer, user: str) -> list[str]:
    codes = [f"{_half()}-{_half()}" for _ in range(COUNT)]
    macs = [signer.sealer.mac(_MAC, PLATFORM, _content(user, code)) for code in codes]
    await connection.execute(_CLEAR, user)
    await connection.execute(_PUT, user, macs)
    return codes


def _half() -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(_HALF))


def _is_of(signer: Signer, mac: bytes, user: str, code: str) -> bool:
    try:
        signer.sealer.check_mac(mac, _MAC, PLATFORM, _content(user, code))
    except Tampered:
        return False
    return True


def _content(user: str, code: str) -> bytes:
    """A code counts however people type it: with or without the dash, in any case."""
    return fields(user, "".join(code.split()).replace("-", "").lower())
