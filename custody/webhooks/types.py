"""Webhook endpoints and deliveries as callers see them."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from custody.kit.cursors import Cursor
from custody.kit.described import described
from custody.kit.errors import TooMany
from custody.kit.shapes import Offset
from custody.protocol.identity.api_keys import OVERLAP_SECONDS
from custody.protocol.identity.webhooks import DeliveryStatus, Description, MaxRetries, RetryBackoffMs, SecretOverlap
from custody.webhooks.names import Subscribable

TargetUrl = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=2048,
        extra_json_schema={"format": "uri"},
        description="An https address with a public host, without user, password and fragment. A deployment on "
        "loopback also accepts a loopback receiver, by http or https.",
    ),
]
Events = Annotated[list[Subscribable], Meta(min_length=1, max_length=32)]
EventName = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[a-z_.]+\Z")]


class TooManyStreams(TooMany):
    """Too many event streams are open; retry later."""


class NewWebhookBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """A receiver of events; without `events` every event, including later ones."""

    url: Annotated[TargetUrl, described("URL to send events to.")]
    events: Annotated[Events | None, described("The events to send; null or absent: every event, later ones too.")] = (
        None
    )
    description: Annotated[Description | None, described("Your own note.")] = None
    max_retries: Annotated[MaxRetries, described("Number of retries of a failed delivery.")] = 5
    retry_backoff_ms: Annotated[RetryBackoffMs, described("Milliseconds until the first retry.")] = 60_000

    def __repr__(self) -> str:
        return "NewWebhookBody()"


class RollSecretBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The overlap of the present secret with the new one."""

    overlap_seconds: SecretOverlap = OVERLAP_SECONDS


class WebhookChangeBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """The fields to change; omitted fields stay as they are. `events` null: every event."""

    url: Annotated[TargetUrl | UnsetType, described("URL to send events to.")] = UNSET
    events: Annotated[
        Events | UnsetType | None, described("The events to send; null: every event, later ones too.")
    ] = UNSET
    enabled: Annotated[bool | UnsetType, described("True if events are sent.")] = UNSET
    description: Annotated[Description | UnsetType | None, described("Your own note.")] = UNSET
    max_retries: Annotated[MaxRetries | UnsetType, described("Number of retries of a failed delivery.")] = UNSET
    retry_backoff_ms: Annotated[RetryBackoffMs | UnsetType, described("Milliseconds until the first retry.")] = UNSET

    def __repr__(self) -> str:
        return "WebhookChangeBody()"


class DeliveryFilter(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The deliveries to find."""

    status: Annotated[DeliveryStatus | None, described("Only those in this state.")] = None
    event_type: Annotated[EventName | None, described("Only those of this event.")] = None
    has_error: Annotated[bool | None, described("Only those whose last attempt failed, or did not.")] = None


class DeliveryQuery(DeliveryFilter, frozen=True, rename="camel", kw_only=True):
    """A page of deliveries."""

    limit: Annotated[int, Meta(ge=1, le=200), described("Maximum number of items.")] = 50
    offset: Annotated[Offset, described("Number of items to skip.")] = 0
    cursor: Annotated[Cursor | None, described("`nextCursor` of the page before; instead of an offset.")] = None


class ExportQuery(DeliveryFilter, frozen=True, rename="camel", kw_only=True):
    """The part to export."""

    limit: Annotated[int, Meta(ge=1, le=10_000), described("Maximum number of items.")] = 10_000
    offset: Annotated[Offset, described("Number of items to skip.")] = 0
    cursor: Annotated[Cursor | None, described("`nextCursor` of the page before; instead of an offset.")] = None


class StreamQuery(msgspec.Struct, frozen=True):
    """`follow` false: what there is after `Last-Event-ID`, and then the end."""

    follow: Annotated[bool, described("True keeps the stream open; false ends it after the stored events.")] = True


class StreamHeaders(msgspec.Struct, frozen=True, rename={"last_event_id": "Last-Event-ID"}.get):
    """The `id` of the last event that was received."""

    last_event_id: Annotated[
        str, Meta(max_length=18, pattern=r"^[0-9]*\Z"), described("The `id` of the last event that was received.")
    ] = ""
