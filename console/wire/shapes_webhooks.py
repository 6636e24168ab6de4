"""Webhooks of the API, and the same in words. Pure."""

from datetime import datetime, timedelta
from typing import Final

import msgspec

from words.texts.fields import Field
from words.texts.lines import Tone
from words.texts.moments import clock, moment, span
from words.texts.plain import clip

# The events of orders, for people; others are shown by their names alone.
_EVENTS: Final = {
    "tx.pending": "an order waits for a person",
    "tx.approved": "a person approved an order",
    "tx.denied": "an order was denied, or expired",
    "tx.signed": "an order was signed",
    "tx.confirmed": "the chain confirmed an order",
    "tx.failed": "an order failed on the chain",
    "spend.threshold": "a share of a limit was reached",
    "policy.violation": "a rule refused an order",
    "agent.frozen": "an agent was frozen",
    "agent.unfrozen": "an agent was unfrozen",
    "tenant.frozen": "the tenant was frozen",
    "tenant.unfrozen": "a freeze of the tenant ended",
    "policies.changed": "rules were changed",
    "breaker.tripped": "a circuit breaker froze an agent",
    "intent.created": "an intent was proposed",
    "intent.authorized": "an intent was authorised",
    "intent.executed": "an intent was executed",
    "intent.failed": "an intent failed",
    "intent.rejected": "an intent was rejected",
    "intent.canceled": "an intent was canceled",
    "intent.expired": "an intent expired",
}
_LONGEST_PAUSE_MS: Final = 365 * 86_400_000


class Endpoint(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """An address to which events go."""

    id: str
    url: str
    events: list[str]
    enabled: bool
    disabled_reason: str | None
    max_retries: int
    retry_backoff_ms: int
    description: str | None
    created_at: str


class Delivery(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One event on its way to one endpoint, over all its attempts."""

    id: str
    event_type: str
    status: str
    attempts: int
    max_attempts: int
    next_retry_at: str | None
    has_error: bool
    created_at: str
    delivered_at: str | None
    replayed_from_delivery_id: str | None = None


def endpoint_state(endpoint: Endpoint) -> tuple[str, Tone]:
    """Tell whether events go there, and if not, why."""
    if endpoint.enabled:
        return "enabled", "good"
    return (f"disabled: {endpoint.disabled_reason}" if endpoint.disabled_reason else "disabled"), "bad"


def delivery_state(delivery: Delivery, now: datetime) -> tuple[str, Tone]:
    """Describe the progress of a delivery."""
    match delivery.status:
        case "delivered":
            return "delivered", "good"
        case "failed":
            again = moment(delivery.next_retry_at)
            if again is None:
                return "failed permanently", "bad"
            return f"failed, retried {f'in {span(again - now)}' if again > now else 'now'}", "warn"
        case "pending":
            return "not sent yet", "quiet"
        case "processing":
            return "an attempt is in progress", "quiet"
        case other:
            return other, "quiet"


def pause(endpoint: Endpoint) -> str:
    """Tell how often and how soon a failed delivery is tried again."""
    if not endpoint.max_retries:
        return "none"
    apart = timedelta(milliseconds=min(_LONGEST_PAUSE_MS, endpoint.retry_backoff_ms))
    return f"{endpoint.max_retries}, {span(apart)} apart"


def endpoint_text(endpoint: Endpoint) -> list[Field]:
    """Everything about an endpoint."""
    return [
        ("Address", endpoint.url),
        ("State", endpoint_state(endpoint)[0]),
        ("Events", ", ".join(endpoint.events)),
        ("Retries", pause(endpoint)),
        ("Description", clip(endpoint.description or "-", 1_000)),
        ("Made", clock(moment(endpoint.created_at))),
        ("Id", endpoint.id),
    ]


def event_text(name: str) -> str:
    """An event by its name, and in words where they are known."""
    return f"{name}: {_EVENTS[name]}" if name in _EVENTS else name


def delivery_text(delivery: Delivery, url: str, now: datetime) -> list[Field]:
    """Everything about a delivery to an address."""
    return [
        ("Event", event_text(delivery.event_type)),
        ("To", url),
        ("Delivery", delivery.id),
        ("State", delivery_state(delivery, now)[0]),
        ("Attempts", f"{delivery.attempts} of {delivery.max_attempts}"),
        ("Error", "the last attempt failed" if delivery.has_error else "none"),
        ("Next attempt", clock(moment(delivery.next_retry_at))),
        ("Made", clock(moment(delivery.created_at))),
        ("Delivered", clock(moment(delivery.delivered_at))),
        ("Replay of", delivery.replayed_from_delivery_id or "-"),
    ]
