"""Factors that were begun and wait ten minutes for their first code: one of each kind for a person."""

from datetime import datetime, timedelta
from typing import Any, Literal

import msgspec

from custody.kit import clock
from custody.protocol.identity.refusals import EnrolmentAbsent
from custody.worker.proven import PLATFORM
from custody.worker.sealing import fields
from identity.context import Identity

SECONDS = 600
_MAC = "enrolment-mac"
_PUT = (
    "INSERT INTO enrolments (user_id, kind, subject, blob, mac, expires_at) VALUES ($1, $2, $3, $4, $5, $6) "
    "ON CONFLICT (user_id, kind) DO UPDATE SET subject = excluded.subject, blob = excluded.blob, mac = excluded.mac, "
    "expires_at = excluded.expires_at"
)
_FIND = (
    "SELECT subject, blob, mac, expires_at FROM enrolments "
    "WHERE user_id = $1 AND kind = $2 AND expires_at > service_now()"
)
# Anyone who begins clears away what others left; never many at once.
_CLEAR = (
    "DELETE FROM enrolments WHERE (user_id, kind) IN "
    "(SELECT user_id, kind FROM enrolments WHERE expires_at < service_now() LIMIT 20 FOR UPDATE SKIP LOCKED)"
)
_END = "DELETE FROM enrolments WHERE user_id = $1 AND kind = $2"
Kind = Literal["totp", "sms"]


class Enrolment(msgspec.Struct, frozen=True):
    """An enrolment that was begun: a telephone number, or a sealed seed."""

    subject: str = ""
    blob: bytes = b""

    def __repr__(self) -> str:
        return "Enrolment()"


async def begin(connection: Any, identity: Identity, user: str, kind: Kind, begun: Enrolment) -> datetime:
    """Keep what was begun, in place of what was begun before; when it ends."""
    expires_at = clock.now() + timedelta(seconds=SECONDS)
    mac = identity.sealer.mac(_MAC, PLATFORM, _content(user, kind, begun, expires_at))
    await connection.execute(_PUT, user, kind, begun.subject or None, begun.blob or None, mac, expires_at)
    await connection.execute(_CLEAR)
    return expires_at


async def find(connection: Any, identity: Identity, user: str, kind: Kind) -> Enrolment:
    """Find what a person began and may still confirm."""
    row = await connection.fetchrow(_FIND, user, kind)
    if row is None:
        raise EnrolmentAbsent
    begun = Enrolment(row["subject"] or "", bytes(row["blob"] or b""))
    identity.sealer.check_mac(row["mac"], _MAC, PLATFORM, _content(user, kind, begun, row["expires_at"]))
    return begun


async def end(connection: Any, user: str, kind: Kind) -> None:
    """Confirmed: it waits no longer."""
    await connection.execute(_END, user, kind)


def _content(user: str, kind: Kind, begun: Enrolment, expires_at: datetime) -> bytes:
    return fields(user, kind, begun.subject, begun.blob, int(expires_at.timestamp() * 1000))
