"""Make, change, delete and try endpoints. Spec 2/4.7; the signer keeps their secrets and says what counts."""

from typing import Any

import msgspec

from custody.kit.callers import SessionCaller
from custody.ports import Ports
from custody.protocol.client import asked
from custody.protocol.messages import ChangeWebhook, CreateWebhook, DeleteWebhook, SendWebhookTest
from custody.webhooks.types import (
    DeletedWebhook,
    Delivery,
    NewWebhook,
    NewWebhookBody,
    Webhook,
    WebhookChangeBody,
)


async def create(ports: Ports, caller: SessionCaller, body: NewWebhookBody) -> NewWebhook:
    """Make an endpoint, enabled; its secret is shown this once."""
    message = CreateWebhook(
        url=body.url, events=None if body.events is None else list(body.events), description=body.description,
        max_retries=body.max_retries, retry_backoff_ms=body.retry_backoff_ms,
    )  # fmt: skip
    return msgspec.convert(await asked(ports.signer, message, caller), NewWebhook)


async def change(ports: Ports, caller: SessionCaller, webhook: str, body: WebhookChangeBody) -> Any:
    """Change some fields of an endpoint."""
    message = ChangeWebhook(
        webhook=webhook, url=body.url, events=list(body.events) if isinstance(body.events, list) else body.events,
        enabled=body.enabled, description=body.description, max_retries=body.max_retries,
        retry_backoff_ms=body.retry_backoff_ms,
    )  # fmt: skip
    data = await asked(ports.signer, message, caller)
    return data.replayed_or(msgspec.convert(data, Webhook))


async def delete(ports: Ports, caller: SessionCaller, webhook: str) -> Any:
    """Delete an endpoint with its secret; what is on its way to it is not sent any more."""
    data = await asked(ports.signer, DeleteWebhook(webhook), caller)
    return data.replayed_or(msgspec.convert(data, DeletedWebhook))


async def send_test(ports: Ports, caller: SessionCaller, webhook: str) -> Any:
    """Have a `webhook.test` sent, once."""
    data = await asked(ports.signer, SendWebhookTest(webhook), caller)
    return data.replayed_or(msgspec.convert(data, Delivery))
