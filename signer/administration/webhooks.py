"""Webhook endpoints of a tenant, and the signature that a delivery goes out with. Spec 2/2.13, 4.7, 5, decisions 7.

The secret is sealed to its endpoint and is in the answer to the message that made it, and in no other. Only what it
signs leaves; a deleted endpoint has none, and for a disabled one nothing is signed.
"""

import base64
import hashlib
import hmac
import os
from typing import Any

from msgspec import UNSET

from custody.kit import clock, ids
from custody.kit.errors import Conflict, NotFound
from custody.protocol.messages import ChangeWebhook, CreateWebhook, DeleteWebhook, Done, Outcome, SignDelivery
from custody.webhooks import names, targets
from signer.administration.acts import acting, remember, tell
from signer.context import Ask, Signer
from signer.proofs import ProvenSession
from signer.sealing import Context, Tampered

MAX_ENDPOINTS = 50
SECRET_BYTES = 32
SECRET_PREFIX = "whsec_"  # noqa: S105 - what every secret begins with
_PURPOSE = "webhook-secret"
_COUNT = "SELECT count(*) FROM webhook_endpoints WHERE tenant_id = $1 AND deleted_at IS NULL"
_ADD = (
    "INSERT INTO webhook_endpoints (tenant_id, id, url, events, description, max_retries, retry_backoff_ms) "
    "VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING *"
)
_SEAL = (
    "INSERT INTO sealed (tenant_id, owner_kind, owner, purpose, key_version, blob) "
    "VALUES ($1, 'webhook', $2, $3, $4, $5)"
)
# Locked, because the scheduler disables what answers that it is gone.
_READ = "SELECT * FROM webhook_endpoints WHERE tenant_id = $1 AND id = $2 AND deleted_at IS NULL FOR UPDATE"
_CHANGE = (
    "UPDATE webhook_endpoints SET url = $3, events = $4, enabled = $5, disabled_reason = $6, description = $7, "
    "max_retries = $8, retry_backoff_ms = $9 WHERE tenant_id = $1 AND id = $2 RETURNING *"
)
_DELETE = (
    "UPDATE webhook_endpoints SET deleted_at = service_now() WHERE tenant_id = $1 AND id = $2 AND deleted_at IS NULL "
    "RETURNING id"
)
_DESTROY = "DELETE FROM sealed WHERE tenant_id = $1 AND owner_kind = 'webhook' AND owner = $2"
_SECRET = "SELECT * FROM webhook_secret($1, $2)"  # noqa: S105 - a query


class WebhookAbsent(NotFound):
    """There is no such webhook."""


class TooManyWebhooks(Conflict):
    """A tenant has at most 50 webhooks; delete one first."""


class WebhookDisabled(Conflict):
    """This webhook is disabled; enable it first."""


async def create(signer: Signer, message: CreateWebhook, ask: Ask[ProvenSession]) -> Outcome:
    """Make an endpoint, enabled; its secret is shown this once."""
    tenant, webhook = ask.caller.tenant, ids.new_uuid()
    url = targets.check(message.url, public_url=signer.public_url)
    events = names.ordered(message.events)
    shown = SECRET_PREFIX + base64.b64encode(os.urandom(SECRET_BYTES)).decode()
    blob = signer.sealer.seal(shown.encode(), _place(tenant, webhook))
    async with acting(signer, ask) as connection:
        if await connection.fetchval(_COUNT, tenant) >= MAX_ENDPOINTS:
            raise TooManyWebhooks
        row = await connection.fetchrow(
            _ADD, tenant, webhook, url, events, message.description, message.max_retries, message.retry_backoff_ms
        )
        await connection.execute(_SEAL, tenant, webhook, _PURPOSE, signer.sealer.key_version, blob)
        await tell(connection, ask, "webhook.created", "webhook", webhook, host=targets.place(url), events=events)
        await remember(connection, ask, None)
    return Done({**_shown(row), "secret": shown})


async def change(signer: Signer, message: ChangeWebhook, ask: Ask[ProvenSession]) -> Outcome:
    """Change what is given. What is on its way goes to the address it was meant for, or nowhere."""
    given = {
        name: value
        for name in ("url", "events", "enabled", "description", "max_retries", "retry_backoff_ms")
        if (value := getattr(message, name)) is not UNSET
    }
    if "url" in given:
        given["url"] = targets.check(given["url"], public_url=signer.public_url)
    if "events" in given:
        given["events"] = names.ordered(given["events"])
    async with acting(signer, ask) as connection:
        row = await connection.fetchrow(_READ, ask.caller.tenant, message.webhook)
        if row is None:
            raise WebhookAbsent
        new = {**row, **given}
        # Whoever says whether it is enabled has heard why it was not.
        reason = None if "enabled" in given else row["disabled_reason"]
        row = await connection.fetchrow(
            _CHANGE, ask.caller.tenant, message.webhook, new["url"], new["events"], new["enabled"], reason,
            new["description"], new["max_retries"], new["retry_backoff_ms"],
        )  # fmt: skip
        outcome = Done(_shown(row))
        led = {"host": targets.place(given["url"])} if "url" in given else {}
        await tell(connection, ask, "webhook.changed", "webhook", message.webhook, changed=sorted(given), **led)
        await remember(connection, ask, outcome)
    return outcome


async def delete(signer: Signer, message: DeleteWebhook, ask: Ask[ProvenSession]) -> Outcome:
    """Delete an endpoint and destroy its secret; nothing is signed for it from now on."""
    outcome = Done({"deleted": message.webhook})
    async with acting(signer, ask) as connection:
        if await connection.fetchval(_DELETE, ask.caller.tenant, message.webhook) is None:
            raise WebhookAbsent
        await connection.execute(_DESTROY, ask.caller.tenant, message.webhook)
        await tell(connection, ask, "webhook.deleted", "webhook", message.webhook)
        await remember(connection, ask, outcome)
    return outcome


async def sign(signer: Signer, message: SignDelivery, ask: Ask[None]) -> Outcome:
    """The headers of one attempt, by name; the same secret keys both signatures. docs/webhooks.md."""
    row = await signer.pool.fetchrow(_SECRET, message.tenant, message.endpoint)
    if row is None:
        raise WebhookAbsent
    if not row["enabled"]:
        raise WebhookDisabled
    if row["blob"] is None:
        raise Tampered
    secret = signer.sealer.open(row["blob"], _place(message.tenant, message.endpoint))
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX.encode()), validate=True)
    moment = str(message.timestamp)
    said = f"{message.delivery}.{moment}.".encode() + message.body
    signature = base64.b64encode(hmac.digest(key, said, hashlib.sha256)).decode()
    return Done(
        {
            "X-Service-Signature": f"sha256={hmac.digest(secret, message.body, hashlib.sha256).hex()}",
            "webhook-id": message.delivery,
            "webhook-timestamp": moment,
            "webhook-signature": f"v1,{signature}",
        }
    )


def _place(tenant: str, webhook: str) -> Context:
    return Context(tenant, "webhook", webhook, _PURPOSE)


def _shown(row: Any) -> dict[str, Any]:
    return {
        "id": str(row["id"]), "tenantId": row["tenant_id"], "url": row["url"],
        "events": list(names.SUBSCRIBABLE) if row["events"] is None else row["events"],
        "enabled": row["enabled"], "disabledReason": row["disabled_reason"], "maxRetries": row["max_retries"],
        "retryBackoffMs": row["retry_backoff_ms"], "description": row["description"],
        "createdAt": clock.iso(row["created_at"]),
    }  # fmt: skip
