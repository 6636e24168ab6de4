"""Rows of endpoints and deliveries as they are shown, the same by the process that reads them and by identity."""

from typing import Any

from msgspec import UNSET

from custody.kit import clock
from custody.protocol.identity.webhooks import Delivery, Webhook
from custody.webhooks.names import SUBSCRIBABLE


def webhook_of(row: Any) -> Webhook:
    """An endpoint, from its whole row."""
    return Webhook(
        id=str(row["id"]),
        tenant_id=row["tenant_id"],
        url=row["url"],
        events=list(SUBSCRIBABLE) if row["events"] is None else row["events"],
        enabled=row["enabled"],
        disabled_reason=row["disabled_reason"],
        max_retries=row["max_retries"],
        retry_backoff_ms=row["retry_backoff_ms"],
        description=row["description"],
        created_at=clock.iso(row["created_at"]),
    )


def delivery_of(row: Any) -> Delivery:
    """A delivery, from its row with `has_error` beside it."""
    return Delivery(
        id=str(row["id"]),
        event_type=row["event"],
        status=row["status"],
        attempts=row["attempts"],
        max_attempts=row["max_attempts"],
        next_retry_at=_moment(row["next_retry_at"]),
        has_error=row["has_error"],
        created_at=clock.iso(row["created_at"]),
        delivered_at=_moment(row["delivered_at"]),
        replayed_from_delivery_id=UNSET if row["replayed_from"] is None else str(row["replayed_from"]),
    )


def _moment(at: Any) -> str | None:
    return None if at is None else clock.iso(at)
