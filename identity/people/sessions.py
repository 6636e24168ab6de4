"""Sessions: begun on evidence, refreshed by a token that works once, raised by a second factor, ended.

A refresh token is the session's id and its generation under a MAC, so nothing of it is stored. Each use makes the
next generation. An older generation that comes back means that two parties hold the token: the session ends, because
identity cannot tell the thief from the owner.
"""

import base64
import binascii
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec

from custody.kit import clock, ids
from custody.kit.callers import Origin
from custody.protocol.identity.factors import ItemToken
from custody.protocol.identity.refusals import RefreshTokenInvalid, RefreshTokenReused, SessionAbsent
from custody.protocol.identity.sessions import (
    EndedSession,
    EndSession,
    Mfa,
    Profile,
    RefreshSession,
    SessionTenant,
    SignedIn,
    SwitchTenant,
)
from custody.protocol.refusals import NotForPages, SessionBound
from custody.worker.audited import vet
from custody.worker.call import Call
from custody.worker.proofs import SessionRevoked
from custody.worker.proven import PLATFORM, ProvenSession
from custody.worker.sealing import Tampered, fields
from identity.administration import origins
from identity.context import Identity
from identity.people import persons
from identity.people.persons import Membership
from identity.sign_on.domains import demand_sign_on
from identity.tokens import ACCESS_SECONDS, ITEM_SECONDS, Bound, Page, Session, item_token, session_token

SESSION_DAYS = 30
SESSION_MAC = "session-mac"
_REFRESH_MAC = "refresh-token"
_PREFIX = "rt_"
_TOKEN_BYTES = 16 + 4 + 36
_INSERT = (
    "INSERT INTO sessions (id, user_id, tenant_id, provider, amr, mfa_at, mac, created_at, used_at, expires_at, "
    "ip_address, user_agent, client_id, origin, bound_tenant, bound_until) "
    "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8, $9, $10, $11, $12, $13, $14, $15)"
)
# Anyone who signs in clears away what ended a month ago; never many at once.
_CLEAR = (
    "DELETE FROM sessions WHERE id IN (SELECT id FROM sessions "
    "WHERE LEAST(revoked_at, expires_at) < service_now() - interval '30 days' LIMIT 20 FOR UPDATE SKIP LOCKED)"
)
_LOCK = (
    "SELECT s.id, s.user_id, s.tenant_id, s.provider, s.amr, s.mfa_at, s.mac, s.generation, s.client_id, s.origin, "
    "s.bound_tenant, s.bound_until, "
    "s.mfa_at < u.factors_changed_at AS outdated FROM sessions s "
    "JOIN users u ON u.id = s.user_id WHERE s.id = $1 AND s.revoked_at IS NULL AND s.expires_at > service_now() "
    "AND u.deactivated_at IS NULL FOR UPDATE OF s"
)
# It may have been signed out of since, as the device page does.
_LETTING_IN = (
    "SELECT id, user_id, tenant_id, provider, amr, mfa_at, mac, generation, client_id, origin, bound_tenant, "
    "bound_until FROM sessions WHERE id = $1"
)
_NEXT = (
    "UPDATE sessions SET generation = $2, tenant_id = $3, amr = $4, mfa_at = $5, mac = $6, used_at = $7 WHERE id = $1"
)
_END = (
    "UPDATE sessions SET revoked_at = service_now() WHERE id = $1 AND user_id = $2 AND revoked_at IS NULL RETURNING id"
)
_TURN_AWAY = (
    "DELETE FROM device_codes d USING sessions s WHERE s.user_id = $1 AND s.revoked_at IS NOT NULL "
    "AND d.session_id = s.id AND d.status = 'approved'"
)
_AUDIT = "SELECT audit_append('user', $1, $2, 'session', $3, $4, $5)"


