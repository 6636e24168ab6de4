"""App clients and their secrets; the signer keeps them. Spec 2/4.3, decisions 9."""

from typing import Any, Literal

import msgspec
from msgspec import UNSET

from custody.identity.app_clients import check
from custody.kit.callers import SessionCaller
from custody.ports import Ports
from custody.protocol import messages
from custody.protocol.client import asked
from custody.tenants.credential_types import AppClientsBody, Deleted, NewAppSecret, OneOrSeveral, StoredAppClient


async def create(ports: Ports, caller: SessionCaller, body: AppClientsBody) -> Any:
    """Add app clients; all, or none if one of them is there already."""
    if not body.named():
        raise OneOrSeveral(fields=["appClients"])
    return await _put(ports, caller, body, "create")


async def put(ports: Ports, caller: SessionCaller, body: AppClientsBody) -> Any:
    """Put one in place, new or not; or with `appClients` replace all of them."""
    return await _put(ports, caller, body, "upsert" if body.app_clients is UNSET else "replace_all")


async def delete(ports: Ports, caller: SessionCaller, client: str) -> Any:
    """Remove an app client with its secrets."""
    data = await asked(ports.signer, messages.DeleteAppClient(client), caller)
    return data.replayed_or(msgspec.convert(data, Deleted))


async def new_secret(ports: Ports, caller: SessionCaller, client: str) -> NewAppSecret:
    """A new secret, shown this once; the one before it goes on working for 24 hours."""
    data = await asked(ports.signer, messages.NewAppSecret(client), caller)
    return NewAppSecret(
        id=data["id"], prefix=data["prefix"], status="active", created_at=data["createdAt"], retires_at=None,
        app_id=f"{caller.tenant}/{client}", app_secret=data["appSecret"],
    )  # fmt: skip


async def revoke_secret(ports: Ports, caller: SessionCaller, client: str, secret: str) -> Any:
    """End a secret at once."""
    data = await asked(ports.signer, messages.RevokeAppSecret(client, secret), caller)
    return data.replayed_or(msgspec.convert(data, Deleted))


async def _put(
    ports: Ports, caller: SessionCaller, body: AppClientsBody, mode: Literal["create", "upsert", "replace_all"]
) -> Any:
    clients = [check(client) for client in body.named()]
    message = messages.PutAppClients([msgspec.to_builtins(client) for client in clients], mode)
    data = await asked(ports.signer, message, caller)
    # The request says what is stored now; the answer adds only the times, so a long list fits into a frame.
    shown = [
        StoredAppClient.of(caller.tenant, client, times["createdAt"], times["updatedAt"])
        for client, times in zip(clients, data["clients"], strict=True)
    ]
    return data.replayed_or(shown[0] if body.app_clients is UNSET else shown)
