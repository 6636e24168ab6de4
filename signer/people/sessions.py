"""Sessions: begun on evidence, refreshed by a token that works once, raised by a second factor, ended. Decisions 5.

A refresh token is the session's id and its generation under a MAC, so nothing of it is stored. Each use makes the
next generation; an older one that comes back was stolen, or its thief came first, and the session ends either way.
"""

import base64
import binascii
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec

from custody.kit import clock, ids
from custody.kit.callers import Origin
from custody.kit.errors import NotFound, Unauthenticated
from custody.protocol.messages import Done, EndSession, Outcome, RefreshSession, SwitchTenant
from signer.context import Ask, Signer
from signer.people import persons
from signer.people.persons import Membership
from signer.proofs import PLATFORM, ProvenSession, SessionRevoked
from signer.sealing import Tampered, fields
from signer.tokens import ACCESS_SECONDS, Session

SESSION_DAYS = 30
_SESSION_MAC = "session-mac"
_REFRESH_MAC = "refresh-token"
_PREFIX = "rt_"
_TOKEN_BYTES = 16 + 4 + 36
_INSERT = (
    "INSERT INTO sessions (id, user_id, tenant_id, provider, amr, mfa_at, mac, created_at, used_at, expires_at, "
    "ip_address, user_agent) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8, $9, $10, $11)"
)
# Whoever signs in clears away what ended a month ago; never many at once.
_CLEAR = (
    "DELETE FROM sessions WHERE id IN (SELECT id FROM sessions "
    "WHERE LEAST(revoked_at, expires_at) < service_now() - interval '30 days' LIMIT 20 FOR UPDATE SKIP LOCKED)"
)
_LOCK = (
    "SELECT s.user_id, s.tenant_id, s.provider, s.amr, s.mfa_at, s.mac, s.generation, "
    "s.mfa_at < u.factors_changed_at AS outdated FROM sessions s "
    "JOIN users u ON u.id = s.user_id WHERE s.id = $1 AND s.revoked_at IS NULL AND s.expires_at > service_now() "
    "AND u.deactivated_at IS NULL FOR UPDATE OF s"
)
_NEXT = (
    "UPDATE sessions SET generation = $2, tenant_id = $3, amr = $4, mfa_at = $5, mac = $6, used_at = $7 WHERE id = $1"
)
_END = (
    "UPDATE sessions SET revoked_at = service_now() WHERE id = $1 AND user_id = $2 AND revoked_at IS NULL RETURNING id"
)
# Devices that sessions of a person let in which have ended since: also one that a thief signed out of, so as not to be
# seen. Who only signs out, as the device page does for him, keeps what he let in.
_TURN_AWAY = (
    "DELETE FROM device_codes d USING sessions s WHERE s.user_id = $1 AND s.revoked_at IS NOT NULL "
    "AND d.session_id = s.id AND d.status = 'approved'"
)
_AUDIT = "SELECT audit_append('user', $1, $2, 'session', $3, $4, $5)"


class RefreshTokenInvalid(Unauthenticated):
    """The refresh token is not valid; sign in again."""


class RefreshTokenReused(Unauthenticated):
    """This refresh token was used before. Its session is over, everywhere; sign in again."""


class SessionAbsent(NotFound):
    """You have no such session."""


async def begin(  # noqa: PLR0913 - what a session consists of
    connection: Any,
    signer: Signer,
    origin: Origin,
    user: str,
    *,
    tenant: str | None,
    provider: str,
    amr: tuple[str, ...],
    mfa: bool = False,
) -> dict[str, Any]:
    """Sign a person in; what the caller gets. Call it in a transaction; a nonce or code is used up before it."""
    now = clock.now()
    to = await (
        persons.home(connection, signer, user, origin)
        if tenant is None
        else persons.membership(connection, signer, user, tenant)
    )
    session = Session(
        id=ids.new_uuid(), user=user, tenant=to.tenant, role=to.role, provider=provider, amr=amr,
        mfa_at=now if mfa else None, generation=1,
    )  # fmt: skip
    await connection.execute(
        _INSERT, session.id, user, to.tenant, provider, list(amr), session.mfa_at, _mac(signer, session), now,
        now + timedelta(days=SESSION_DAYS), origin.ip, origin.user_agent,
    )  # fmt: skip
    await connection.execute(_CLEAR)
    await note(connection, session, "session.began", origin, provider=provider, amr=list(amr))
    return await shown(connection, signer, session, to)


async def refresh(signer: Signer, message: RefreshSession, ask: Ask[None]) -> Outcome:
    """The next access and refresh tokens; the one shown is used up."""
    session_id, generation = _opened(signer, message.refresh_token)
    async with signer.pool.acquire() as connection, connection.transaction():
        session = await locked(connection, signer, session_id)
        if session is None or generation > session.generation:
            raise RefreshTokenInvalid
        if generation == session.generation:
            to = await persons.membership(connection, signer, session.user, session.tenant)
            return Done(await step(connection, signer, session, to))
        # An old one: this must be remembered, so it is not raised before the commit.
        await connection.execute(_END, session.id, session.user)
        await connection.execute(_TURN_AWAY, session.user)
        await note(connection, session, "session.reuse_detected", ask.origin)
    raise RefreshTokenReused


async def switch(signer: Signer, message: SwitchTenant, ask: Ask[ProvenSession]) -> Outcome:
    """Go on in another tenant of the person's own."""
    async with signer.pool.acquire() as connection, connection.transaction():
        session = await own(connection, signer, ask)
        to = await persons.membership(connection, signer, session.user, message.tenant)
        await note(connection, session, "session.switched", ask.origin, to=to.tenant)
        return Done(await step(connection, signer, session, to))