async def begin(  # noqa: PLR0913 - what a session consists of
    connection: Any,
    identity: Identity,
    origin: Origin,
    user: str,
    *,
    tenant: str | None,
    provider: str,
    amr: tuple[str, ...],
    mfa: bool = False,
    mfa_at: datetime | None = None,
    page: Page | None = None,
    bound: Bound | None = None,
    session_id: str | None = None,
) -> SignedIn:
    """Sign a person in and give their tokens. Call it in a transaction, after the nonce or code was used up."""
    now = clock.now()
    to = await (
        persons.home(connection, identity, user, origin)
        if tenant is None
        else persons.membership(connection, identity, user, tenant)
    )
    if not _signed_on(bound, amr, to.tenant):
        await demand_sign_on(connection, identity, user, to.tenant, to.role)
    session = Session(
        id=session_id or ids.new_uuid(),
        user=user,
        tenant=to.tenant,
        role=to.role,
        provider=provider,
        amr=amr,
        mfa_at=now if mfa else mfa_at,
        generation=1,
        page=page,
        bound=bound,
    )
    await connection.execute(
        _INSERT,
        session.id,
        user,
        to.tenant,
        provider,
        list(amr),
        session.mfa_at,
        _mac(identity, session),
        now,
        min(now + timedelta(days=SESSION_DAYS), bound.until) if bound else now + timedelta(days=SESSION_DAYS),
        origin.ip,
        origin.user_agent,
        page.client if page else None,
        page.origin if page else None,
        bound.tenant if bound else None,
        bound.until if bound else None,
    )
    await connection.execute(_CLEAR)
    said = {"clientId": page.client, "page": page.origin} if page else {}
    await note(connection, session, "session.began", origin, provider=provider, amr=list(amr), **said)
    return await to_answer(connection, identity, session, to)


async def refresh(identity: Identity, message: RefreshSession, call: Call[None]) -> SignedIn:
    """Give the next access and refresh tokens; the refresh token that was sent is used up."""
    session_id, generation = _open(identity, message.refresh_token)
    async with identity.pool.acquire() as connection, connection.transaction():
        session = await lock(connection, identity, session_id)
        if session is None or generation > session.generation:
            raise RefreshTokenInvalid
        if session.page and not await origins.is_page_of(identity, session.page, session.tenant):
            raise RefreshTokenInvalid
        if generation == session.generation:
            to = await _let_in(connection, identity, session, session.tenant)
            return await step(connection, identity, session, to)
        # Raising here would roll back the end of the session, so the refusal is raised after the commit.
        await connection.execute(_END, session.id, session.user)
        await turn_away(connection, session.user)
        await note(connection, session, "session.reuse_detected", call.origin)
    raise RefreshTokenReused


async def switch(identity: Identity, message: SwitchTenant, call: Call[ProvenSession]) -> SignedIn:
    """Continue the session in another tenant that the person belongs to."""
    async with identity.pool.acquire() as connection, connection.transaction():
        session = await own(connection, identity, call)
        to = await _let_in(connection, identity, session, message.tenant)
        await note(connection, session, "session.switched", call.origin, to=to.tenant)
        return await step(connection, identity, session, to)


async def end(identity: Identity, message: EndSession, call: Call[ProvenSession]) -> EndedSession:
    """Sign out, or revoke a named session of the same person at once, with the devices that it approved."""
    session = message.session or call.caller.session
    if call.caller.page is not None and session != call.caller.session:
        raise NotForPages
    if call.caller.bound and session != call.caller.session:
        raise SessionBound
    async with identity.pool.acquire() as connection, connection.transaction():
        if await connection.fetchval(_END, session, call.caller.user) is None:
            raise SessionAbsent
        if message.session is not None:
            await turn_away(connection, call.caller.user)
        await _record(connection, call.caller.tenant, call.caller.user, "session.ended", session, call.origin)
    return EndedSession(session)


