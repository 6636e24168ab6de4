"""App clients of a tenant and their secrets."""

from api.areas.tenants import app_clients as use_cases
from api.areas.tenants import store
from api.areas.tenants.credential_types import AppClientsBody, MissingField, OneOrSeveral, StoredAppClient
from api.http.bodies import MAX_CONFIG_BODY
from api.http.endpoint import Routes
from api.http.who import admin, admin_mfa, asking
from custody.kit.answers import Answered
from custody.kit.callers import SessionCaller
from custody.kit.paging import Listed, Page
from custody.ports import Ports
from custody.protocol.identity.credentials import (
    AppSecret,
    CreateAppSecret,
    DeleteAppClient,
    Deleted,
    NewAppSecret,
    PutAppClients,
    RevokeAppSecret,
)
from custody.protocol.identity.refusals import (
    AppClientAbsent,
    AppClientTaken,
)

routes = Routes("/tenants/<tenant_id>/app-clients", tag="App clients")


@routes.get("", who=admin)
async def list_app_clients(ports: Ports, caller: SessionCaller, tenant_id: str, query: Page) -> Listed[StoredAppClient]:
    """List the app clients, newest first."""
    return await store.app_clients(ports.pool, caller.tenant, query)


@routes.post(
    "",
    max_body=MAX_CONFIG_BODY,
    who=asking(PutAppClients),
    status=201,
    fails=(AppClientTaken, MissingField, OneOrSeveral),
)
async def create_app_clients(
    ports: Ports, caller: SessionCaller, tenant_id: str, body: AppClientsBody
) -> Answered[use_cases.Stored]:
    """Create an app client, or several in `appClients`: all or none."""
    return await use_cases.create(ports, caller, body)


@routes.put("", max_body=MAX_CONFIG_BODY, who=asking(PutAppClients), fails=(MissingField, OneOrSeveral))
async def replace_app_clients(
    ports: Ports, caller: SessionCaller, tenant_id: str, body: AppClientsBody
) -> Answered[use_cases.Stored]:
    """Create or replace one app client, or replace all of them with those in `appClients`."""
    return await use_cases.put(ports, caller, body)


@routes.delete("/<client_id>", who=asking(DeleteAppClient))
async def delete_app_client(ports: Ports, caller: SessionCaller, tenant_id: str, client_id: str) -> Answered[Deleted]:
    """Delete an app client; its secrets stop working."""
    return await ports.workers.ask(DeleteAppClient(client_id), caller)


@routes.get("/<client_id>/secrets", who=admin_mfa(), fails=(AppClientAbsent,))
async def list_app_secrets(
    ports: Ports, caller: SessionCaller, tenant_id: str, client_id: str, query: Page
) -> Listed[AppSecret]:
    """List the secrets of an app client without their values, newest first.

    A revoked or expired one stays listed for 90 days; at most the last 100 of them.
    """
    return await store.app_secrets(ports.pool, caller.tenant, client_id, query)


@routes.post("/<client_id>/secrets", who=asking(CreateAppSecret), status=201, private=True, shows_secret=True)
async def create_app_secret(
    ports: Ports, caller: SessionCaller, tenant_id: str, client_id: str
) -> Answered[NewAppSecret]:
    """Create a secret, returned only in this response; the active one keeps working for 24 hours."""
    return await ports.workers.ask(CreateAppSecret(client_id), caller)


@routes.delete("/<client_id>/secrets/<app_secret_id>", who=asking(RevokeAppSecret))
async def revoke_app_secret(
    ports: Ports, caller: SessionCaller, tenant_id: str, client_id: str, app_secret_id: str
) -> Answered[Deleted]:
    """Revoke a secret at once."""
    return await ports.workers.ask(RevokeAppSecret(client_id, app_secret_id), caller)
