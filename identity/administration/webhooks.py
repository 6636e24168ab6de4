"""Webhook endpoints of a tenant, and the signature that a delivery goes out with.

The secret is sealed to its endpoint and is in the answer to the message that made it, and in no other. Only what it
signs leaves; a deleted endpoint has none, and for a disabled one nothing is signed. Former secrets sign beside the
newest until they end, each in the place where it was sealed.
"""

import base64
import hashlib
import hmac
import os

import msgspec
from msgspec import UNSET

from custody.kit import clock, ids, outside_urls, quotas
from custody.protocol.identity.refusals import TooManyWebhookSecrets, WebhookAbsent, WebhookDisabled
from custody.protocol.identity.webhooks import (
    ChangeWebhook,
    CreateWebhook,
    DeletedWebhook,
    DeleteWebhook,
    DeliveryHeaders,
    NewWebhook,
    RolledWebhookSecret,
    RollWebhookSecret,
    SignDelivery,
    Webhook,
)
from custody.webhooks import names, targets
from custody.webhooks.rows import webhook_of
from custody.worker.acts import acting, remember, tell
from custody.worker.call import Call
from custody.worker.proven import ProvenSession
from custody.worker.sealing import Context, Tampered
from identity.context import Identity

SECRET_BYTES = 32
SECRET_PREFIX = "whsec_"  # noqa: S105 - what every secret begins with
# Places of one endpoint's secrets, the newest and three former ones; any of them may hold the newest.
MAX_SECRETS = 4
PLACES = ("webhook-secret", *(f"webhook-secret-{number}" for number in range(2, MAX_SECRETS + 1)))
_COUNT = "SELECT count(*) FROM webhook_endpoints WHERE tenant_id = $1 AND deleted_at IS NULL"
_ADD = (
    "INSERT INTO webhook_endpoints (tenant_id, id, url, events, description, max_retries, retry_backoff_ms) "
    "VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING *"
)
_SEAL = (
    "INSERT INTO identity_sealed (tenant_id, owner_kind, owner, purpose, key_version, blob) "
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
_DESTROY = "DELETE FROM identity_sealed WHERE tenant_id = $1 AND owner_kind = 'webhook' AND owner = $2"
_SECRET = "SELECT * FROM webhook_secret($1, $2)"  # noqa: S105 - a query
# For an overlap of no length the newest, and every former one, is over at once.
_END = (
    "UPDATE identity_sealed SET ends_at = LEAST(ends_at, service_now() + make_interval(secs => $3)) "
    "WHERE tenant_id = $1 AND owner_kind = 'webhook' AND owner = $2 AND (ends_at IS NULL OR $3 = 0) "
    "RETURNING ends_at"
)
_FORGET = (
    "DELETE FROM identity_sealed WHERE tenant_id = $1 AND owner_kind = 'webhook' AND owner = $2 "
    "AND ends_at <= service_now()"
)
_TAKEN = "SELECT purpose, ends_at FROM identity_sealed WHERE tenant_id = $1 AND owner_kind = 'webhook' AND owner = $2"


async def create(identity: Identity, message: CreateWebhook, call: Call[ProvenSession]) -> NewWebhook:
    """Create a webhook endpoint, enabled; its secret is returned only in this response."""
    tenant, webhook = call.caller.tenant, ids.new_uuid()
    url = targets.check(message.url, public_url=identity.public_url)
    events = names.in_order(message.events)
    shown, place = _new_secret(), PLACES[0]
    blob = identity.sealer.seal(shown.encode(), _context(tenant, webhook, place))
    async with acting(identity, call) as connection:
        quotas.check("webhooks", await connection.fetchval(_COUNT, tenant), identity.limits.of(tenant).webhooks)
        row = await connection.fetchrow(
            _ADD, tenant, webhook, url, events, message.description, message.max_retries, message.retry_backoff_ms
        )
        await connection.execute(_SEAL, tenant, webhook, place, identity.sealer.key_version, blob)
        await tell(connection, call, "webhook.created", "webhook", webhook, host=outside_urls.place(url), events=events)
        await remember(connection, call, None)
    return NewWebhook(**msgspec.structs.asdict(webhook_of(row)), secret=shown)


async def change(identity: Identity, message: ChangeWebhook, call: Call[ProvenSession]) -> Webhook:
    """Change what is given. What is on its way goes to the address it was meant for, or nowhere."""
    given = {
        name: value
        for name in ("url", "events", "enabled", "description", "max_retries", "retry_backoff_ms")
        if (value := getattr(message, name)) is not UNSET
    }
    if "url" in given:
        given["url"] = targets.check(given["url"], public_url=identity.public_url)
    if "events" in given:
        given["events"] = names.in_order(given["events"])
    async with acting(identity, call) as connection:
        row = await connection.fetchrow(_READ, call.caller.tenant, message.webhook)
        if row is None:
            raise WebhookAbsent
        new = {**row, **given}
        # A caller that sets `enabled` has seen the reason.
        reason = None if "enabled" in given else row["disabled_reason"]
        row = await connection.fetchrow(
            _CHANGE,
            call.caller.tenant,
            message.webhook,
            new["url"],
            new["events"],
            new["enabled"],
            reason,
            new["description"],
            new["max_retries"],
            new["retry_backoff_ms"],
        )
        outcome = webhook_of(row)
        led = {"host": outside_urls.place(given["url"])} if "url" in given else {}
        await tell(connection, call, "webhook.changed", "webhook", message.webhook, changed=sorted(given), **led)
        await remember(connection, call, outcome)
    return outcome


async def roll_secret(identity: Identity, message: RollWebhookSecret, call: Call[ProvenSession]) -> RolledWebhookSecret:
    """A new secret, shown this once; those before it go on signing beside it until they end."""
    tenant, webhook, shown = call.caller.tenant, message.webhook, _new_secret()
    async with acting(identity, call) as connection:
        if await connection.fetchrow(_READ, tenant, webhook) is None:
            raise WebhookAbsent
        await connection.execute(_END, tenant, webhook, float(message.overlap_seconds))
        await connection.execute(_FORGET, tenant, webhook)
        ends = {row["purpose"]: row["ends_at"] for row in await connection.fetch(_TAKEN, tenant, webhook)}
        place = next((one for one in PLACES if one not in ends), None)
        if place is None:
            raise TooManyWebhookSecrets
        blob = identity.sealer.seal(shown.encode(), _context(tenant, webhook, place))
        await connection.execute(_SEAL, tenant, webhook, place, identity.sealer.key_version, blob)
        seconds = message.overlap_seconds
        await tell(connection, call, "webhook.secret_rolled", "webhook", webhook, overlapSeconds=seconds)
        await remember(connection, call, None)
    return RolledWebhookSecret(id=webhook, secret=shown, former_secrets_end=sorted(map(clock.iso, ends.values())))


async def delete(identity: Identity, message: DeleteWebhook, call: Call[ProvenSession]) -> DeletedWebhook:
    """Delete an endpoint and destroy its secret; nothing is signed for it from now on."""
    outcome = DeletedWebhook(message.webhook)
    async with acting(identity, call) as connection:
        if await connection.fetchval(_DELETE, call.caller.tenant, message.webhook) is None:
            raise WebhookAbsent
        await connection.execute(_DESTROY, call.caller.tenant, message.webhook)
        await tell(connection, call, "webhook.deleted", "webhook", message.webhook)
        await remember(connection, call, outcome)
    return outcome


async def sign(identity: Identity, message: SignDelivery, call: Call[None]) -> DeliveryHeaders:
    """The headers of one attempt, by name; each secret in use keys both signatures. docs/webhooks.md."""
    rows = await identity.pool.fetch(_SECRET, message.tenant, message.endpoint)
    if not rows:
        raise WebhookAbsent
    if not rows[0]["enabled"]:
        raise WebhookDisabled
    # Former ones alone sign nothing: somebody took the newest away.
    if rows[0]["blob"] is None or not rows[0]["is_newest"]:
        raise Tampered
    secrets = [
        identity.sealer.open(row["blob"], _context(message.tenant, message.endpoint, row["purpose"])) for row in rows
    ]
    keys = [base64.b64decode(secret.removeprefix(SECRET_PREFIX.encode()), validate=True) for secret in secrets]
    moment = str(message.timestamp)
    said = f"{message.delivery}.{moment}.".encode() + message.body
    return DeliveryHeaders(
        service_signature=" ".join(
            f"sha256={hmac.digest(secret, message.body, hashlib.sha256).hex()}" for secret in secrets
        ),
        id=message.delivery,
        timestamp=moment,
        signature=" ".join(f"v1,{base64.b64encode(hmac.digest(key, said, hashlib.sha256)).decode()}" for key in keys),
    )


def _new_secret() -> str:
    return SECRET_PREFIX + base64.b64encode(os.urandom(SECRET_BYTES)).decode()


def _context(tenant: str, webhook: str, place: str) -> Context:
    return Context(tenant, "webhook", webhook, place)
