"""App clients of a tenant and their secrets. Spec 2/4.3, decisions 9."""

from typing import Any

from api.http.endpoint import Routes
from api.http.who import admin, admin_mfa
from custody.kit.callers import SessionCaller
from custody.kit.paging import Page
from custody.ports import Ports
from custody.tenants import app_clients as stories
from custody.tenants import store
from custody.tenants.credential_types import (
    AppClientAbsent,
    AppClientsBody,
    AppClientTaken,
    AppSecret,
    AppSecretAbsent,
    Deleted,
    NewAppSecret,
    StoredAppClient,
    TooManyAppClients,
    TooManyAppSecrets,
)

routes = Routes("/tenants/<tenant_id>/app-clients", tag="App clients")
ONE_OR_SEVERAL = StoredAppClient | list[StoredAppClient]


@routes.get("", who=admin, returns={200: list[StoredAppClient]})
async def list_all(ports: Ports, caller: SessionCaller, tenant_id: str, query: Page) -> Any:
    """List the app clients, newest first."""
    return await store.app_clients(ports.pool, caller.tenant, query)


@routes.post("", who=admin_mfa(), returns={201: ONE_OR_SEVERAL}, fails=(AppClientTaken, TooManyAppClients))
async def create(ports: Ports, caller: SessionCaller, tenant_id: str, body: AppClientsBody) -> Any:
    """Create an app client, or several in `appClients`: all of them, or none."""
    return await stories.create(ports, caller, body)


@routes.put("", who=admin_mfa(), returns={200: ONE_OR_SEVERAL}, fails=(TooManyAppClients,))
async def put(ports: Ports, caller: SessionCaller, tenant_id: str, body: AppClientsBody) -> Any:
    """Create or replace one app client, or replace all of them by those in `appClients`."""
    return await stories.put(ports, caller, body)


@routes.delete("/<client_id>", who=admin_mfa(), returns={200: Deleted}, fails=(AppClientAbsent,))
async def delete(ports: Ports, caller: SessionCaller, tenant_id: str, client_id: str) -> Any:
    """Delete an app client; its secrets work no more."""
    return await stories.delete(ports, caller, client_id)


@routes.get("/<client_id>/secrets", who=admin_mfa(), returns={200: list[AppSecret]}, fails=(AppClientAbsent,))
async def list_secrets(ports: Ports, caller: SessionCaller, tenant_id: str, client_id: str, query: Page) -> Any:
    """List what is told of the secrets, newest first.

    One that works no more is listed for 90 days, and of those the last 100.
    """
    return await store.app_secrets(ports.pool, caller.tenant, client_id, query)


@routes.post(
    "/<client_id>/secrets", who=admin_mfa(), returns={201: NewAppSecret}, fails=(AppClientAbsent, TooManyAppSecrets),
    private=True, shows_secret=True,
)  # fmt: skip
async def rotate(ports: Ports, caller: SessionCaller, tenant_id: str, client_id: str) -> Any:
    """Make a new secret, which is shown this once; the active one goes on working for 24 hours."""
    return await stories.new_secret(ports, caller, client_id)


@routes.delete(
    "/<client_id>/secrets/<app_secret_id>", who=admin_mfa(), returns={200: Deleted}, fails=(AppSecretAbsent,)
)
async def revoke(ports: Ports, caller: SessionCaller, tenant_id: str, client_id: str, app_secret_id: str) -> Any:
    """Revoke a secret at once."""
    return await stories.revoke_secret(ports, caller, client_id, app_secret_id)
