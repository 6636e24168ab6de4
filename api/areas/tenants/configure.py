"""Replace a tenant's configuration."""

from typing import Any

import msgspec
from msgspec import UNSET

from api.areas.tenants import store
from custody.identity import app_clients
from custody.kit.answers import Answered
from custody.kit.callers import TenantCaller
from custody.ports import Ports
from custody.protocol.identity.tenants import PutConfig
from custody.tenants.rules import WrongTenantId, check
from custody.tenants.types import TenantConfig, TenantConfigBody


async def put_config(ports: Ports, caller: TenantCaller, body: TenantConfigBody) -> Answered[TenantConfig]:
    """Replace the whole configuration; a body that GET gave is accepted back."""
    if body.tenant_id not in (None, caller.tenant):
        raise WrongTenantId(fields=["tenantId"])
    body = check(msgspec.structs.replace(body, tenant_id=caller.tenant))
    # What decides is no part of the document: the signer keeps it, and the document only shows.
    document = msgspec.structs.replace(body, auth_abuse_config=UNSET, app_clients=UNSET)
    message = PutConfig(msgspec.json.encode(document).decode(), _judging(body), _clients(body))
    answered = await ports.workers.ask(message, caller)
    if (stored := answered.answer.stored) is None:
        # Too long to be kept with the answer; so it is no repetition of one either.
        return Answered(await store.get_config(ports.pool, caller.tenant, ports.presets))
    return Answered(
        store.shown_config(caller.tenant, stored.document, stored.judging, stored.clients), answered.replayed
    )


def _judging(body: TenantConfigBody) -> dict[str, Any]:
    said: dict[str, Any] = {
        "autoExpireSeconds": body.approval_config.auto_expire_seconds,
        "uncoveredEffects": body.approval_config.uncovered_effects,
    }
    if body.auth_abuse_config is not UNSET:
        # Without what is unset: that part stays as it is.
        said |= msgspec.to_builtins(body.auth_abuse_config)
    return said


def _clients(body: TenantConfigBody) -> list[dict[str, Any]] | None:
    if body.app_clients is UNSET:
        return None
    return [msgspec.to_builtins(app_clients.check(client)) for client in body.app_clients]
