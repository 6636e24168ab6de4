"""Tenants as the operator of the deployment sees them. Spec 2/4.4."""

from typing import Any

from api.http.endpoint import Routes
from api.http.who import TENANT_READ, TENANT_WRITE, anybody, platform
from custody.kit.callers import PlatformCaller
from custody.kit.errors import Conflict
from custody.kit.paging import Page
from custody.ports import Ports
from custody.tenants import create as stories
from custody.tenants import remove, store
from custody.tenants.types import (
    CreatedTenant,
    DefaultPoliciesRetired,
    DeletedTenant,
    PlatformTenantBody,
    Stats,
    Tenant,
    TenantAbsent,
)

routes = Routes("/platform", tag="Platform")


@routes.get("/tenants", who=platform(TENANT_READ), returns={200: list[Tenant]})
async def list_all(ports: Ports, query: Page) -> Any:
    """List every tenant, newest first."""
    return await store.platform_all(ports.pool, query)


@routes.post(
    "/tenants", who=platform(TENANT_WRITE), returns={201: CreatedTenant}, fails=(Conflict,),
    lenient=DefaultPoliciesRetired,
    private=True, shows_secret=True,
)  # fmt: skip
async def create(ports: Ports, caller: PlatformCaller, body: PlatformTenantBody) -> Any:
    """Create a tenant and its API key, which is shown this once."""
    return await stories.create(ports, caller, body)


@routes.get("/tenants/<tenant_id>", who=platform(TENANT_READ), returns={200: Tenant}, fails=(TenantAbsent,))
async def get(ports: Ports, tenant_id: str) -> Any:
    """Get a tenant with the number of its agents."""
    return await store.platform_get(ports.pool, tenant_id)


@routes.delete("/tenants/<tenant_id>", who=platform(TENANT_WRITE), returns={200: DeletedTenant}, fails=(TenantAbsent,))
async def delete(ports: Ports, caller: PlatformCaller, tenant_id: str) -> Any:
    """Delete a tenant for ever, with its agents, wallets, policies and transactions."""
    return await remove.remove(ports, caller, tenant_id)


@routes.put("/tenants/<tenant_id>/policies", who=anybody, returns={410: None}, fails=(DefaultPoliciesRetired,))
async def put_policies(tenant_id: str) -> Any:
    """Retired: set policies on each agent with PUT /agents/{agentId}/policies."""
    return remove.refuse_retired()


@routes.get("/stats", who=platform(TENANT_READ), returns={200: Stats})
async def stats(ports: Ports) -> Any:
    """Count tenants, agents and transactions."""
    return await store.platform_stats(ports.pool)
