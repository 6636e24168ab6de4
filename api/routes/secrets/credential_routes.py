"""Credential routes: which secret the proxy puts into which requests."""

from api.areas.secrets import explain as explaining
from api.areas.secrets import routes as use_cases
from api.areas.secrets import store
from api.areas.secrets.types import (
    CredentialRouteChangeBody,
    ExplainBody,
    Explanation,
    NewCredentialRouteBody,
)
from api.areas.templates import presets
from api.areas.templates.presets import PresetAbsent, PresetNamesSecret, PresetNeedsSecret
from api.areas.templates.types import RoutePresetBody
from api.http.bodies import MAX_EXPLAIN_BODY, MAX_ROUTE_BODY
from api.http.endpoint import Routes
from api.http.who import asking, tenant_read, tenant_write
from custody.credentials.target import MalformedTarget
from custody.identity.roles import BUILDERS
from custody.kit.answers import Answered
from custody.kit.callers import TenantCaller
from custody.kit.paging import Listed, Page
from custody.ports import Ports
from custody.protocol.signer.order_refusals import AgentAbsent
from custody.protocol.signer.refusals import (
    CredentialRouteAbsent,
)
from custody.protocol.signer.secrets import (
    ChangeCredentialRoute,
    CreateCredentialRoute,
    CredentialRoute,
    DeleteCredentialRoute,
    DeletedCredentialRoute,
)

routes = Routes("/secrets/routes", tag="Credential routes")


@routes.post("", who=asking(CreateCredentialRoute), status=201, max_body=MAX_ROUTE_BODY)
async def create_credential_route(
    ports: Ports, caller: TenantCaller, body: NewCredentialRouteBody
) -> Answered[CredentialRoute]:
    """Create a credential route: requests that match it get the current value of its secret."""
    return await use_cases.create(ports, caller, body)


@routes.post(
    "/preset",
    who=asking(CreateCredentialRoute),
    status=201,
    fails=(PresetAbsent, PresetNamesSecret, PresetNeedsSecret),
)
async def apply_route_preset(ports: Ports, caller: TenantCaller, body: RoutePresetBody) -> Answered[CredentialRoute]:
    """Create a credential route as a preset of the tenant (`secretRoutePresets`) says, checked like any route."""
    return await presets.apply(ports, caller, body)


@routes.get("", who=tenant_read, private=True)
async def list_credential_routes(ports: Ports, caller: TenantCaller, query: Page) -> Listed[CredentialRoute]:
    """List the tenant's credential routes, newest first."""
    return await store.routes_of(ports.pool, caller.tenant, query)


@routes.get("/<route_id>", who=tenant_read, fails=(CredentialRouteAbsent,), private=True)
async def get_credential_route(ports: Ports, caller: TenantCaller, route_id: str) -> CredentialRoute:
    """Get one credential route."""
    return await store.route(ports.pool, caller.tenant, route_id)


@routes.put("/<route_id>", who=asking(ChangeCredentialRoute), max_body=MAX_ROUTE_BODY)
async def change_credential_route(
    ports: Ports, caller: TenantCaller, route_id: str, body: CredentialRouteChangeBody
) -> Answered[CredentialRoute]:
    """Change some fields of a credential route; omitted fields stay as they are.

    The secret of a route cannot change: `secretId` is refused.
    """
    return await use_cases.change(ports, caller, route_id, body)


@routes.delete("/<route_id>", who=asking(DeleteCredentialRoute))
async def delete_credential_route(
    ports: Ports, caller: TenantCaller, route_id: str
) -> Answered[DeletedCredentialRoute]:
    """Delete a credential route; its secret stays."""
    return await ports.workers.ask(DeleteCredentialRoute(route_id), caller)


@routes.post(
    "/explain", max_body=MAX_EXPLAIN_BODY, who=tenant_write(roles=BUILDERS), fails=(AgentAbsent, MalformedTarget)
)
async def explain_credential_route(ports: Ports, caller: TenantCaller, body: ExplainBody) -> Explanation:
    """Explain which credential route a request of an agent would match, and why; nothing is sent or written."""
    return await explaining.explain(ports, caller, body)
