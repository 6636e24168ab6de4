"""Exchange codes: who was proven, for the client that holds the code and the verifier of its challenge.

The first try uses a code up, right or wrong: nobody guesses at a verifier. A code that comes again after it began a
session was stolen by somebody, so the session ends with it.
"""

import base64
import hashlib
import re
from datetime import datetime, timedelta
from typing import Any

import msgspec

from custody.kit import clock, tokens
from custody.protocol.identity.refusals import (
    CodeRedirectMismatch,
    CodeTenantMismatch,
    CodeVerifierMismatch,
    ExchangeCodeInvalid,
)
from custody.protocol.identity.sign_on import ExchangeCode
from custody.worker.proven import PLATFORM
from custody.worker.sealing import Tampered, fields
from identity.context import Identity
from identity.people import sessions
from identity.sign_on import destinations
from identity.sign_on.people import Proven
from identity.sign_on.requests import Request

SECONDS = 60
_MAC = "exchange-code"
# RFC 7636, 4.2, by S256.
CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
# RFC 7636, 4.1.
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")
_PUT = "INSERT INTO exchange_codes (code_hash, document, mac, expires_at) VALUES ($1, $2, $3, $4)"
_USE = (
    "UPDATE exchange_codes SET used_at = service_now() WHERE code_hash = $1 AND used_at IS NULL "
    "AND expires_at > service_now() RETURNING document, mac"
)
_BEGAN = "UPDATE exchange_codes SET session_id = $2 WHERE code_hash = $1"
_AGAIN = (
    "UPDATE sessions SET revoked_at = service_now() WHERE revoked_at IS NULL AND id = "
    "(SELECT session_id FROM exchange_codes WHERE code_hash = $1) RETURNING user_id"
)


class Granted(msgspec.Struct, frozen=True, kw_only=True):
    """A person who signed in at our own page for an app client, and how; their session may last until `until`."""

    user: str
    tenant: str
    client: str
    provider: str
    amr: tuple[str, ...]
    mfa_at: datetime | None
    until: datetime


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """The content that a code stands for: whom a provider proved, or who signed in at our own page."""

    proven: Proven | None = None
    granted: Granted | None = None
    redirect_uri: str
    challenge: str
    # A tenant's application gets the session, so it stays in that tenant.
    stays: bool
    ends_at: int


async def put(connection: Any, identity: Identity, proven: Proven, request: Request) -> str:
    """A code for the client that began the request."""
    until = clock.now() + timedelta(seconds=SECONDS)
    held = Document(
        proven=proven,
        redirect_uri=request.redirect_uri,
        challenge=request.challenge,
        stays=request.tenant is not None and not destinations.is_own(identity, request.redirect_uri),
        ends_at=int(until.timestamp()),
    )
    return await _store(connection, identity, held, until)


async def grant(connection: Any, identity: Identity, granted: Granted, redirect_uri: str, challenge: str) -> str:
    """A code for the app client at whose page here a person signed in."""
    until = clock.now() + timedelta(seconds=SECONDS)
    ends_at = int(until.timestamp())
    held = Document(granted=granted, redirect_uri=redirect_uri, challenge=challenge, stays=True, ends_at=ends_at)
    return await _store(connection, identity, held, until)


async def _store(connection: Any, identity: Identity, held: Document, until: datetime) -> str:
    code = tokens.new_random()
    document, hashed = msgspec.json.encode(held).decode(), tokens.digest(code)
    mac = identity.sealer.mac(_MAC, PLATFORM, fields(hashed, document))
    await connection.execute(_PUT, hashed, document, mac, until)
    return code


async def use(identity: Identity, message: ExchangeCode) -> Document:
    """Use a code up for good; of several at once one gets it. What it stands for."""
    hashed = tokens.digest(message.code)
    async with identity.pool.acquire() as connection:
        row = await connection.fetchrow(_USE, hashed)
        if row is None:
            if (ended := await connection.fetchval(_AGAIN, hashed)) is not None:
                await sessions.turn_away(connection, str(ended))
            raise ExchangeCodeInvalid
    try:
        identity.sealer.check_mac(row["mac"], _MAC, PLATFORM, fields(hashed, row["document"]))
    except Tampered:
        raise ExchangeCodeInvalid from None
    held = msgspec.json.decode(row["document"], type=Document)
    if held.ends_at <= clock.now().timestamp():
        raise ExchangeCodeInvalid
    if not _VERIFIER.fullmatch(message.code_verifier) or not tokens.equal(
        challenge_of(message.code_verifier).encode(), held.challenge.encode()
    ):
        raise CodeVerifierMismatch
    if message.redirect_uri is not None and message.redirect_uri != held.redirect_uri:
        raise CodeRedirectMismatch
    who = held.granted or held.proven
    if who is None:
        raise ExchangeCodeInvalid
    if message.tenant not in (None, who.tenant) or message.provider not in (None, who.provider):
        raise CodeTenantMismatch
    return held


async def note_session(connection: Any, code: str, session: str) -> None:
    """Note which session a code began, in the transaction that begins it."""
    await connection.execute(_BEGAN, tokens.digest(code), session)


def challenge_of(verifier: str) -> str:
    """The challenge of a verifier, by S256 (RFC 7636, 4.2)."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
