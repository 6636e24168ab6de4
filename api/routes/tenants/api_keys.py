"""A tenant's API keys, in the hands of its owners and admins."""

from api.areas.tenants import store
from api.areas.tenants.credential_types import NewApiKeyBody, RevokeApiKeyBody
from api.http.endpoint import Routes
from api.http.who import admin_mfa, asking
from custody.kit.answers import Answered
from custody.kit.callers import SessionCaller
from custody.kit.paging import Listed, Page
from custody.ports import Ports
from custody.protocol.identity.api_keys import ApiKey, CreateApiKey, NewApiKey, RevokeApiKey
from custody.protocol.refusals import TenantAbsent

routes = Routes("/tenants/<tenant_id>/api-keys", tag="API keys")


@routes.get("", who=admin_mfa(), fails=(TenantAbsent,))
async def list_api_keys(ports: Ports, caller: SessionCaller, tenant_id: str, query: Page) -> Listed[ApiKey]:
    """List the tenant's API keys without the keys themselves, newest first.

    The key that the tenant was created with is among them. A revoked or expired one stays listed for 90 days; at most
    the last 100 of them.
    """
    return await store.api_keys(ports.pool, caller.tenant, query)


@routes.post("", who=asking(CreateApiKey), status=201, private=True, shows_secret=True)
async def create_api_key(
    ports: Ports, caller: SessionCaller, tenant_id: str, body: NewApiKeyBody
) -> Answered[NewApiKey]:
    """Create an API key, returned only in this response; the active one keeps working for the overlap.

    The overlap is 24 hours unless `overlapSeconds` says otherwise; with 0 the active key ends at once. Keys that retire
    already keep their time.
    """
    return await ports.workers.ask(CreateApiKey(body.overlap_seconds, body.name), caller)


@routes.delete("/<api_key_id>", who=asking(RevokeApiKey))
async def revoke_api_key(
    ports: Ports, caller: SessionCaller, tenant_id: str, api_key_id: str, body: RevokeApiKeyBody
) -> Answered[ApiKey]:
    """Revoke an API key at once; the last active one only with `force`.

    A tenant without a key goes on by its people's sessions, its app clients and its agents' tokens.
    """
    return await ports.workers.ask(RevokeApiKey(api_key_id, body.force), caller)
