"""A tenant and its configuration."""

from typing import NoReturn

from api.areas.tenants import configure, remove, store
from api.areas.tenants import create as use_cases
from api.areas.tenants.usage import Usage, usage
from api.http.bodies import MAX_CONFIG_BODY
from api.http.endpoint import Routes
from api.http.who import admin, anybody, asking, tenant_key, tenant_read
from custody.identity.theme import InvalidTheme
from custody.kit.answers import Answered
from custody.kit.callers import PlatformCaller, SessionCaller, TenantCaller
from custody.kit.errors import QuotaExceeded
from custody.ports import Ports
from custody.protocol.identity.tenants import CreateTenant, PutConfig
from custody.protocol.refusals import TenantAbsent
from custody.tenants.rules import UnknownFlag, UnknownPolicyType, WrongTenantId
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


@routes.post("", who=asking(CreateTenant), status=201, fails=(QuotaExceeded,), lenient=DefaultPoliciesRetired)
async def register_tenant(
    ports: Ports, caller: PlatformCaller | SessionCaller, body: NewTenantBody
) -> Answered[RegisteredTenant]:
    """Create a tenant with its own API key, or the key's SHA-256.

    A signed-in person becomes its owner.
    """
    return await use_cases.register(ports, caller, body)


@routes.get("/<tenant_id>", who=tenant_read, fails=(TenantAbsent,))
async def get_tenant(ports: Ports, caller: TenantCaller, tenant_id: str) -> Tenant:
    """Get the tenant."""
    return await store.get(ports.pool, caller.tenant)


@routes.get("/<tenant_id>/usage", who=tenant_key | admin, fails=(TenantAbsent,))
async def get_usage(ports: Ports, caller: TenantCaller, tenant_id: str) -> Usage:
    """Get the tenant's usage and limit of each quota."""
    return await usage(ports, caller.tenant)


@routes.get("/<tenant_id>/config", who=tenant_read)
async def get_tenant_config(ports: Ports, caller: TenantCaller, tenant_id: str) -> TenantConfig:
    """Get the tenant's configuration with defaults filled in."""
    return await store.get_config(ports.pool, caller.tenant, ports.presets)


@routes.put(
    "/<tenant_id>/config",
    max_body=MAX_CONFIG_BODY,
    who=asking(PutConfig),
    fails=(InvalidTheme, UnknownFlag, UnknownPolicyType, WrongTenantId),
)
async def replace_tenant_config(
    ports: Ports, caller: TenantCaller, tenant_id: str, body: TenantConfigBody
) -> Answered[TenantConfig]:
    """Replace the tenant's configuration; an omitted field is unset.

    `authAbuseConfig` and `appClients` stay as they are if omitted; the tenant's key may send them only unchanged.
    """
    return await configure.put_config(ports, caller, body)


@routes.put("/<tenant_id>/webhook", who=anybody, fails=(TenantWebhookRetired,))
async def set_tenant_webhook(tenant_id: str) -> NoReturn:
    """Retired: use /webhooks, and PUT /agents/{agentId}/policies for policies."""
    remove.refuse_webhook()
