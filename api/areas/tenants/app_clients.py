"""App clients and their secrets; identity keeps them."""

from typing import Literal

import msgspec
from msgspec import UNSET

from api.areas.tenants.credential_types import AppClientsBody, OneOrSeveral, StoredAppClient
from custody.identity.app_clients import check
from custody.kit.answers import Answered
from custody.kit.callers import SessionCaller
from custody.ports import Ports
from custody.protocol.identity.credentials import PutAppClients

Stored = StoredAppClient | list[StoredAppClient]


async def create(ports: Ports, caller: SessionCaller, body: AppClientsBody) -> Answered[Stored]:
    """Add app clients; all, or none if one of them is there already."""
    if not body.clients():
        raise OneOrSeveral(fields=["appClients"])
    return await _put(ports, caller, body, "create")


async def put(ports: Ports, caller: SessionCaller, body: AppClientsBody) -> Answered[Stored]:
    """Put one in place, new or not; or with `appClients` replace all of them."""
    return await _put(ports, caller, body, "upsert" if body.app_clients is UNSET else "replace_all")


async def _put(
    ports: Ports, caller: SessionCaller, body: AppClientsBody, mode: Literal["create", "upsert", "replace_all"]
) -> Answered[Stored]:
    clients = [check(client) for client in body.clients()]
    message = PutAppClients([msgspec.to_builtins(client) for client in clients], mode)
    answered = await ports.workers.ask(message, caller)
    # The request says what is stored now; the answer adds only the times, so a long list fits into a frame.
    shown = [
        StoredAppClient.of(caller.tenant, client, times.created_at, times.updated_at)
        for client, times in zip(clients, answered.answer.clients, strict=True)
    ]
    return Answered(shown[0] if body.app_clients is UNSET else shown, answered.replayed)
