"""A person's own sessions. Decisions 5."""

from typing import Any

from api.http.endpoint import Routes
from api.http.who import person, public
from custody.kit.callers import Origin, SessionCaller
from custody.kit.errors import Forbidden, NotFound, Unauthenticated
from custody.people import sessions, store
from custody.people.types import CurrentSession, EndedSession, OwnSession, RefreshBody, SignedIn, TenantBody
from custody.ports import Ports

routes = Routes("/auth", tag="Sessions")


@routes.post(
    "/refresh", who=public, limit="refresh", returns={200: SignedIn}, fails=(Unauthenticated, Forbidden), private=True,
    shows_secret=True,
)  # fmt: skip
async def refresh(ports: Ports, origin: Origin, body: RefreshBody) -> Any:
    """Trade a refresh token for the next tokens.

    It works once: shown a second time it ends its session, because one of the two who showed it had stolen it.
    """
    return await sessions.refresh(ports, origin, body.refresh_token)


@routes.post("/logout", who=person, returns={200: EndedSession})
async def log_out(ports: Ports, caller: SessionCaller) -> Any:
    """Sign out: this session ends at once, with all its tokens."""
    return await sessions.end(ports, caller)


@routes.get("/session", who=person, returns={200: CurrentSession}, private=True)
async def current(ports: Ports, caller: SessionCaller) -> Any:
    """Who is signed in, to which tenant, and which others there are."""
    return await sessions.current(ports, caller)


@routes.get("/sessions", who=person, returns={200: list[OwnSession]}, private=True)
async def list_all(ports: Ports, caller: SessionCaller) -> Any:
    """List one's own living sessions, the last used first."""
    return await store.sessions(ports.pool, caller.user, caller.session)


@routes.delete("/sessions/<session_id>", who=person, returns={200: EndedSession}, fails=(NotFound,))
async def revoke(ports: Ports, caller: SessionCaller, session_id: str) -> Any:
    """End one of one's own sessions at once."""
    return await sessions.end(ports, caller, session_id)


@routes.post(
    "/session/tenant", who=person, returns={200: SignedIn}, fails=(Forbidden,), private=True, shows_secret=True
)
async def switch(ports: Ports, caller: SessionCaller, body: TenantBody) -> Any:
    """Go on in another tenant that one is a member of."""
    return await sessions.switch(ports, caller, body.tenant_id)
