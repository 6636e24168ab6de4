"""A tenant's secrets. Spec 2/4.5."""

from typing import Any

from api.http.endpoint import Routes
from api.http.who import tenant_read, tenant_write
from custody.identity.roles import BUILDERS
from custody.kit.callers import TenantCaller
from custody.kit.errors import Conflict
from custody.kit.paging import Page
from custody.ports import Ports
from custody.secrets import change, store
from custody.secrets.types import DeletedSecret, NewSecretBody, NewValueBody, RotatedSecret, Secret, SecretAbsent

routes = Routes("/secrets", tag="Secrets")


@routes.post("", who=tenant_write(roles=BUILDERS), returns={201: Secret}, fails=(Conflict,))
async def create(ports: Ports, caller: TenantCaller, body: NewSecretBody) -> Any:
    """Keep a secret; its value is never shown again.

    A name is taken once within the tenant, and free again when its secret is deleted.
    """
    return await change.create(ports, caller, body)


@routes.get("", who=tenant_read, returns={200: list[Secret]}, private=True)
async def list_all(ports: Ports, caller: TenantCaller, query: Page) -> Any:
    """List the tenant's secrets without their values, newest first."""
    return await store.all_of(ports.pool, caller.tenant, query)


@routes.get("/<secret_id>", who=tenant_read, returns={200: Secret}, fails=(SecretAbsent,), private=True)
async def get(ports: Ports, caller: TenantCaller, secret_id: str) -> Any:
    """Get one secret without its value."""
    return await store.get(ports.pool, caller.tenant, secret_id)


@routes.put("/<secret_id>", who=tenant_write(roles=BUILDERS), returns={200: RotatedSecret}, fails=(SecretAbsent,))
async def put(ports: Ports, caller: TenantCaller, secret_id: str, body: NewValueBody) -> Any:
    """Give a secret its next value; its routes use it from now on, and the value before it is destroyed."""
    return await change.replace(ports, caller, secret_id, body, rotate=False)


@routes.post(
    "/<secret_id>/rotate", who=tenant_write(roles=BUILDERS), returns={200: RotatedSecret}, fails=(SecretAbsent,)
)
async def rotate(ports: Ports, caller: TenantCaller, secret_id: str, body: NewValueBody) -> Any:
    """Rotate a secret: the same as replacing its value, audited as a rotation."""
    return await change.replace(ports, caller, secret_id, body, rotate=True)


@routes.delete("/<secret_id>", who=tenant_write(roles=BUILDERS), returns={200: DeletedSecret}, fails=(SecretAbsent,))
async def delete(ports: Ports, caller: TenantCaller, secret_id: str) -> Any:
    """Delete a secret: its value is destroyed, its name is free, and routes that name it fail."""
    return await change.delete(ports, caller, secret_id)
