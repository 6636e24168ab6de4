"""A tenant and its configuration. Spec 2/4.3."""

from typing import Any

from api.http.endpoint import Routes
from api.http.who import TENANT_WRITE, platform, tenant_key
from custody.kit.callers import PlatformCaller, TenantCaller
from custody.kit.errors import Conflict
from custody.ports import Ports
from custody.tenants import configure, store
from custody.tenants import create as stories
from custody.tenants.types import (
    DefaultPoliciesRetired,
    NewTenantBody,
    RegisteredTenant,
    Tenant,
    TenantConfig,
    TenantConfigBody,
)

routes = Routes("/tenants", tag="Tenants")


@routes.post(
    "", who=platform(TENANT_WRITE), returns={201: RegisteredTenant}, fails=(Conflict,), lenient=DefaultPoliciesRetired
)
async def register(ports: Ports, caller: PlatformCaller, body: NewTenantBody) -> Any:
    """Create a tenant that brings its own API key, or the key's SHA-256."""
    return await stories.register(ports, caller, body)


@routes.get("/<tenant_id>", who=tenant_key, returns={200: Tenant})
async def get(ports: Ports, caller: TenantCaller, tenant_id: str) -> Any:
    """Get the tenant."""
    return await store.get(ports.pool, caller.tenant)


@routes.get("/<tenant_id>/config", who=tenant_key, returns={200: TenantConfig})
async def get_config(ports: Ports, caller: TenantCaller, tenant_id: str) -> Any:
    """Get the tenant's configuration, defaults filled in."""
    return await store.get_config(ports.pool, caller.tenant)


@routes.put("/<tenant_id>/config", who=tenant_key, returns={200: TenantConfig})
async def put_config(ports: Ports, caller: TenantCaller, tenant_id: str, body: TenantConfigBody) -> Any:
    """Replace the tenant's configuration; an omitted field is unset."""
    return await configure.put_config(ports, caller, body)