async def turn_away(connection: Any, user: str) -> None:
    """Delete the device codes that ended sessions of a person approved, and that no device has fetched.

    A thief may end their own session to hide it, and what they approved must not outlive it. A plain sign-out does not
    call this, so that a person who approves a device and signs out, as the device page does, keeps the device.
    """
    await connection.execute(_TURN_AWAY, user)


async def own(connection: Any, identity: Identity, call: Call[ProvenSession]) -> Session:
    """The session that asks, locked until the transaction ends."""
    session = await lock(connection, identity, call.caller.session)
    if session is None:
        raise SessionRevoked
    return session


async def stepped_up(connection: Any, identity: Identity, call: Call[ProvenSession], method: str) -> SignedIn:
    """The session after a second factor was shown: with fresh MFA, and tokens that say so."""
    session = await own(connection, identity, call)
    to = await _let_in(connection, identity, session, call.caller.tenant)
    amr = tuple(dict.fromkeys((*session.amr, method, "mfa")))
    await note(connection, session, "session.stepped_up", call.origin, method=method)
    return await step(connection, identity, msgspec.structs.replace(session, amr=amr, mfa_at=clock.now()), to)


async def confirm_item(
    connection: Any, identity: Identity, call: Call[ProvenSession], item: tuple[str, str]
) -> ItemToken:
    """A token for one item of the session's own tenant. The session stays as it was."""
    session = await own(connection, identity, call)
    to = await _let_in(connection, identity, session, call.caller.tenant)
    await note(connection, session, "session.item_confirmed", call.origin, approval=item[0], digest=item[1])
    said = msgspec.structs.replace(session, tenant=to.tenant, role=to.role, amr=(*session.amr, "passkey", "mfa"))
    return ItemToken(item_token(identity.minter, said, item), ITEM_SECONDS)


async def step(connection: Any, identity: Identity, session: Session, to: Membership) -> SignedIn:
    """Write a locked session's next generation and give its tokens."""
    after = msgspec.structs.replace(session, generation=session.generation + 1, tenant=to.tenant, role=to.role)
    await connection.execute(
        _NEXT,
        after.id,
        after.generation,
        after.tenant,
        list(after.amr),
        after.mfa_at,
        _mac(identity, after),
        clock.now(),
    )
    return await to_answer(connection, identity, after, to)


async def _let_in(connection: Any, identity: Identity, session: Session, tenant: str) -> Membership:
    """Find the person's role in a session's next tenant; SsoRequired if that takes the tenant's own sign-on."""
    to = await persons.membership(connection, identity, session.user, tenant)
    if not _signed_on(session.bound, session.amr, tenant):
        await demand_sign_on(connection, identity, session.user, tenant, to.role)
    return to


def _signed_on(bound: Bound | None, amr: tuple[str, ...], tenant: str) -> bool:
    """Say whether the tenant's own sign-on began a session, or one that let in this device."""
    return bound is not None and bound.tenant == tenant and not {"saml", "oidc"}.isdisjoint(amr)


async def letting_in(connection: Any, identity: Identity, session_id: str) -> tuple[Bound | None, tuple[str, ...]]:
    """Of the session in which a device was let in what that device's has too: where it stays, and by which sign-on."""
    row = await connection.fetchrow(_LETTING_IN, session_id)
    if row is None:
        raise SessionRevoked
    session = read(row)
    identity.sealer.check_mac(row["mac"], SESSION_MAC, PLATFORM, content_of(session))
    if session.bound is None:
        return None, ()
    return session.bound, tuple(method for method in session.amr if method in ("oauth", "saml", "oidc"))


async def lock(connection: Any, identity: Identity, session_id: str) -> Session | None:
    """An active session, locked; Tampered if its row, the second factor above all, is not as identity wrote it.

    A second factor that was shown before the person's factors changed is left out, so no new token claims it.
    """
    row = await connection.fetchrow(_LOCK, session_id)
    if row is None:
        return None
    session = read(row)
    identity.sealer.check_mac(row["mac"], SESSION_MAC, PLATFORM, content_of(session))
    if session.bound and session.bound.until <= clock.now():
        return None
    return msgspec.structs.replace(session, mfa_at=None) if row["outdated"] else session


