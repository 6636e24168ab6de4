"""Six digits that somebody reads in a mail or a message: one living code for each subject, kept as a MAC alone."""

from datetime import datetime, timedelta
from typing import Any, Literal

from custody.kit import clock, tokens
from custody.protocol.identity.refusals import CodeInvalid
from custody.worker.proven import PLATFORM
from custody.worker.sealing import Tampered, fields
from identity.context import Identity
from identity.people import typed_codes

CODE_SECONDS = 600
# A code dies after this many wrong ones; the subject's own limit counts beside it.
TRIES = 5
_MAC = "sign-in-code"
Kind = Literal["email", "sms"]
_PUT = (
    "INSERT INTO sign_in_codes (kind, subject, mac, expires_at) VALUES ($1, $2, $3, $4) ON CONFLICT (kind, subject) "
    "DO UPDATE SET mac = excluded.mac, tries = 0, expires_at = excluded.expires_at"
)
_TRY = (
    "UPDATE sign_in_codes SET tries = tries + 1 WHERE kind = $1 AND subject = $2 AND tries < $3 "
    "AND expires_at > service_now() RETURNING mac, expires_at"
)
# Anyone who is sent one clears away what others left; never many at once.
_CLEAR = (
    "DELETE FROM sign_in_codes WHERE (kind, subject) IN "
    "(SELECT kind, subject FROM sign_in_codes WHERE expires_at < service_now() LIMIT 20 FOR UPDATE SKIP LOCKED)"
)
_USE = "DELETE FROM sign_in_codes WHERE kind = $1 AND subject = $2 AND mac = $3 RETURNING true"


async def put(identity: Identity, kind: Kind, subject: str) -> tuple[str, datetime]:
    """A fresh code, to be sent; the one before it no longer works."""
    code, expires_at = tokens.new_digits(), clock.now() + timedelta(seconds=CODE_SECONDS)
    mac = identity.sealer.mac(_MAC, PLATFORM, _content(kind, subject, code, expires_at))
    async with identity.pool.acquire() as connection:
        await connection.execute(_PUT, kind, subject, mac, expires_at)
        await connection.execute(_CLEAR)
    return code, expires_at


async def look(identity: Identity, kind: Kind, subject: str, code: str) -> bytes:
    """The MAC of the living code that this is, or CodeInvalid. The try is counted before it is looked at."""
    async with identity.pool.acquire() as connection:
        row = await connection.fetchrow(_TRY, kind, subject, TRIES)
    if row is None:
        raise CodeInvalid
    try:
        said = _content(kind, subject, typed_codes.read_digits(code), row["expires_at"])
        identity.sealer.check_mac(row["mac"], _MAC, PLATFORM, said)
    except Tampered:
        raise CodeInvalid from None
    return bytes(row["mac"])


async def use(connection: Any, kind: Kind, subject: str, mac: bytes) -> None:
    """Use up the code that was looked at, in the transaction that acts on it; of two at once one finds it gone."""
    if not await connection.fetchval(_USE, kind, subject, mac):
        raise CodeInvalid


def _content(kind: Kind, subject: str, code: str, expires_at: datetime) -> bytes:
    """Its end too, so that a used code which is put back ends when it always did."""
    return fields(kind, subject, code, int(expires_at.timestamp() * 1000))
