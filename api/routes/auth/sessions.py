"""A person's own sessions."""

from api.areas.people import sessions, store
from api.http.endpoint import Routes
from api.http.who import asking, person, person_on_a_page
from custody.kit.answers import Answered
from custody.kit.callers import Origin, SessionCaller
from custody.kit.paging import Listed, Page
from custody.people.types import CurrentSession, OwnSession, RefreshBody, TenantBody
from custody.ports import Ports
from custody.protocol.identity.sessions import EndedSession, EndSession, RefreshSession, SignedIn, SwitchTenant
from custody.protocol.refusals import NotForPages, SessionBound

routes = Routes("/auth", tag="Sessions", hardened=False)


@routes.post("/refresh", who=asking(RefreshSession), limit="refresh", private=True, shows_secret=True)
async def refresh_session(ports: Ports, origin: Origin, body: RefreshBody) -> SignedIn:
    """Exchange a refresh token for new tokens.

    A refresh token works once. Its second use ends the session, because one of the two users must have stolen it.
    """
    return await ports.workers.tell(RefreshSession(body.refresh_token), origin)


@routes.post("/logout", who=asking(EndSession))
async def sign_out(ports: Ports, caller: SessionCaller) -> Answered[EndedSession]:
    """Sign out: end this session and all its tokens at once."""
    return await ports.workers.ask(EndSession(), caller)


@routes.get("/session", who=person_on_a_page, private=True)
async def get_session(ports: Ports, caller: SessionCaller) -> CurrentSession:
    """Get the signed-in user, the tenant of the session, and the user's other tenants.

    A session that began at an app client's page sees no other tenant.
    """
    return await sessions.current(ports, caller)


@routes.get("/sessions", who=person, private=True)
async def list_sessions(ports: Ports, caller: SessionCaller, query: Page) -> Listed[OwnSession]:
    """List your active sessions, most recently used first."""
    return await store.sessions(ports.pool, caller.user, caller.session, query)


@routes.delete("/sessions/<session_id>", who=asking(EndSession), fails=(NotForPages, SessionBound))
async def end_session(ports: Ports, caller: SessionCaller, session_id: str) -> Answered[EndedSession]:
    """End one of your sessions at once."""
    return await ports.workers.ask(EndSession(session_id), caller)


@routes.post("/session/tenant", who=asking(SwitchTenant), private=True, shows_secret=True)
async def switch_tenant(ports: Ports, caller: SessionCaller, body: TenantBody) -> Answered[SignedIn]:
    """Switch the session to another tenant of which you are a member."""
    return await ports.workers.ask(SwitchTenant(body.tenant_id), caller)
