"""Credential routes: which secret the proxy puts into which requests. Spec 2/4.5, decisions 8."""

from typing import Any

from api.http.endpoint import Routes
from api.http.who import tenant_read, tenant_write
from custody.agents.types import AgentAbsent
from custody.credentials.rules import InvalidRoute
from custody.credentials.target import MalformedTarget
from custody.identity.roles import BUILDERS
from custody.kit.callers import TenantCaller
from custody.kit.paging import Page
from custody.ports import Ports
from custody.secrets import explain as explaining
from custody.secrets import routes as stories
from custody.secrets import store
from custody.secrets.types import (
    CredentialRoute,
    CredentialRouteAbsent,
    CredentialRouteChangeBody,
    DeletedCredentialRoute,
    ExplainBody,
    Explanation,
    NewCredentialRouteBody,
    SecretAbsent,
)

routes = Routes("/secrets/routes", tag="Credential routes")


@routes.post("", who=tenant_write(roles=BUILDERS), returns={201: CredentialRoute}, fails=(InvalidRoute, SecretAbsent))
async def create(ports: Ports, caller: TenantCaller, body: NewCredentialRouteBody) -> Any:
    """Create a route: requests that match it get the newest value of its secret put in."""
    return await stories.create(ports, caller, body)


@routes.get("", who=tenant_read, returns={200: list[CredentialRoute]}, private=True)
async def list_all(ports: Ports, caller: TenantCaller, query: Page) -> Any:
    """List the tenant's credential routes, newest first."""
    return await store.routes_of(ports.pool, caller.tenant, query)


@routes.put(
    "/<route_id>",
    who=tenant_write(roles=BUILDERS),
    returns={200: CredentialRoute},
    fails=(InvalidRoute, CredentialRouteAbsent),
)
async def change(ports: Ports, caller: TenantCaller, route_id: str, body: CredentialRouteChangeBody) -> Any:
    """Change some fields of a route; what is left out stays as it is.

    A route keeps its secret: `secretId` is refused.
    """
    return await stories.change(ports, caller, route_id, body)


@routes.delete(
    "/<route_id>",
    who=tenant_write(roles=BUILDERS),
    returns={200: DeletedCredentialRoute},
    fails=(CredentialRouteAbsent,),
)
async def delete(ports: Ports, caller: TenantCaller, route_id: str) -> Any:
    """Delete a route; its secret stays."""
    return await stories.delete(ports, caller, route_id)


@routes.post(
    "/explain", who=tenant_write(roles=BUILDERS), returns={200: Explanation}, fails=(AgentAbsent, MalformedTarget)
)
async def explain(ports: Ports, caller: TenantCaller, body: ExplainBody) -> Any:
    """Say which route a request of an agent would fall to, and why; nothing is sent and nothing is written."""
    return await explaining.explain(ports, caller, body)
