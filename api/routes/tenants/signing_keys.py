"""Keys with which a tenant signs its requests."""

from api.areas.tenants import store
from api.http.endpoint import Routes
from api.http.who import admin_mfa, asking
from custody.kit.answers import Answered
from custody.kit.callers import SessionCaller
from custody.kit.paging import Listed, Page
from custody.ports import Ports
from custody.protocol.identity.credentials import (
    CreateSigningKey,
    Deleted,
    NewSigningKey,
    RevokeSigningKey,
    SigningKey,
)

routes = Routes("/tenants/<tenant_id>/request-signing-keys", tag="Request signing")


@routes.get("", who=admin_mfa())
async def list_signing_keys(ports: Ports, caller: SessionCaller, tenant_id: str, query: Page) -> Listed[SigningKey]:
    """List the request-signing keys without their secrets, newest first.

    A revoked or expired one stays listed for 90 days; at most the last 100 of them.
    """
    return await store.signing_keys(ports.pool, caller.tenant, query)


@routes.post("", who=asking(CreateSigningKey), status=201, private=True, shows_secret=True, unsigned=True)
async def create_signing_key(ports: Ports, caller: SessionCaller, tenant_id: str) -> Answered[NewSigningKey]:
    """Create a request-signing key, its secret returned only in this response; active keys keep working for seven days.

    It requires no request signature even where the deployment demands one, because the first key cannot be signed for.
    """
    return await ports.workers.ask(CreateSigningKey(), caller)


@routes.delete("/<key_id>", who=asking(RevokeSigningKey))
async def revoke_signing_key(ports: Ports, caller: SessionCaller, tenant_id: str, key_id: str) -> Answered[Deleted]:
    """Revoke a key at once."""
    return await ports.workers.ask(RevokeSigningKey(key_id), caller)
