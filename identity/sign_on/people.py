"""The person whom an identity provider has proven, and what becomes of them here.

Google, Discord and X prove an account and nothing else: a new account is a new person, whatever address it brings. A
tenant's own provider speaks for that tenant alone: it opens accounts of its members and new ones, never anybody
else's, and the session stays in the tenant. That is what makes it safe to find its members by their address.
"""

from datetime import datetime, timedelta
from typing import Any, Literal

import msgspec

from custody.kit import clock
from custody.kit.callers import Origin
from custody.kit.shapes import Role
from custody.protocol.identity.refusals import (
    AccountUnknown,
    Deactivated,
    MembershipRemoved,
    NotAMember,
    RegistrationClosed,
)
from custody.protocol.identity.sessions import SignedIn
from custody.worker.acts import enter
from custody.worker.audited import vet
from custody.worker.proven import PLATFORM
from custody.worker.sealing import fields
from identity.context import Identity
from identity.people import members, persons, registration, sessions
from identity.people.persons import Known
from identity.tokens import Bound

SESSION_HOURS = 12
SSO_MEMBERSHIP_MAC = "sso-membership-mac"
_AMR = {"oidc": "oidc", "saml": "saml"}
# Members by a proven address of theirs; one address is one identity.
_BY_ADDRESS = (
    "SELECT i.user_id FROM identities i JOIN memberships m ON m.user_id = i.user_id AND m.tenant_id = $1 "
    "WHERE i.kind = 'email' AND i.subject = $2 AND i.verified"
)
# Accounts at the tenant's providers of everybody who has an address, as it was shown or as it was proven.
_ACCOUNTS_BY_ADDRESS = (
    "SELECT kind, subject, user_id, tenant_id, verified, blocked_at, mac FROM identities WHERE tenant_id = $1 AND "
    "user_id IN (SELECT id FROM users WHERE lower(profile_email) = lower($2) UNION ALL "
    "SELECT user_id FROM identities WHERE kind = 'email' AND subject = lower($2) AND verified)"
)
_MADE_BY_SIGN_ON = "SELECT mac FROM sso_memberships WHERE tenant_id = $1 AND user_id = $2"
_NOTE_MADE = "INSERT INTO sso_memberships (tenant_id, user_id, mac) VALUES ($1, $2, $3)"
_AUDIT = "SELECT audit_append('user', $1, $2, 'user', $3, $4, $5)"


class Proven(msgspec.Struct, frozen=True, kw_only=True):
    """The proof of a provider. `subject` is what stays the same, never an address or a handle.

    Of a tenant's provider: `email` is in a domain that the tenant has proven, `role` what its groups say, `newcomers`
    whether it lets in people whom nobody invited, `until` when it wants the session over.
    """

    kind: Literal["google", "discord", "twitter", "oidc", "saml"]
    subject: str
    provider: str
    tenant: str | None
    name: str | None = None
    shown_email: str | None = None
    email: str | None = None
    role: Role | None = None
    newcomers: bool = False
    until: datetime | None = None
    # Of the three: the app client at whose page here they sign in, which may register them.
    app: str | None = None

    @property
    def of_tenant(self) -> bool:
        """True if a tenant's own provider proved it."""
        return self.kind in _AMR

    def __repr__(self) -> str:
        return f"Proven({self.provider})"


class _Comes(msgspec.Struct, frozen=True):
    """The person: somebody known, or (None) a new person; `linked`: by their address, for the first time."""

    user: str | None
    linked: bool = False


def subject_of(*parts: str) -> str:
    """Several parts as one subject that no other parts make."""
    return msgspec.json.encode(parts).decode()


def role_of(proven: Proven) -> Role:
    """The role of a person whom it makes a member: what the groups say, else one that only reads."""
    return proven.role or "viewer"


async def demand(connection: Any, identity: Identity, proven: Proven) -> None:
    """Raise unless somebody would come in. Nothing is written."""
    await _who(connection, identity, proven)


async def sign_in(
    connection: Any, identity: Identity, origin: Origin, proven: Proven, session_id: str, *, stays: bool
) -> tuple[SignedIn, str | None]:
    """Begin the session, under this id, of a proven person, who is made or added to where that is due.

    `stays`: a tenant's application gets the session, so it must not reach what the person has elsewhere. The second
    value is the address of somebody who has this way to sign in from now on.
    """
    comes = await _who(connection, identity, proven)
    tenant = proven.tenant
    user = comes.user or await persons.make(connection, name=proven.name, shown_email=proven.shown_email)
    if comes.user is None or comes.linked:
        await persons.add_identity(connection, identity, _identity_of(proven, user))
    if not proven.of_tenant:
        await registration.admit(connection, identity, origin, user, tenant=tenant, app=proven.app)
        session = await sessions.begin(
            connection,
            identity,
            origin,
            user,
            tenant=tenant,
            provider=proven.provider,
            amr=("oauth",),
            session_id=session_id,
            bound=Bound(tenant, clock.now() + timedelta(days=sessions.SESSION_DAYS)) if stays and tenant else None,
        )
        return session, None
    assert tenant is not None  # noqa: S101 - a tenant's provider
    await enter(connection, tenant)
    if comes.linked:
        await _note(connection, user, "sso.account_linked", origin, provider=proven.provider)
    await _put_role(connection, identity, origin, user, proven, new=comes.user is None)
    latest = clock.now() + timedelta(hours=SESSION_HOURS)
    session = await sessions.begin(
        connection,
        identity,
        origin,
        user,
        tenant=tenant,
        provider=proven.provider,
        amr=(_AMR[proven.kind],),
        session_id=session_id,
        bound=Bound(tenant, min(latest, proven.until) if proven.until else latest),
    )
    return session, proven.email if comes.linked else None


