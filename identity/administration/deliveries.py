"""The acts of a person on deliveries: try one again now, send its event once more, send a test.

What becomes of a delivery by itself is the scheduler's; here a row is only made due, or made. Nothing is sent to an
address that the event was not meant for.
"""

from typing import Any

from custody.kit import clock, ids
from custody.protocol.identity.refusals import (
    DeliveryAbsent,
    DeliveryDelivered,
    DeliveryUnderWay,
    EventForgotten,
    NotSubscribed,
    RetryBudgetUsed,
    TestNotReplayed,
    TooManySentAgain,
    WebhookAbsent,
    WebhookDeleted,
    WebhookDisabled,
    WebhookUrlChanged,
)
from custody.protocol.identity.webhooks import Delivery, ReplayDelivery, RetryDelivery, SendWebhookTest
from custody.webhooks import names
from custody.webhooks.envelope import envelope
from custody.webhooks.rows import delivery_of
from custody.worker.acts import acting, remember, tell
from custody.worker.call import Call
from custody.worker.proven import ProvenSession
from identity.context import Identity

# The endpoint first, as everybody locks them, so that it stays as it was looked at; then the delivery, so that the
# scheduler does not take it up meanwhile.
_HOLD = (
    "SELECT FROM webhook_endpoints WHERE tenant_id = $1 AND id = (SELECT endpoint_id FROM deliveries "
    "WHERE tenant_id = $1 AND id = $2) FOR SHARE"
)
_READ = (
    "SELECT d.*, e.url AS url_now, e.events, e.enabled, e.deleted_at, e.max_retries, EXISTS (SELECT FROM events v "
    "WHERE v.tenant_id = d.tenant_id AND v.number = d.event_number) AS event_kept FROM deliveries d "
    "JOIN webhook_endpoints e ON e.tenant_id = d.tenant_id AND e.id = d.endpoint_id "
    "WHERE d.tenant_id = $1 AND d.id = $2 FOR UPDATE OF d"
)
_RETRY = (
    "UPDATE deliveries SET next_retry_at = service_now() WHERE tenant_id = $1 AND id = $2 "
    "RETURNING *, error IS NOT NULL AS has_error"
)
_REPLAY = (
    "INSERT INTO deliveries (tenant_id, id, endpoint_id, event_number, event, url, max_attempts, next_retry_at, "
    "replayed_from) VALUES ($1, $2, $3, $4, $5, $6, $7, service_now(), $8) "
    "RETURNING *, error IS NOT NULL AS has_error"
)
_ENDPOINT = "SELECT * FROM webhook_endpoints WHERE tenant_id = $1 AND id = $2 AND deleted_at IS NULL FOR SHARE"
_TEST = (
    "INSERT INTO deliveries (tenant_id, id, endpoint_id, event, body, url, max_attempts, next_retry_at) "
    "VALUES ($1, $2, $3, $4, $5, $6, 1, service_now()) "
    "RETURNING *, error IS NOT NULL AS has_error"
)
# Those that a person asked for and that are open, or of the last minute.
_SENT_AGAIN = (
    "SELECT count(*) FROM (SELECT id FROM deliveries WHERE tenant_id = $1 AND endpoint_id = $2 "
    "AND next_retry_at IS NOT NULL AND (replayed_from IS NOT NULL OR event = 'webhook.test') UNION "
    "SELECT id FROM deliveries WHERE tenant_id = $1 AND endpoint_id = $2 "
    "AND created_at > service_now() - interval '1 minute' AND (replayed_from IS NOT NULL OR event = 'webhook.test')) d"
)
# Of one endpoint; else one person could have us post to a receiver as fast as it answers.
MAX_SENT_AGAIN = 100


async def retry(identity: Identity, message: RetryDelivery, call: Call[ProvenSession]) -> Delivery:
    """Make a failed delivery due now; the attempts that it has had still count."""
    async with acting(identity, call) as connection:
        row = await _read(connection, call, message.delivery)
        if row["status"] == "delivered":
            raise DeliveryDelivered
        if row["status"] != "failed":
            raise DeliveryUnderWay
        if row["attempts"] >= row["max_attempts"]:
            raise RetryBudgetUsed
        _check_endpoint(row)
        outcome = delivery_of(await connection.fetchrow(_RETRY, call.caller.tenant, message.delivery))
        await tell(connection, call, "webhook.delivery_retried", "webhook_delivery", message.delivery)
        await remember(connection, call, outcome)
    return outcome


async def replay(identity: Identity, message: ReplayDelivery, call: Call[ProvenSession]) -> Delivery:
    """Send the event of a delivery that was delivered or failed once more: a new id, attempts of its own."""
    new = ids.new_uuid()
    async with acting(identity, call) as connection:
        row = await _read(connection, call, message.delivery)
        if row["status"] not in ("delivered", "failed"):
            raise DeliveryUnderWay
        _check_endpoint(row)
        if row["event"] == names.TEST:
            raise TestNotReplayed
        if not names.is_subscribed(row["events"], row["event"]):
            raise NotSubscribed
        if not row["event_kept"]:
            raise EventForgotten
        await _check_sent_again(connection, call, row["endpoint_id"])
        made = await connection.fetchrow(
            _REPLAY,
            call.caller.tenant,
            new,
            row["endpoint_id"],
            row["event_number"],
            row["event"],
            row["url"],
            row["max_retries"] + 1,
            message.delivery,
        )
        outcome = delivery_of(made)
        await tell(
            connection, call, "webhook.delivery_replayed", "webhook_delivery", new, replayedFrom=message.delivery
        )
        await remember(connection, call, outcome)
    return outcome


async def send_test(identity: Identity, message: SendWebhookTest, call: Call[ProvenSession]) -> Delivery:
    """Send a `webhook.test` to an enabled endpoint; it is tried once and is no event of the tenant."""
    tenant, delivery = call.caller.tenant, ids.new_uuid()
    body = envelope(
        id=ids.new_uuid(), event=names.TEST, tenant=tenant, agent=None, timestamp=clock.iso(clock.now()), data="{}"
    )
    async with acting(identity, call) as connection:
        row = await connection.fetchrow(_ENDPOINT, tenant, message.webhook)
        if row is None:
            raise WebhookAbsent
        if not row["enabled"]:
            raise WebhookDisabled
        await _check_sent_again(connection, call, message.webhook)
        made = await connection.fetchrow(
            _TEST, tenant, delivery, message.webhook, names.TEST, body.decode(), row["url"]
        )
        outcome = delivery_of(made)
        await tell(connection, call, "webhook.tested", "webhook", message.webhook, delivery=delivery)
        await remember(connection, call, outcome)
    return outcome


async def _read(connection: Any, call: Call[ProvenSession], delivery: str) -> Any:
    await connection.execute(_HOLD, call.caller.tenant, delivery)
    row = await connection.fetchrow(_READ, call.caller.tenant, delivery)
    if row is None:
        raise DeliveryAbsent
    return row


async def _check_sent_again(connection: Any, call: Call[ProvenSession], webhook: str) -> None:
    if await connection.fetchval(_SENT_AGAIN, call.caller.tenant, webhook) >= MAX_SENT_AGAIN:
        raise TooManySentAgain(retry_after=60)


def _check_endpoint(row: Any) -> None:
    if row["deleted_at"] is not None:
        raise WebhookDeleted
    if not row["enabled"]:
        raise WebhookDisabled
    if row["url_now"] != row["url"]:
        raise WebhookUrlChanged
