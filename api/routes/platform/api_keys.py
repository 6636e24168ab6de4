"""A tenant's API keys, in the hands of the operator."""

from api.areas.tenants import store
from api.areas.tenants.credential_types import NewApiKeyBody, RevokeApiKeyBody
from api.http.endpoint import Routes
from api.http.who import asking, platform
from custody.identity.scopes import TENANT_WRITE
from custody.kit.answers import Answered
from custody.kit.callers import PlatformCaller
from custody.kit.paging import Listed, Page
from custody.ports import Ports
from custody.protocol.identity.api_keys import ApiKey, CreateApiKeyIn, NewApiKey, RevokeApiKeyIn
from custody.protocol.refusals import TenantAbsent

routes = Routes("/platform/tenants/<tenant_id>/api-keys", tag="Platform")


@routes.get("", who=platform(TENANT_WRITE), fails=(TenantAbsent,))
async def list_platform_api_keys(ports: Ports, tenant_id: str, query: Page) -> Listed[ApiKey]:
    """List a tenant's API keys without the keys themselves, newest first."""
    return await store.api_keys(ports.pool, tenant_id, query)


@routes.post("", who=asking(CreateApiKeyIn), status=201, private=True, shows_secret=True)
async def create_platform_api_key(
    ports: Ports, caller: PlatformCaller, tenant_id: str, body: NewApiKeyBody
) -> Answered[NewApiKey]:
    """Create an API key for a tenant, returned only in this response; the active one keeps working for the overlap."""
    return await ports.workers.ask(CreateApiKeyIn(tenant_id, body.overlap_seconds, body.name), caller)


@routes.delete("/<api_key_id>", who=asking(RevokeApiKeyIn))
async def revoke_platform_api_key(
    ports: Ports, caller: PlatformCaller, tenant_id: str, api_key_id: str, body: RevokeApiKeyBody
) -> Answered[ApiKey]:
    """Revoke a tenant's API key at once; the last active one only with `force`."""
    return await ports.workers.ask(RevokeApiKeyIn(tenant_id, api_key_id, body.force), caller)
