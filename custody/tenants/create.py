"""Make and remove tenants. Spec 2/4.3, 4.4."""

from typing import Any

from custody.kit.callers import PlatformCaller, SessionCaller
from custody.ports import Ports
from custody.protocol.client import asked
from custody.protocol.messages import CreateTenant
from custody.tenants.types import CreatedTenant, NewTenantBody, PlatformTenantBody, RegisteredTenant


async def register(ports: Ports, caller: PlatformCaller | SessionCaller, body: NewTenantBody) -> Any:
    """Make a tenant that brings its own key; a person who asks becomes its owner."""
    data = await asked(ports.signer, CreateTenant(body.id, body.name, body.webhook_url, body.api_key_hash), caller)
    return data.replayed_or(RegisteredTenant(data["id"], data["name"], data["apiKeyHash"], data["createdAt"]))


async def create(ports: Ports, caller: PlatformCaller, body: PlatformTenantBody) -> CreatedTenant:
    """Make a tenant and its API key, which is shown this once."""
    data = await asked(ports.signer, CreateTenant(body.id, body.name, body.webhook_url), caller)
    return CreatedTenant(data["id"], data["name"], data["apiKey"], data["createdAt"])
