"""Make, change, delete and try endpoints; the signer keeps their secrets and says what counts."""

from custody.kit.answers import Answered
from custody.kit.callers import SessionCaller
from custody.ports import Ports
from custody.protocol.identity.webhooks import ChangeWebhook, CreateWebhook, NewWebhook, Webhook
from custody.webhooks.types import NewWebhookBody, WebhookChangeBody


async def create(ports: Ports, caller: SessionCaller, body: NewWebhookBody) -> NewWebhook:
    """Create a webhook endpoint, enabled; its secret is returned only in this response."""
    message = CreateWebhook(
        url=body.url,
        events=None if body.events is None else list(body.events),
        description=body.description,
        max_retries=body.max_retries,
        retry_backoff_ms=body.retry_backoff_ms,
    )
    return (await ports.workers.ask(message, caller)).answer


async def change(ports: Ports, caller: SessionCaller, webhook: str, body: WebhookChangeBody) -> Answered[Webhook]:
    """Change some fields of an endpoint."""
    message = ChangeWebhook(
        webhook=webhook,
        url=body.url,
        events=list(body.events) if isinstance(body.events, list) else body.events,
        enabled=body.enabled,
        description=body.description,
        max_retries=body.max_retries,
        retry_backoff_ms=body.retry_backoff_ms,
    )
    return await ports.workers.ask(message, caller)