async def end(signer: Signer, message: EndSession, ask: Ask[ProvenSession]) -> Outcome:
    """Sign out, or revoke a session of the person's own, at once; what is named is not trusted, nor what it let in."""
    session = message.session or ask.caller.session
    async with signer.pool.acquire() as connection, connection.transaction():
        if await connection.fetchval(_END, session, ask.caller.user) is None:
            raise SessionAbsent
        if message.session is not None:
            await connection.execute(_TURN_AWAY, ask.caller.user)
        await _record(connection, ask.caller.tenant, ask.caller.user, "session.ended", session, ask.origin)
    return Done({"deleted": session})


async def own(connection: Any, signer: Signer, ask: Ask[ProvenSession]) -> Session:
    """The session that asks, locked until the transaction ends."""
    session = await locked(connection, signer, ask.caller.session)
    if session is None:
        raise SessionRevoked
    return session


async def raised(connection: Any, signer: Signer, ask: Ask[ProvenSession], method: str) -> dict[str, Any]:
    """The session after a second factor was shown: with fresh MFA, and tokens that say so."""
    session = await own(connection, signer, ask)
    to = await persons.membership(connection, signer, session.user, ask.caller.tenant)
    amr = tuple(dict.fromkeys((*session.amr, method, "mfa")))
    await note(connection, session, "session.stepped_up", ask.origin, method=method)
    return await step(connection, signer, msgspec.structs.replace(session, amr=amr, mfa_at=clock.now()), to)


async def step(connection: Any, signer: Signer, session: Session, to: Membership) -> dict[str, Any]:
    """Write a locked session's next generation and give its tokens."""
    after = msgspec.structs.replace(session, generation=session.generation + 1, tenant=to.tenant, role=to.role)
    await connection.execute(
        _NEXT, after.id, after.generation, after.tenant, list(after.amr), after.mfa_at, _mac(signer, after), clock.now()
    )
    return await shown(connection, signer, after, to)


async def locked(connection: Any, signer: Signer, session_id: str) -> Session | None:
    """A living session, locked; Tampered if the signer did not write what it says of a second factor.

    What it showed before the person's factors changed is left out, so no token says it again.
    """
    row = await connection.fetchrow(_LOCK, session_id)
    if row is None:
        return None
    session = Session(
        id=session_id, user=str(row["user_id"]), tenant=row["tenant_id"], role="member", provider=row["provider"],
        amr=tuple(row["amr"]), mfa_at=row["mfa_at"], generation=row["generation"],
    )  # fmt: skip
    signer.sealer.check_mac(row["mac"], _SESSION_MAC, PLATFORM, _content(session))
    return msgspec.structs.replace(session, mfa_at=None) if row["outdated"] else session


async def shown(connection: Any, signer: Signer, session: Session, to: Membership) -> dict[str, Any]:
    """What a person gets who signed in. Decisions 5."""
    profile = await connection.fetchrow("SELECT * FROM user_profile($1)", session.user)
    methods = await connection.fetchval("SELECT mfa_methods($1)", session.user)
    tenant = {"id": to.tenant, "name": to.name, "role": to.role}
    return {
        "token": signer.minter.session_token(session),
        "refreshToken": _refresh_token(signer, session),
        "expiresIn": ACCESS_SECONDS,
        "user": {"id": session.user, "email": profile["email"], "walletAddress": profile["wallet"]},
        "tenant": tenant | ({"apiKey": to.api_key} if to.api_key else {}),
        "mfa": {"verifiedAt": _iso(session.mfa_at), "methods": list(methods)},
        "provider": session.provider,
    }


async def note(connection: Any, session: Session, action: str, origin: Origin, **metadata: Any) -> None:
    """Append what became of a session to its tenant's log, in the transaction that did it."""
    await _record(connection, session.tenant, session.user, action, session.id, origin, **metadata)


async def _record(
    connection: Any, tenant: str, user: str, action: str, session: str, origin: Origin, **metadata: Any
) -> None:
    await connection.execute("SELECT set_config('custody.tenant', $1, true)", tenant)
    row = [origin.request_id, origin.ip, origin.user_agent]
    await connection.execute(_AUDIT, f"user:{user}", action, session, msgspec.json.encode(metadata).decode(), row)


def _iso(moment: datetime | None) -> str | None:
    return clock.iso(moment) if moment else None


def _content(session: Session) -> bytes:
    moment = int(session.mfa_at.timestamp() * 1000) if session.mfa_at else 0
    return fields(session.id, session.user, session.provider, " ".join(session.amr), moment)


def _mac(signer: Signer, session: Session) -> bytes:
    return signer.sealer.mac(_SESSION_MAC, PLATFORM, _content(session))


def _refresh_token(signer: Signer, session: Session) -> str:
    body = UUID(session.id).bytes + session.generation.to_bytes(4, "big")
    return _written(body + signer.sealer.mac(_REFRESH_MAC, PLATFORM, body))


def _written(whole: bytes) -> str:
    return _PREFIX + base64.urlsafe_b64encode(whole).decode().rstrip("=")


def _opened(signer: Signer, token: str) -> tuple[str, int]:
    """The session and generation of a token that the signer made."""
    try:
        text = token.removeprefix(_PREFIX)
        whole = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        # One spelling only: base64 has others of the same bytes.
        if len(whole) != _TOKEN_BYTES or _written(whole) != token:
            raise RefreshTokenInvalid
        signer.sealer.check_mac(whole[20:], _REFRESH_MAC, PLATFORM, whole[:20])
    except (binascii.Error, ValueError, Tampered):
        raise RefreshTokenInvalid from None
    return str(UUID(bytes=whole[:16])), int.from_bytes(whole[16:20], "big")
