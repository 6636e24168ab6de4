"""A person's own sessions. Decisions 5."""

import msgspec

from custody.kit import clock
from custody.kit.callers import Origin, SessionCaller
from custody.kit.errors import Unauthenticated
from custody.people import store
from custody.people.types import CurrentSession, EndedSession, Mfa, SessionTenant, SignedIn
from custody.ports import Ports
from custody.protocol.client import asked, told
from custody.protocol.messages import EndSession, RefreshSession, SwitchTenant


class SessionRevoked(Unauthenticated):
    """You are no longer a member of this tenant; sign in again."""


async def refresh(ports: Ports, origin: Origin, refresh_token: str) -> SignedIn:
    """The next tokens for a refresh token that was not used yet."""
    return msgspec.convert(await told(ports.signer, RefreshSession(refresh_token), origin), SignedIn)


async def switch(ports: Ports, caller: SessionCaller, tenant: str) -> SignedIn:
    """Go on in another tenant."""
    return msgspec.convert(await asked(ports.signer, SwitchTenant(tenant), caller), SignedIn)


async def end(ports: Ports, caller: SessionCaller, session: str | None = None) -> EndedSession:
    """End this session, or another of one's own."""
    return msgspec.convert(await asked(ports.signer, EndSession(session), caller), EndedSession)


async def current(ports: Ports, caller: SessionCaller) -> CurrentSession:
    """Who is signed in, where, and where else."""
    memberships = await store.memberships(ports.pool, caller.user, caller.tenant)
    here = next((one for one in memberships if one.tenant_id == caller.tenant), None)
    if here is None:
        raise SessionRevoked
    verified = clock.iso(clock.of_unix(caller.mfa_at)) if caller.mfa_at is not None else None
    return CurrentSession(
        id=caller.session,
        user=await store.profile(ports.pool, caller.user),
        tenant=SessionTenant(here.tenant_id, here.name, here.role),
        mfa=Mfa(verified, await store.methods(ports.pool, caller.user)),
        memberships=memberships,
    )
