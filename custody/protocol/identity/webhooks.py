"""Webhooks and their deliveries."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from custody.kit.described import Id, Instant, described
from custody.kit.errors import QuotaExceeded
from custody.kit.shapes import TenantId, Uuid
from custody.protocol.command import SESSION, Command, command, refuses
from custody.protocol.identity import refusals
from custody.protocol.identity.api_keys import MAX_OVERLAP_SECONDS, OVERLAP_SECONDS
from custody.protocol.refusals import AdministrationMoving

Description = Annotated[str, Meta(max_length=1000, pattern=r"^[^\x00]*\Z")]
EventNames = Annotated[list[Annotated[str, Meta(max_length=64)]], Meta(min_length=1, max_length=32)]
MaxRetries = Annotated[int, Meta(ge=0, le=10)]
# A day at most: ten retries are over before what is sent is forgotten.
RetryBackoffMs = Annotated[int, Meta(ge=1000, le=86_400_000)]
# As of a tenant's API keys.
SecretOverlap = Annotated[
    int,
    Meta(ge=0, le=MAX_OVERLAP_SECONDS),
    described("Overlap of the present secret with the new one; with 0 every former one ends at once.", unit="s"),
]
DeliveryStatus = Literal["pending", "processing", "delivered", "failed"]


class Webhook(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """An endpoint of the tenant; `disabledReason` if the service disabled it automatically."""

    id: Annotated[Id, described("The endpoint's id.")]
    tenant_id: Annotated[str, described("The tenant.")]
    url: Annotated[str, described("Receiver of the events.", format="uri")]
    events: Annotated[list[str], described("The events that are sent.")]
    enabled: Annotated[bool, described("True if events are sent.")]
    disabled_reason: Annotated[str | None, described("Why the service disabled it by itself.")]
    max_retries: Annotated[int, described("Number of retries of a failed delivery.")]
    retry_backoff_ms: Annotated[int, described("Milliseconds until the first retry.")]
    description: Annotated[str | None, described("Your own note.")]
    created_at: Annotated[Instant, described("Time of creation.")]


class NewWebhook(Webhook, frozen=True, rename="camel", kw_only=True):
    """The same with its secret, which is returned only here."""

    secret: Annotated[str, described("The secret that signs deliveries; it is returned only here.")]

    def __repr__(self) -> str:
        return f"NewWebhook({self.id})"


class RolledWebhookSecret(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The new secret of an endpoint, which is returned only here, and when each former one ends."""

    id: Annotated[Id, described("The endpoint's id.")]
    secret: Annotated[str, described("The secret that signs deliveries; it is returned only here.")]
    former_secrets_end: Annotated[
        list[Instant], described("Times when former secrets stop signing beside it, the first to end first.")
    ]

    def __repr__(self) -> str:
        return f"RolledWebhookSecret({self.id})"


class DeletedWebhook(msgspec.Struct, frozen=True):
    """The deleted resource."""

    deleted: Annotated[str, described("The id of what was deleted.")]


