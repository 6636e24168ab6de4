"""A tenant's secrets."""

from api.areas.secrets import change, store
from api.areas.secrets.types import NewSecretBody, NewValueBody, StoredSecret, StoredValue
from api.http.bodies import MAX_SECRET_BODY
from api.http.endpoint import Routes
from api.http.who import asking, tenant_read
from custody.kit.answers import Answered
from custody.kit.callers import TenantCaller
from custody.kit.paging import Listed, Page
from custody.ports import Ports
from custody.protocol.signer.refusals import (
    SecretAbsent,
)
from custody.protocol.signer.secrets import (
    CreateSecret,
    DeletedSecret,
    DeleteSecret,
    RotateSecret,
    Secret,
)

routes = Routes("/secrets", tag="Secrets")


@routes.post("", max_body=MAX_SECRET_BODY, who=asking(CreateSecret), status=201)
async def create_secret(ports: Ports, caller: TenantCaller, body: NewSecretBody) -> Answered[StoredSecret]:
    """Store a secret; its value is never returned again.

    A name is unique within the tenant, and free again once its secret is deleted.
    """
    return await change.create(ports, caller, body)


@routes.get("", who=tenant_read, private=True)
async def list_secrets(ports: Ports, caller: TenantCaller, query: Page) -> Listed[Secret]:
    """List the tenant's secrets without their values, newest first."""
    return await store.all_of(ports.pool, caller.tenant, query)


@routes.get("/<secret_id>", who=tenant_read, fails=(SecretAbsent,), private=True)
async def get_secret(ports: Ports, caller: TenantCaller, secret_id: str) -> Secret:
    """Get a secret without its value."""
    return await store.get(ports.pool, caller.tenant, secret_id)


@routes.put("/<secret_id>", max_body=MAX_SECRET_BODY, who=asking(RotateSecret))
async def replace_secret_value(
    ports: Ports, caller: TenantCaller, secret_id: str, body: NewValueBody
) -> Answered[StoredValue]:
    """Replace the value of a secret; its routes use the new value at once, and the old value is destroyed."""
    return await change.replace(ports, caller, secret_id, body, rotate=False)


@routes.post("/<secret_id>/rotate", max_body=MAX_SECRET_BODY, who=asking(RotateSecret))
async def rotate_secret(
    ports: Ports, caller: TenantCaller, secret_id: str, body: NewValueBody
) -> Answered[StoredValue]:
    """Rotate a secret: the same as replacing its value, audited as a rotation."""
    return await change.replace(ports, caller, secret_id, body, rotate=True)


@routes.delete("/<secret_id>", who=asking(DeleteSecret))
async def delete_secret(ports: Ports, caller: TenantCaller, secret_id: str) -> Answered[DeletedSecret]:
    """Delete a secret: its value is destroyed, its name is free again, and routes that use it fail."""
    return await ports.workers.ask(DeleteSecret(secret_id), caller)
