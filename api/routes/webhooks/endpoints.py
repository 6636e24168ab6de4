"""Webhook endpoints: where a tenant's events go. Spec 2/4.7."""

from typing import Any

from api.http.endpoint import Routes
from api.http.who import admin_mfa
from custody.kit.callers import SessionCaller
from custody.kit.paging import Page
from custody.ports import Ports
from custody.webhooks import endpoints as stories
from custody.webhooks import store
from custody.webhooks.targets import BadWebhookUrl
from custody.webhooks.types import (
    DeletedWebhook,
    Delivery,
    NewWebhook,
    NewWebhookBody,
    TooManyWebhooks,
    Webhook,
    WebhookAbsent,
    WebhookChangeBody,
)

routes = Routes("/webhooks", tag="Webhooks")


@routes.post(
    "", who=admin_mfa("webhooks"), returns={201: NewWebhook}, fails=(BadWebhookUrl, TooManyWebhooks), private=True,
    shows_secret=True,
)  # fmt: skip
async def create(ports: Ports, caller: SessionCaller, body: NewWebhookBody) -> Any:
    """Make an endpoint, enabled; its secret is shown this once.

    Without `events` it gets every one there is, those of later versions too.
    """
    return await stories.create(ports, caller, body)


@routes.get("", who=admin_mfa("webhooks"), returns={200: list[Webhook]})
async def list_all(ports: Ports, caller: SessionCaller, query: Page) -> Any:
    """List the endpoints, newest first, without their secrets."""
    return await store.all_of(ports.pool, caller.tenant, query)


@routes.put(
    "/<webhook_id>", who=admin_mfa("webhooks"), returns={200: Webhook}, fails=(BadWebhookUrl, WebhookAbsent)
)  # fmt: skip
async def change(ports: Ports, caller: SessionCaller, webhook_id: str, body: WebhookChangeBody) -> Any:
    """Change some fields of an endpoint; what is left out stays as it is, and so does the secret.

    What is on its way to an address that is changed, or to an endpoint that is disabled, is not sent there.
    """
    return await stories.change(ports, caller, webhook_id, body)


@routes.delete("/<webhook_id>", who=admin_mfa("webhooks"), returns={200: DeletedWebhook}, fails=(WebhookAbsent,))
async def delete(ports: Ports, caller: SessionCaller, webhook_id: str) -> Any:
    """Delete an endpoint with its secret; what is on its way is not sent any more."""
    return await stories.delete(ports, caller, webhook_id)


@routes.post("/<webhook_id>/test", who=admin_mfa("webhooks"), returns={200: Delivery}, fails=(WebhookAbsent,))
async def send_test(ports: Ports, caller: SessionCaller, webhook_id: str) -> Any:
    """Send a signed `webhook.test` to an enabled endpoint, once.

    It is no event: nobody subscribes to it, and it is neither retried nor replayed.
    """
    return await stories.send_test(ports, caller, webhook_id)