async def _who(connection: Any, identity: Identity, proven: Proven) -> _Comes:
    found = await persons.find(connection, identity, proven.kind, proven.subject)
    if found is not None and not found.active:
        raise Deactivated
    if not proven.of_tenant:
        return await _anybody(connection, identity, proven, found)
    assert proven.tenant is not None  # noqa: S101 - a tenant's provider
    await enter(connection, proven.tenant)
    if found is not None:
        if found.blocked:
            raise MembershipRemoved
        await _demand_member(connection, identity, found.user, proven.tenant)
        return _Comes(found.user)
    if proven.email is not None and (user := await connection.fetchval(_BY_ADDRESS, proven.tenant, proven.email)):
        address = await persons.find(connection, identity, "email", proven.email)
        if address is not None and address.verified and address.user == str(user):
            if not address.active:
                raise Deactivated
            await _demand_member(connection, identity, address.user, proven.tenant)
            return _Comes(address.user, linked=True)
    if not proven.newcomers:
        raise AccountUnknown
    await _demand_not_removed(connection, identity, proven.tenant, proven.email)
    return _Comes(None)


async def _anybody(connection: Any, identity: Identity, proven: Proven, found: Known | None) -> _Comes:
    if proven.app is not None:
        client = await registration.find(connection, identity, proven.tenant, proven.app)
        if client.allow_registration:
            return _Comes(found.user if found is not None else None)
    if found is None:
        # A new person is nobody's member, and these providers make none.
        if proven.tenant is not None:
            raise NotAMember
        if not identity.allow_self_registration:
            raise RegistrationClosed
        return _Comes(None)
    if proven.tenant is not None:
        await persons.membership(connection, identity, found.user, proven.tenant)
    return _Comes(found.user)


async def _demand_member(connection: Any, identity: Identity, user: str, tenant: str) -> None:
    try:
        await persons.membership(connection, identity, user, tenant)
    except NotAMember:
        raise MembershipRemoved from None


async def _demand_not_removed(connection: Any, identity: Identity, tenant: str, email: str | None) -> None:
    """Raise if somebody of this address was removed: another account of theirs must not bring them back."""
    for row in await connection.fetch(_ACCOUNTS_BY_ADDRESS, tenant, email):
        account = persons.of_row(row)
        identity.sealer.check_mac(row["mac"], persons.IDENTITY_MAC, PLATFORM, account.content)
        if account.blocked:
            raise MembershipRemoved


async def _put_role(
    connection: Any, identity: Identity, origin: Origin, user: str, proven: Proven, *, new: bool
) -> None:
    """Make a new person a member, or give one whom sign-on made a member the role that the groups say today."""
    tenant, role = proven.tenant, proven.role
    assert tenant is not None  # noqa: S101 - a tenant's provider
    if new:
        await members.demand_room(connection, identity, tenant)
        given = role_of(proven)
        await members.write(connection, identity, tenant, user, given, clock.now())
        mac = identity.sealer.mac(SSO_MEMBERSHIP_MAC, tenant, fields(tenant, user))
        await connection.execute(_NOTE_MADE, tenant, user, mac)
        await _note(connection, user, "membership.added", origin, role=given, provider=proven.provider)
        return
    # Before all else that is read: what the operator does at this moment counts, and is not undone by what was before.
    held = await members.hold(connection, tenant, user)
    if held is None:
        raise MembershipRemoved
    made = await connection.fetchval(_MADE_BY_SIGN_ON, tenant, user)
    if role is None or made is None:
        return
    identity.sealer.check_mac(made, SSO_MEMBERSHIP_MAC, tenant, fields(tenant, user))
    before, since = held
    if before != role:
        await members.change(connection, identity, tenant, user, role, since)
        await _note(connection, user, "membership.changed", origin, role=role, before=before, provider=proven.provider)


def _identity_of(proven: Proven, user: str) -> Known:
    tenant = proven.tenant if proven.of_tenant else None
    return Known(kind=proven.kind, subject=proven.subject, user=user, tenant=tenant)


async def _note(connection: Any, user: str, action: str, origin: Origin, **metadata: Any) -> None:
    said = msgspec.json.encode(metadata).decode()
    row = [origin.request_id, origin.ip, origin.user_agent]
    await connection.execute(_AUDIT, f"user:{user}", vet(action), user, said, row)