async def to_answer(connection: Any, identity: Identity, session: Session, to: Membership) -> SignedIn:
    """The tokens and the profile that a person gets when they sign in."""
    profile = await connection.fetchrow("SELECT * FROM user_profile($1)", session.user)
    methods = await connection.fetchval("SELECT mfa_methods($1)", session.user)
    return SignedIn(
        token=session_token(identity.minter, session),
        refresh_token=_refresh_token(identity, session),
        expires_in=ACCESS_SECONDS,
        user=Profile(session.user, profile["email"], profile["wallet"], profile["email_verified"]),
        tenant=SessionTenant(to.tenant, to.name, to.role, to.api_key),
        mfa=Mfa(clock.iso_or_none(session.mfa_at), list(methods)),
        provider=session.provider,
    )


async def note(connection: Any, session: Session, action: str, origin: Origin, **metadata: Any) -> None:
    """Append an audit event about a session to its tenant's log, in the transaction that changed the session."""
    await _record(connection, session.tenant, session.user, action, session.id, origin, **metadata)


async def _record(
    connection: Any, tenant: str, user: str, action: str, session: str, origin: Origin, **metadata: Any
) -> None:
    await connection.execute("SELECT set_config('custody.tenant', $1, true)", tenant)
    row = [origin.request_id, origin.ip, origin.user_agent]
    await connection.execute(_AUDIT, f"user:{user}", vet(action), session, msgspec.json.encode(metadata).decode(), row)


def read(row: Any) -> Session:
    """The row of a session, whose MAC nobody has looked at yet; the role is that of the membership, and not in it."""
    return Session(
        id=str(row["id"]),
        user=str(row["user_id"]),
        tenant=row["tenant_id"],
        role="member",
        provider=row["provider"],
        amr=tuple(row["amr"]),
        mfa_at=row["mfa_at"],
        generation=row["generation"],
        page=Page(row["client_id"], row["origin"]) if row["client_id"] else None,
        bound=Bound(row["bound_tenant"], row["bound_until"]) if row["bound_tenant"] else None,
    )


def content_of(session: Session) -> bytes:
    """Build what the MAC is of. What most sessions are not stands in none, so that those of before keep theirs."""
    moment = int(session.mfa_at.timestamp() * 1000) if session.mfa_at else 0
    page = (session.page.client, session.page.origin, session.tenant) if session.page else ()
    bound = ("bound", session.bound.tenant, clock.unix_microseconds(session.bound.until)) if session.bound else ()
    return fields(session.id, session.user, session.provider, " ".join(session.amr), moment, *page, *bound)


def _mac(identity: Identity, session: Session) -> bytes:
    return identity.sealer.mac(SESSION_MAC, PLATFORM, content_of(session))


def _refresh_token(identity: Identity, session: Session) -> str:
    body = UUID(session.id).bytes + session.generation.to_bytes(4, "big")
    return _encode(body + identity.sealer.mac(_REFRESH_MAC, PLATFORM, body))


def _encode(whole: bytes) -> str:
    return _PREFIX + base64.urlsafe_b64encode(whole).decode().rstrip("=")


def _open(identity: Identity, token: str) -> tuple[str, int]:
    """The session and generation of a token that identity made."""
    try:
        text = token.removeprefix(_PREFIX)
        whole = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        # Base64 has several spellings of the same bytes; only the one that identity writes is accepted.
        if len(whole) != _TOKEN_BYTES or _encode(whole) != token:
            raise RefreshTokenInvalid
        identity.sealer.check_mac(whole[20:], _REFRESH_MAC, PLATFORM, whole[:20])
    except (binascii.Error, ValueError, Tampered):
        raise RefreshTokenInvalid from None
    return str(UUID(bytes=whole[:16])), int.from_bytes(whole[16:20], "big")
