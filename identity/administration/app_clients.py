"""App clients: where a tenant's users may be sent after signing in.

Each is a canonical document under a MAC, with its switch: who can write the database can add no origin and enable none.
"""

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from custody.identity.app_clients import AppClient, InvalidAppClient, check
from custody.kit import clock
from custody.protocol.identity.credentials import (
    AppClientTimes,
    DeleteAppClient,
    Deleted,
    PutAppClients,
    StoredAppClients,
)
from custody.protocol.identity.refusals import AppClientAbsent, AppClientTaken, DefaultTaken, TooManyAppClients
from custody.worker.acts import acting, remember, tell
from custody.worker.call import Call
from custody.worker.proofs import APP_CLIENT_MAC
from custody.worker.proven import ProvenSession, ProvenTenant
from custody.worker.sealing import Tampered, fields
from identity.context import Identity

MAX_CLIENTS = 50
MAX_BYTES = 3 * 2**20  # together: a tenant's configuration has them all in one answer, and no pages
Mode = Literal["create", "upsert", "replace_all"]
_ALL = "SELECT id, document, enabled, mac FROM app_clients WHERE tenant_id = $1"
_PUT = (
    "INSERT INTO app_clients (tenant_id, id, document, enabled, mac, created_at, updated_at) "
    "VALUES ($1, $2, $3, $4, $5, $6, $6) ON CONFLICT (tenant_id, id) DO UPDATE SET document = excluded.document, "
    "enabled = excluded.enabled, mac = excluded.mac, updated_at = excluded.updated_at RETURNING created_at, updated_at"
)
_DELETE = "DELETE FROM app_clients WHERE tenant_id = $1 AND id = $2 RETURNING id"


async def put(identity: Identity, message: PutAppClients, call: Call[ProvenSession]) -> StoredAppClients:
    """Add new app clients, put some in place, or replace all of them; all or none."""
    clients = read(message.clients)
    async with acting(identity, call) as connection:
        outcome = StoredAppClients(await write(connection, identity, call, clients, message.mode))
        await remember(connection, call, outcome)
    return outcome


async def delete(identity: Identity, message: DeleteAppClient, call: Call[ProvenSession]) -> Deleted:
    """Remove an app client; its secrets go with it and work no more."""
    outcome = Deleted(message.client)
    async with acting(identity, call) as connection:
        if await connection.fetchval(_DELETE, call.caller.tenant, message.client) is None:
            raise AppClientAbsent
        await tell(connection, call, "app_client.deleted", "app_client", message.client)
        await remember(connection, call, outcome)
    return outcome


def read(documents: Iterable[dict[str, Any]]) -> list[AppClient]:
    """App clients as they may be stored; Invalid for what is wrong with one, or with them together."""
    try:
        clients = [check(msgspec.convert(document, AppClient)) for document in documents]
    except msgspec.ValidationError as problem:
        raise InvalidAppClient(f"appClients: {problem}", fields=["appClients"]) from None
    if len({client.id for client in clients}) < len(clients):
        raise InvalidAppClient("appClients: an id is given twice.", fields=["appClients"])
    if sum(client.is_default for client in clients) > 1:
        raise InvalidAppClient("appClients: only one can be the default.", fields=["appClients"])
    return clients


async def load(connection: Any, identity: Identity, tenant: str) -> dict[str, AppClient]:
    """Every app client of the tenant that the transaction is in, by id; Tampered if one is not ours."""
    return {row["id"]: _open(identity, tenant, row) for row in await connection.fetch(_ALL, tenant)}


async def write(
    connection: Any, identity: Identity, call: Call[ProvenTenant], clients: list[AppClient], mode: Mode
) -> list[AppClientTimes]:
    """Write them in an act that has begun; when each was made and last changed."""
    before, named = await load(connection, identity, call.caller.tenant), {client.id: client for client in clients}
    if mode == "create" and (taken := sorted(named.keys() & before.keys())):
        raise AppClientTaken(f"An app client with the id {taken[0]!r} already exists.")
    after = named if mode == "replace_all" else before | named
    size, most = (sum(len(msgspec.json.encode(client)) for client in some.values()) for some in (after, before))
    if len(after) > MAX_CLIENTS or size > max(MAX_BYTES, most):
        raise TooManyAppClients
    if sum(client.is_default for client in after.values()) > 1:
        raise DefaultTaken
    for gone in sorted(before.keys() - after.keys()):
        await connection.execute(_DELETE, call.caller.tenant, gone)
        await tell(connection, call, "app_client.deleted", "app_client", gone)
    return [await _put(connection, identity, call, client, is_new=client.id not in before) for client in clients]


async def _put(
    connection: Any, identity: Identity, call: Call[ProvenTenant], client: AppClient, *, is_new: bool
) -> AppClientTimes:
    tenant, text = call.caller.tenant, msgspec.json.encode(client, order="sorted").decode()
    mac = identity.sealer.mac(APP_CLIENT_MAC, tenant, _content(tenant, client.id, text, client.enabled))
    row = await connection.fetchrow(_PUT, tenant, client.id, text, client.enabled, mac, clock.now())
    action = "app_client.created" if is_new else "app_client.changed"
    await tell(connection, call, action, "app_client", client.id, enabled=client.enabled)
    return AppClientTimes(client.id, clock.iso(row["created_at"]), clock.iso(row["updated_at"]))


def _open(identity: Identity, tenant: str, row: Any) -> AppClient:
    text, enabled = row["document"], row["enabled"]
    identity.sealer.check_mac(row["mac"], APP_CLIENT_MAC, tenant, _content(tenant, row["id"], text, enabled))
    client = msgspec.json.decode(text, type=AppClient)
    if (client.id, client.enabled) != (row["id"], enabled):
        raise Tampered
    return client


def _content(tenant: str, client: str, text: str, enabled: bool) -> bytes:
    return fields(tenant, client, text, "enabled" if enabled else "disabled")
