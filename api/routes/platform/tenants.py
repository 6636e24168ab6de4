"""Tenants as the operator of the deployment sees them."""

from typing import NoReturn

from api.areas.tenants import create as use_cases
from api.areas.tenants import remove, store
from api.areas.tenants.usage import Usage, usage
from api.http.endpoint import Routes
from api.http.who import anybody, asking, narrower, platform
from custody.identity.scopes import TENANT_READ, TENANT_WRITE
from custody.kit.answers import Answered
from custody.kit.callers import PlatformCaller
from custody.kit.paging import Listed, Page
from custody.ports import Ports
from custody.protocol.identity.tenants import CreateTenant
from custody.protocol.refusals import TenantAbsent
from custody.protocol.signer.agents import FreezeTenantIn, FrozenTenant, UnfreezeTenantIn
from custody.protocol.signer.operation import DeletedTenant, DeleteTenant
from custody.tenants.types import CreatedTenant, DefaultPoliciesRetired, FreezeBody, PlatformTenantBody, Stats, Tenant

routes = Routes("/platform", tag="Platform")


@routes.get("/tenants", who=platform(TENANT_READ))
async def list_tenants(ports: Ports, query: Page) -> Listed[Tenant]:
    """List every tenant, newest first."""
    return await store.platform_all(ports.pool, query)


@routes.post(
    "/tenants",
    who=narrower(platform(TENANT_WRITE), CreateTenant),
    status=201,
    lenient=DefaultPoliciesRetired,
    private=True,
    shows_secret=True,
)
async def create_tenant(ports: Ports, caller: PlatformCaller, body: PlatformTenantBody) -> Answered[CreatedTenant]:
    """Create a tenant and its API key, returned only in this response."""
    return await use_cases.create(ports, caller, body)


@routes.get("/tenants/<tenant_id>", who=platform(TENANT_READ), fails=(TenantAbsent,))
async def get_platform_tenant(ports: Ports, tenant_id: str) -> Tenant:
    """Get a tenant with the number of its agents."""
    return await store.platform_get(ports.pool, tenant_id)


@routes.get("/tenants/<tenant_id>/usage", who=platform(TENANT_READ), fails=(TenantAbsent,))
async def get_platform_usage(ports: Ports, tenant_id: str) -> Usage:
    """Get a tenant's usage and limit of each quota."""
    return await usage(ports, tenant_id)


@routes.delete("/tenants/<tenant_id>", who=asking(DeleteTenant))
async def delete_tenant(ports: Ports, caller: PlatformCaller, tenant_id: str) -> Answered[DeletedTenant]:
    """Delete a tenant permanently, with its agents, wallets, policies and transactions."""
    return await ports.workers.ask(DeleteTenant(tenant_id), caller)


@routes.post("/tenants/<tenant_id>/freeze", who=asking(FreezeTenantIn), unsigned=True)
async def freeze_platform_tenant(
    ports: Ports, caller: PlatformCaller, tenant_id: str, body: FreezeBody
) -> Answered[FrozenTenant]:
    """Freeze a tenant: after this response none of its agents signs anything, and its people cannot unfreeze it.

    Freezing again keeps the first time and reason. It never requires a request signature.
    """
    return await ports.workers.ask(FreezeTenantIn(tenant_id, body.reason), caller)


@routes.post("/tenants/<tenant_id>/unfreeze", who=asking(UnfreezeTenantIn))
async def unfreeze_platform_tenant(ports: Ports, caller: PlatformCaller, tenant_id: str) -> Answered[FrozenTenant]:
    """End the operator's freeze of a tenant; if its own people froze it too, it stays frozen."""
    return await ports.workers.ask(UnfreezeTenantIn(tenant_id), caller)


@routes.put("/tenants/<tenant_id>/policies", who=anybody, fails=(DefaultPoliciesRetired,))
async def set_tenant_policies(tenant_id: str) -> NoReturn:
    """Retired: set policies on each agent with PUT /agents/{agentId}/policies."""
    remove.refuse_retired()


@routes.get("/stats", who=platform(TENANT_READ))
async def get_platform_stats(ports: Ports) -> Stats:
    """Count tenants, agents and transactions."""
    return await store.platform_stats(ports.pool)
