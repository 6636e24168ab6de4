"""A tenant and its configuration. Spec 2/4.3."""

from typing import Any

from api.http.endpoint import Routes
from api.http.who import (
    TENANT_WRITE,
    anybody,
    person,
    platform,
    session,
    tenant_key,
    tenant_read,
)
from custody.identity.roles import ADMINS
from custody.kit.callers import PlatformCaller, SessionCaller, TenantCaller
from custody.kit.errors import Conflict
from custody.ports import Ports
from custody.tenants import configure, remove, store
from custody.tenants import create as stories
from custody.tenants.types import (
    DefaultPoliciesRetired,
    NewTenantBody,
    RegisteredTenant,
    Tenant,
    TenantConfig,
    TenantConfigBody,
    TenantWebhookRetired,
)

routes = Routes("/tenants", tag="Tenants")


@routes.post(
    "", who=platform(TENANT_WRITE) | person, returns={201: RegisteredTenant}, fails=(Conflict,),
    lenient=DefaultPoliciesRetired,
)  # fmt: skip
async def register(ports: Ports, caller: PlatformCaller | SessionCaller, body: NewTenantBody) -> Any:
    """Create a tenant that brings its own API key, or the key's SHA-256.

    A person who asks becomes its owner.
    """
    return await stories.register(ports, caller, body)


@routes.get("/<tenant_id>", who=tenant_read, returns={200: Tenant})
async def get(ports: Ports, caller: TenantCaller, tenant_id: str) -> Any:
    """Get the tenant."""
    return await store.get(ports.pool, caller.tenant)


@routes.get("/<tenant_id>/config", who=tenant_read, returns={200: TenantConfig})
async def get_config(ports: Ports, caller: TenantCaller, tenant_id: str) -> Any:
    """Get the tenant's configuration, defaults filled in."""
    return await store.get_config(ports.pool, caller.tenant, ports.presets)


@routes.put("/<tenant_id>/config", who=tenant_key | session(ADMINS, "tenantAdmin"), returns={200: TenantConfig})
async def put_config(ports: Ports, caller: TenantCaller, tenant_id: str, body: TenantConfigBody) -> Any:
    """Replace the tenant's configuration; an omitted field is unset.

    `authAbuseConfig` and `appClients` stay where they are omitted; the tenant's key may send them only as they are.
    """
    return await configure.put_config(ports, caller, body)


@routes.put("/<tenant_id>/webhook", who=anybody, returns={410: None}, fails=(TenantWebhookRetired,))
async def put_webhook(tenant_id: str) -> Any:
    """Retired: use /webhooks, and PUT /agents/{agentId}/policies for policies."""
    return remove.refuse_webhook()