class Delivery(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One delivery of an event to an endpoint, without payload and URL."""

    id: Annotated[Id, described("The delivery's id, sent as `webhook-id`.")]
    event_type: Annotated[str, described("The event.")]
    status: Annotated[DeliveryStatus, described("Present status.")]
    attempts: Annotated[int, described("Number of attempts.")]
    max_attempts: Annotated[int, described("Maximum number of attempts.")]
    next_retry_at: Annotated[Instant | None, described("Time of the next attempt.")]
    has_error: Annotated[bool, described("True if the last attempt failed.")]
    created_at: Annotated[Instant, described("Time of creation.")]
    delivered_at: Annotated[Instant | None, described("Time when a receiver accepted it.")]
    replayed_from_delivery_id: Annotated[Id | UnsetType, described("The delivery that this one replays.")] = UNSET


class DeliveryHeaders(
    msgspec.Struct,
    frozen=True,
    rename={
        "service_signature": "X-Service-Signature",
        "id": "webhook-id",
        "timestamp": "webhook-timestamp",
        "signature": "webhook-signature",
    }.get,
):
    """The headers of one attempt, both signatures among them."""

    service_signature: str
    id: str
    timestamp: str
    signature: str

    def __repr__(self) -> str:
        return f"DeliveryHeaders({self.id})"


@command("identity", proofs=SESSION, mfa="webhooks", audit=("webhook.created",))
@refuses(AdministrationMoving, QuotaExceeded)
class CreateWebhook(Command[NewWebhook], frozen=True):
    """Make an endpoint of the tenant; its secret is shown once. `events` None: all there are, later ones too."""

    url: Annotated[str, Meta(max_length=2048)]
    events: EventNames | None = None
    description: Description | None = None
    max_retries: MaxRetries = 5
    retry_backoff_ms: RetryBackoffMs = 60_000


@command("identity", proofs=SESSION, mfa="webhooks", audit=("webhook.changed",))
@refuses(AdministrationMoving, refusals.WebhookAbsent)
class ChangeWebhook(Command[Webhook], frozen=True):
    """Change an endpoint; what is left out stays."""

    webhook: Uuid
    url: Annotated[str, Meta(max_length=2048)] | UnsetType = UNSET
    events: EventNames | UnsetType | None = UNSET
    enabled: bool | UnsetType = UNSET
    description: Description | UnsetType | None = UNSET
    max_retries: MaxRetries | UnsetType = UNSET
    retry_backoff_ms: RetryBackoffMs | UnsetType = UNSET


@command("identity", proofs=SESSION, mfa="webhooks", audit=("webhook.secret_rolled",))
@refuses(AdministrationMoving, refusals.TooManyWebhookSecrets, refusals.WebhookAbsent)
class RollWebhookSecret(Command[RolledWebhookSecret], frozen=True):
    """Give an endpoint a new secret, shown once; former ones sign beside it for the overlap."""

    webhook: Uuid
    overlap_seconds: SecretOverlap = OVERLAP_SECONDS


@command("identity", proofs=SESSION, mfa="webhooks", audit=("webhook.deleted",))
@refuses(AdministrationMoving, refusals.WebhookAbsent)
class DeleteWebhook(Command[DeletedWebhook], frozen=True):
    """Delete an endpoint: its secret at once, its row when nothing speaks of it any more."""

    webhook: Uuid


@command("identity", proofs=SESSION, mfa="webhooks", audit=("webhook.tested",))
@refuses(AdministrationMoving, refusals.TooManySentAgain, refusals.WebhookAbsent, refusals.WebhookDisabled)
class SendWebhookTest(Command[Delivery], frozen=True):
    """Queue one delivery of the event `webhook.test`, tried once."""

    webhook: Uuid


@command("identity", proofs=SESSION, mfa="webhooks", audit=("webhook.delivery_retried",))
@refuses(AdministrationMoving, refusals.DeliveryAbsent, refusals.DeliveryDelivered, refusals.DeliveryUnderWay)
@refuses(refusals.RetryBudgetUsed, refusals.WebhookDeleted, refusals.WebhookDisabled, refusals.WebhookUrlChanged)
class RetryDelivery(Command[Delivery], frozen=True):
    """Make a failed delivery due now; the tries it has had still count."""

    delivery: Uuid


@command("identity", proofs=SESSION, mfa="webhooks", audit=("webhook.delivery_replayed",))
@refuses(AdministrationMoving, refusals.DeliveryAbsent, refusals.DeliveryUnderWay, refusals.EventForgotten)
@refuses(refusals.NotSubscribed, refusals.TestNotReplayed, refusals.TooManySentAgain, refusals.WebhookDeleted)
@refuses(refusals.WebhookDisabled, refusals.WebhookUrlChanged)
class ReplayDelivery(Command[Delivery], frozen=True):
    """Send the event of a delivery that is over again, as a new delivery."""

    delivery: Uuid


@command("identity", senders=("scheduler",))
class SignDelivery(Command[DeliveryHeaders], frozen=True):
    """Make the headers with which a delivery to a living, enabled endpoint goes out."""

    tenant: TenantId
    endpoint: Uuid
    delivery: Uuid
    timestamp: Annotated[int, Meta(ge=0)]
    body: bytes

    def __repr__(self) -> str:
        return f"SignDelivery({self.delivery})"
