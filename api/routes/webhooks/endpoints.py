"""Webhook endpoints: where a tenant's events go."""

from api.areas.webhooks import endpoints
from api.http.endpoint import Routes
from api.http.who import admin_mfa, asking
from custody.kit.answers import Answered
from custody.kit.callers import SessionCaller
from custody.kit.paging import Listed, Page
from custody.ports import Ports
from custody.protocol.identity.refusals import WebhookAbsent
from custody.protocol.identity.webhooks import (
    ChangeWebhook,
    CreateWebhook,
    DeletedWebhook,
    DeleteWebhook,
    Delivery,
    NewWebhook,
    RolledWebhookSecret,
    RollWebhookSecret,
    SendWebhookTest,
    Webhook,
)
from custody.webhooks import store
from custody.webhooks.names import UnknownEvent
from custody.webhooks.targets import BadWebhookUrl
from custody.webhooks.types import NewWebhookBody, RollSecretBody, WebhookChangeBody

routes = Routes("/webhooks", tag="Webhooks")


@routes.post(
    "",
    who=asking(CreateWebhook),
    status=201,
    fails=(BadWebhookUrl, UnknownEvent),
    private=True,
    shows_secret=True,
)
async def create_webhook(ports: Ports, caller: SessionCaller, body: NewWebhookBody) -> NewWebhook:
    """Create a webhook endpoint, enabled; its secret is returned only in this response.

    Without `events` it receives every event, including those of later versions.
    """
    return await endpoints.create(ports, caller, body)


@routes.get("", who=admin_mfa("webhooks"))
async def list_webhooks(ports: Ports, caller: SessionCaller, query: Page) -> Listed[Webhook]:
    """List the webhook endpoints without their secrets, newest first."""
    return await store.all_of(ports.pool, caller.tenant, query)


@routes.get("/<webhook_id>", who=admin_mfa("webhooks"), fails=(WebhookAbsent,))
async def get_webhook(ports: Ports, caller: SessionCaller, webhook_id: str) -> Webhook:
    """Get one webhook endpoint without its secret."""
    return await store.get(ports.pool, caller.tenant, webhook_id)


@routes.put("/<webhook_id>", who=asking(ChangeWebhook), fails=(BadWebhookUrl, UnknownEvent))
async def change_webhook(
    ports: Ports, caller: SessionCaller, webhook_id: str, body: WebhookChangeBody
) -> Answered[Webhook]:
    """Change some fields of an endpoint; omitted fields and the secret stay as they are.

    Pending deliveries are not sent to a changed URL, or to a disabled endpoint.
    """
    return await endpoints.change(ports, caller, webhook_id, body)


@routes.delete("/<webhook_id>", who=asking(DeleteWebhook))
async def delete_webhook(ports: Ports, caller: SessionCaller, webhook_id: str) -> Answered[DeletedWebhook]:
    """Delete an endpoint with its secret; pending deliveries are not sent."""
    return await ports.workers.ask(DeleteWebhook(webhook_id), caller)


@routes.post("/<webhook_id>/roll-secret", who=asking(RollWebhookSecret), private=True, shows_secret=True)
async def roll_webhook_secret(
    ports: Ports, caller: SessionCaller, webhook_id: str, body: RollSecretBody
) -> Answered[RolledWebhookSecret]:
    """Give an endpoint a new secret, returned only in this response.

    For the overlap (24 hours unless `overlapSeconds` says otherwise) each delivery is signed with both, so a receiver
    that knows either verifies it. `overlapSeconds: 0` ends every former secret at once.
    """
    return await ports.workers.ask(RollWebhookSecret(webhook_id, body.overlap_seconds), caller)


@routes.post("/<webhook_id>/test", who=asking(SendWebhookTest))
async def test_webhook(ports: Ports, caller: SessionCaller, webhook_id: str) -> Answered[Delivery]:
    """Send a signed `webhook.test` to an enabled endpoint, once.

    A test is not an event: it needs no subscription, and it is neither retried nor replayed.
    """
    return await ports.workers.ask(SendWebhookTest(webhook_id), caller)
