"""Keys with which a tenant signs its requests. Spec 2/4.3."""

from typing import Any

from api.http.endpoint import Routes
from api.http.who import admin_mfa
from custody.kit.callers import SessionCaller
from custody.kit.paging import Page
from custody.ports import Ports
from custody.tenants import signing_keys as stories
from custody.tenants import store
from custody.tenants.credential_types import (
    Deleted,
    NewSigningKey,
    SigningKey,
    SigningKeyAbsent,
    TooManySigningKeys,
)

routes = Routes("/tenants/<tenant_id>/request-signing-keys", tag="Request signing")


@routes.get("", who=admin_mfa(), returns={200: list[SigningKey]})
async def list_all(ports: Ports, caller: SessionCaller, tenant_id: str, query: Page) -> Any:
    """List what is told of the keys, newest first.

    One that works no more is listed for 90 days, and of those the last 100.
    """
    return await store.signing_keys(ports.pool, caller.tenant, query)


@routes.post(
    "", who=admin_mfa(), returns={201: NewSigningKey}, fails=(TooManySigningKeys,), private=True, shows_secret=True,
    unsigned=True,
)  # fmt: skip
async def create(ports: Ports, caller: SessionCaller, tenant_id: str) -> Any:
    """Make a key, whose secret is shown this once; those that are active go on working for seven days.

    It needs no signature where the deployment wants one, for who has no key yet cannot sign.
    """
    return await stories.create(ports, caller)


@routes.delete("/<key_id>", who=admin_mfa(), returns={200: Deleted}, fails=(SigningKeyAbsent,))
async def revoke(ports: Ports, caller: SessionCaller, tenant_id: str, key_id: str) -> Any:
    """Revoke a key at once."""
    return await stories.revoke(ports, caller, key_id)
