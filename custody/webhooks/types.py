"""Webhook endpoints and deliveries as callers see them. Spec 2/2.13, 4.7."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from custody.kit.errors import Conflict, NotFound, TooMany
from custody.protocol.messages import Description, MaxRetries, RetryBackoffMs
from custody.webhooks.names import Subscribable

TargetUrl = Annotated[
    str,
    Meta(
        min_length=1, max_length=2048,
        description="https, with a public host, without user, password and fragment. On a deployment that is itself "
        "reached on loopback also a receiver there, by http or https.",
    ),
]  # fmt: skip
Events = Annotated[list[Subscribable], Meta(min_length=1, max_length=32)]
Status = Literal["pending", "processing", "delivered", "failed"]
EventName = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[a-z_.]+\Z")]


class WebhookAbsent(NotFound):
    """There is no such webhook."""


class DeliveryAbsent(NotFound):
    """There is no such delivery."""


class TooManyWebhooks(Conflict):
    """A tenant has at most 50 webhooks; delete one first."""


class TooManyStreams(TooMany):
    """Too many streams of events are open at once; close one first."""


class NewWebhookBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """Where events go; without `events` every one there is, later ones too."""

    url: TargetUrl
    events: Events | None = None
    description: Description | None = None
    max_retries: MaxRetries = 5
    retry_backoff_ms: RetryBackoffMs = 60_000

    def __repr__(self) -> str:
        return "NewWebhookBody()"


class WebhookChangeBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """The fields to change; what is left out stays. `events` null: every one there is."""

    url: TargetUrl | UnsetType = UNSET
    events: Events | UnsetType | None = UNSET
    enabled: bool | UnsetType = UNSET
    description: Description | UnsetType | None = UNSET
    max_retries: MaxRetries | UnsetType = UNSET
    retry_backoff_ms: RetryBackoffMs | UnsetType = UNSET

    def __repr__(self) -> str:
        return "WebhookChangeBody()"


class Webhook(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """An endpoint of the tenant; `disabledReason` where the service disabled it by itself."""

    id: str
    tenant_id: str
    url: str
    events: list[str]
    enabled: bool
    disabled_reason: str | None
    max_retries: int
    retry_backoff_ms: int
    description: str | None
    created_at: str


class NewWebhook(Webhook, frozen=True, rename="camel", kw_only=True):
    """The same with its secret, which is shown this once."""

    secret: str

    def __repr__(self) -> str:
        return f"NewWebhook({self.id})"


class DeletedWebhook(msgspec.Struct, frozen=True):
    """What is gone."""

    deleted: str


class Delivery(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One event on its way to one endpoint, without what it says and where it goes."""

    id: str
    event_type: str
    status: Status
    attempts: int
    max_attempts: int
    next_retry_at: str | None
    has_error: bool
    created_at: str
    delivered_at: str | None
    replayed_from_delivery_id: str | UnsetType = UNSET


class DeliveryFilter(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Which deliveries."""

    status: Status | None = None
    event_type: EventName | None = None
    has_error: bool | None = None


class DeliveryQuery(DeliveryFilter, frozen=True, rename="camel", kw_only=True):
    """A page of deliveries."""

    limit: Annotated[int, Meta(ge=1, le=200)] = 50
    offset: Annotated[int, Meta(ge=0, le=2**31)] = 0


class ExportQuery(DeliveryFilter, frozen=True, rename="camel", kw_only=True):
    """What is exported."""

    limit: Annotated[int, Meta(ge=1, le=10_000)] = 10_000
    offset: Annotated[int, Meta(ge=0, le=2**31)] = 0


class StreamQuery(msgspec.Struct, frozen=True):
    """`follow` false: what there is after `Last-Event-ID`, and then the end."""

    follow: bool = True


class StreamHeaders(msgspec.Struct, frozen=True, rename={"last_event_id": "Last-Event-ID"}.get):
    """The `id` of the last event that was received."""

    last_event_id: Annotated[str, Meta(max_length=18, pattern=r"^[0-9]*\Z")] = ""
