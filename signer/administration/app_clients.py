"""App clients: where a tenant's users may be sent after signing in. Spec 2/2.4, 4.3, decisions 9.

Each is a canonical document under a MAC together with whether it is enabled: who can write the database can neither
add an origin nor switch a client on.
"""

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from custody.identity.app_clients import AppClient, check
from custody.kit import clock
from custody.kit.errors import Conflict, Invalid, NotFound
from custody.protocol.messages import DeleteAppClient, Done, Outcome, PutAppClients
from signer.administration.acts import acting, remember, tell
from signer.context import Ask, Signer
from signer.proofs import APP_CLIENT_MAC, ProvenSession, ProvenTenant
from signer.sealing import Tampered, fields

MAX_CLIENTS = 50
Mode = Literal["create", "upsert", "replace_all"]
_ALL = "SELECT id, document, enabled, mac FROM app_clients WHERE tenant_id = $1"
_PUT = (
    "INSERT INTO app_clients (tenant_id, id, document, enabled, mac, created_at, updated_at) "
    "VALUES ($1, $2, $3, $4, $5, $6, $6) ON CONFLICT (tenant_id, id) DO UPDATE SET document = excluded.document, "
    "enabled = excluded.enabled, mac = excluded.mac, updated_at = excluded.updated_at RETURNING created_at, updated_at"
)
_DELETE = "DELETE FROM app_clients WHERE tenant_id = $1 AND id = $2 RETURNING id"


class AppClientAbsent(NotFound):
    """There is no such app client."""


class AppClientTaken(Conflict):
    """An app client with this id already exists."""


class TooManyAppClients(Conflict):
    """A tenant has at most 50 app clients."""


class DefaultTaken(Conflict):
    """Another app client is the default; change that one first."""


async def put(signer: Signer, message: PutAppClients, ask: Ask[ProvenSession]) -> Outcome:
    """Add new app clients, put some in place, or replace all of them; all or none."""
    clients = read(message.clients)
    async with acting(signer, ask) as connection:
        outcome = Done({"clients": await write(connection, signer, ask, clients, message.mode)})
        await remember(connection, ask, outcome)
    return outcome


async def delete(signer: Signer, message: DeleteAppClient, ask: Ask[ProvenSession]) -> Outcome:
    """Remove an app client; its secrets go with it and work no more."""
    outcome = Done({"deleted": message.client})
    async with acting(signer, ask) as connection:
        if await connection.fetchval(_DELETE, ask.caller.tenant, message.client) is None:
            raise AppClientAbsent
        await tell(connection, ask, "app_client.deleted", "app_client", message.client)
        await remember(connection, ask, outcome)
    return outcome


def read(documents: Iterable[dict[str, Any]]) -> list[AppClient]:
    """App clients as they may be stored; Invalid for what is wrong with one, or with them together."""
    try:
        clients = [check(msgspec.convert(document, AppClient)) for document in documents]
    except msgspec.ValidationError as problem:
        raise Invalid(f"appClients: {problem}", code="invalid_app_client", fields=["appClients"]) from None
    if len({client.id for client in clients}) < len(clients):
        raise Invalid("appClients: an id is given twice.", code="invalid_app_client", fields=["appClients"])
    if sum(client.is_default for client in clients) > 1:
        raise Invalid("appClients: only one can be the default.", code="invalid_app_client", fields=["appClients"])
    return clients


async def stored(connection: Any, signer: Signer, tenant: str) -> dict[str, AppClient]:
    """Every app client of the tenant that the transaction is in, by id; Tampered if one is not ours."""
    return {row["id"]: _open(signer, tenant, row) for row in await connection.fetch(_ALL, tenant)}


async def write(
    connection: Any, signer: Signer, ask: Ask[ProvenTenant], clients: list[AppClient], mode: Mode
) -> list[dict[str, str]]:
    """Write them in an act that has begun; when each was made and last changed."""
    before = await stored(connection, signer, ask.caller.tenant)
    named = {client.id: client for client in clients}
    if mode == "create" and (taken := sorted(named.keys() & before.keys())):
        raise AppClientTaken(f"An app client with the id {taken[0]!r} already exists.")
    after = named if mode == "replace_all" else before | named
    if len(after) > MAX_CLIENTS:
        raise TooManyAppClients
    if sum(client.is_default for client in after.values()) > 1:
        raise DefaultTaken
    for gone in sorted(before.keys() - after.keys()):
        await connection.execute(_DELETE, ask.caller.tenant, gone)
        await tell(connection, ask, "app_client.deleted", "app_client", gone)
    return [await _put(connection, signer, ask, client, is_new=client.id not in before) for client in clients]


async def _put(
    connection: Any, signer: Signer, ask: Ask[ProvenTenant], client: AppClient, *, is_new: bool
) -> dict[str, str]:
    tenant, text = ask.caller.tenant, msgspec.json.encode(client, order="sorted").decode()
    mac = signer.sealer.mac(APP_CLIENT_MAC, tenant, _content(tenant, client.id, text, client.enabled))
    row = await connection.fetchrow(_PUT, tenant, client.id, text, client.enabled, mac, clock.now())
    action = "app_client.created" if is_new else "app_client.changed"
    await tell(connection, ask, action, "app_client", client.id, enabled=client.enabled)
    return {"id": client.id, "createdAt": clock.iso(row["created_at"]), "updatedAt": clock.iso(row["updated_at"])}


def _open(signer: Signer, tenant: str, row: Any) -> AppClient:
    text, enabled = row["document"], row["enabled"]
    signer.sealer.check_mac(row["mac"], APP_CLIENT_MAC, tenant, _content(tenant, row["id"], text, enabled))
    client = msgspec.json.decode(text, type=AppClient)
    if (client.id, client.enabled) != (row["id"], enabled):
        raise Tampered
    return client


def _content(tenant: str, client: str, text: str, enabled: bool) -> bytes:
    return fields(tenant, client, text, "enabled" if enabled else "disabled")
