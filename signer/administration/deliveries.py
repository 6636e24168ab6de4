"""What a person does to deliveries: try one again now, send its event once more, send a test. Spec 2/3.2, 4.7.

What becomes of a delivery by itself is the scheduler's; here a row is only made due, or made. Nothing is sent to an
address that the event was not meant for.
"""

from typing import Any

from custody.kit import clock, ids
from custody.kit.errors import Conflict, NotFound, TooMany
from custody.protocol.messages import Done, Outcome, ReplayDelivery, RetryDelivery, SendWebhookTest
from custody.webhooks import names
from custody.webhooks.envelope import envelope
from signer.administration.acts import acting, remember, tell
from signer.administration.webhooks import WebhookAbsent, WebhookDisabled
from signer.context import Ask, Signer
from signer.proofs import ProvenSession

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
_RETRY = "UPDATE deliveries SET next_retry_at = service_now() WHERE tenant_id = $1 AND id = $2 RETURNING *"
_REPLAY = (
    "INSERT INTO deliveries (tenant_id, id, endpoint_id, event_number, event, url, max_attempts, next_retry_at, "
    "replayed_from) VALUES ($1, $2, $3, $4, $5, $6, $7, service_now(), $8) RETURNING *"
)
_ENDPOINT = "SELECT * FROM webhook_endpoints WHERE tenant_id = $1 AND id = $2 AND deleted_at IS NULL FOR SHARE"
_TEST = (
    "INSERT INTO deliveries (tenant_id, id, endpoint_id, event, body, url, max_attempts, next_retry_at) "
    "VALUES ($1, $2, $3, $4, $5, $6, 1, service_now()) RETURNING *"
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


class DeliveryAbsent(NotFound):
    """There is no such delivery."""


class DeliveryUnderWay(Conflict):
    """This delivery is pending or being sent; wait until it is delivered or has failed."""


class DeliveryDelivered(Conflict):
    """This delivery was delivered; replay it to send its event once more."""


class RetryBudgetUsed(Conflict):
    """This delivery was tried as often as its webhook allows; replay it to send its event once more."""


class WebhookDeleted(Conflict):
    """The webhook of this delivery was deleted."""


class WebhookUrlChanged(Conflict):
    """The webhook has another address now; an event goes only where it was meant to go."""


class NotSubscribed(Conflict):
    """The webhook is not subscribed to this event any more."""


class TestNotReplayed(Conflict):
    """A test is no event and is not replayed; send a new one."""


class EventForgotten(Conflict):
    """The event of this delivery is older than 30 days and is not kept any more."""


class TooManySentAgain(TooMany):
    """A webhook is sent 100 tests and replays a minute at most, and has no more of them open; try again later."""


async def retry(signer: Signer, message: RetryDelivery, ask: Ask[ProvenSession]) -> Outcome:
    """Make a failed delivery due now; the attempts that it has had still count."""
    async with acting(signer, ask) as connection:
        row = await _read(connection, ask, message.delivery)
        if row["status"] == "delivered":
            raise DeliveryDelivered
        if row["status"] != "failed":
            raise DeliveryUnderWay
        if row["attempts"] >= row["max_attempts"]:
            raise RetryBudgetUsed
        _check_endpoint(row)
        outcome = Done(_shown(await connection.fetchrow(_RETRY, ask.caller.tenant, message.delivery)))
        await tell(connection, ask, "webhook.delivery_retried", "webhook_delivery", message.delivery)
        await remember(connection, ask, outcome)
    return outcome


async def replay(signer: Signer, message: ReplayDelivery, ask: Ask[ProvenSession]) -> Outcome:
    """Send the event of a delivery that was delivered or failed once more: a new id, attempts of its own."""
    new = ids.new_uuid()
    async with acting(signer, ask) as connection:
        row = await _read(connection, ask, message.delivery)
        if row["status"] not in ("delivered", "failed"):
            raise DeliveryUnderWay
        _check_endpoint(row)
        if row["event"] == names.TEST:
            raise TestNotReplayed
        if not names.subscribed(row["events"], row["event"]):
            raise NotSubscribed
        if not row["event_kept"]:
            raise EventForgotten
        await _check_sent_again(connection, ask, row["endpoint_id"])
        made = await connection.fetchrow(
            _REPLAY, ask.caller.tenant, new, row["endpoint_id"], row["event_number"], row["event"], row["url"],
            row["max_retries"] + 1, message.delivery,
        )  # fmt: skip
        outcome = Done(_shown(made))
        await tell(connection, ask, "webhook.delivery_replayed", "webhook_delivery", new, replayedFrom=message.delivery)
        await remember(connection, ask, outcome)
    return outcome


async def send_test(signer: Signer, message: SendWebhookTest, ask: Ask[ProvenSession]) -> Outcome:
    """Send a `webhook.test` to an enabled endpoint; it is tried once and is no event of the tenant."""
    tenant, delivery = ask.caller.tenant, ids.new_uuid()
    body = envelope(
        id=ids.new_uuid(), event=names.TEST, tenant=tenant, agent=None, timestamp=clock.iso(clock.now()), data="{}"
    )
    async with acting(signer, ask) as connection:
        row = await connection.fetchrow(_ENDPOINT, tenant, message.webhook)
        if row is None:
            raise WebhookAbsent
        if not row["enabled"]:
            raise WebhookDisabled
        await _check_sent_again(connection, ask, message.webhook)
        made = await connection.fetchrow(
            _TEST, tenant, delivery, message.webhook, names.TEST, body.decode(), row["url"]
        )
        outcome = Done(_shown(made))
        await tell(connection, ask, "webhook.tested", "webhook", message.webhook, delivery=delivery)
        await remember(connection, ask, outcome)
    return outcome


async def _read(connection: Any, ask: Ask[ProvenSession], delivery: str) -> Any:
    await connection.execute(_HOLD, ask.caller.tenant, delivery)
    row = await connection.fetchrow(_READ, ask.caller.tenant, delivery)
    if row is None:
        raise DeliveryAbsent
    return row


async def _check_sent_again(connection: Any, ask: Ask[ProvenSession], webhook: str) -> None:
    if await connection.fetchval(_SENT_AGAIN, ask.caller.tenant, webhook) >= MAX_SENT_AGAIN:
        raise TooManySentAgain(retry_after=60)


def _check_endpoint(row: Any) -> None:
    if row["deleted_at"] is not None:
        raise WebhookDeleted
    if not row["enabled"]:
        raise WebhookDisabled
    if row["url_now"] != row["url"]:
        raise WebhookUrlChanged


def _shown(row: Any) -> dict[str, Any]:
    said = {
        "id": str(row["id"]), "eventType": row["event"], "status": row["status"], "attempts": row["attempts"],
        "maxAttempts": row["max_attempts"], "nextRetryAt": _moment(row["next_retry_at"]),
        "hasError": row["error"] is not None, "createdAt": clock.iso(row["created_at"]),
        "deliveredAt": _moment(row["delivered_at"]),
    }  # fmt: skip
    return said if row["replayed_from"] is None else {**said, "replayedFromDeliveryId": str(row["replayed_from"])}


def _moment(at: Any) -> str | None:
    return None if at is None else clock.iso(at)
