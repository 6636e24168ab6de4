"""A person's own sessions."""

from api.areas.people import store
from custody.kit import clock
from custody.kit.callers import SessionCaller
from custody.kit.errors import Unauthenticated
from custody.people.types import CurrentSession
from custody.ports import Ports
from custody.protocol.identity.sessions import Mfa, SessionTenant


class SessionRevoked(Unauthenticated):
    """You are no longer a member of this tenant; sign in again."""


async def current(ports: Ports, caller: SessionCaller) -> CurrentSession:
    """Show the signed-in person, this session, and the others."""
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
        # Where else they are a member is no business of a tenant's page, nor of its identity provider.
        memberships=[here] if caller.page is not None or caller.bound else memberships,
    )
