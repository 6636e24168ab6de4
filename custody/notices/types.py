"""Notification channels as callers send, see and filter them."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from custody.kit.cursors import Cursor
from custody.kit.described import Id, Instant, described
from custody.kit.errors import Invalid
from custody.kit.shapes import Offset
from custody.protocol.identity.channels import ChannelKind, Target, Token
from custody.protocol.identity.webhooks import Description

NoticeName = Literal["waiting", "expiring", "frozen", "budget", "rules"]
NoticeNames = Annotated[list[NoticeName], Meta(min_length=1, max_length=16)]
# What a tenant may have; a browser is its person's own.
RoomKind = Literal["email", "slack", "discord", "teams", "telegram", "ntfy", "pagerduty", "apprise"]
# Base64url without padding: a point of P-256, 16 and 32 bytes.
PushPoint = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{87}\Z")]
PushAuth = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{22}\Z")]
PushSender = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{43}\Z")]
Detail = Literal["words", "count"]
AfterMinutes = Annotated[int, Meta(ge=0, le=1440)]
ClockTime = Annotated[str, Meta(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]\Z")]
Zone = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_+/-]+\Z")]
NoticeStatus = Literal["pending", "processing", "delivered", "failed", "dropped"]


class BadChannelTime(Invalid):
    """quietHours: timezone must be an IANA name such as Europe/Berlin, and start and end two different times."""


class QuietHours(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The hours in which nothing is sent, but for what cannot wait."""

    start: Annotated[ClockTime, described("The first minute, such as `22:00`.")]
    end: Annotated[ClockTime, described("The end, such as `07:00`; before `start`: on the next day.")]
    timezone: Annotated[Zone, described("An IANA name, such as `Europe/Berlin`.")]


class NotificationChannel(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A channel; its target is secret, and of it only the host and, where it is long, the last four are shown."""

    id: Annotated[Id, described("The channel's id.")]
    tenant_id: Annotated[str, described("The tenant.")]
    kind: Annotated[ChannelKind, described("Kind of channel.")]
    host: Annotated[str, described("Host of its address.")]
    last_four: Annotated[str, described("The last four characters of its target; empty where it is short.")]
    events: Annotated[list[NoticeName], described("The notices that are sent.")]
    detail: Annotated[Detail, described("`words` says what waits; `count` only how much.")]
    after_minutes: Annotated[int, described("Minutes after which a request must still wait to be told.")]
    quiet_hours: Annotated[QuietHours | None, described("The hours in which nothing is sent.")]
    description: Annotated[str | None, described("Your own note.")]
    enabled: Annotated[bool, described("True if messages are sent.")]
    disabled_reason: Annotated[str | None, described("Why the service disabled it by itself.")]
    created_at: Annotated[Instant, described("Time of creation.")]
    last_delivered_at: Annotated[Instant | None, described("Time when a message last arrived.")]


class Notice(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One message to a channel, without its text."""

    id: Annotated[Id, described("The message's id.")]
    purpose: Annotated[
        Literal["events", "change", "farewell", "test"],
        described("Events; another channel was changed; this one was deleted; a test."),
    ]
    status: Annotated[NoticeStatus, described("Present status; `dropped`: everything was decided before it was due.")]
    attempts: Annotated[int, described("Number of attempts.")]
    max_attempts: Annotated[int, described("Maximum number of attempts.")]
    next_retry_at: Annotated[Instant | None, described("Time of the next attempt.")]
    error: Annotated[str | None, described("A word for what went wrong with the last attempt.")]
    created_at: Annotated[Instant, described("Time of creation.")]
    delivered_at: Annotated[Instant | None, described("Time when it was accepted.")]


class NewChannelBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """A channel to make."""

    kind: Annotated[RoomKind, described("Kind of channel.")]
    target: Annotated[Target, described("The address of an incoming webhook, topic or server, or a mail address.")]
    token: Annotated[
        Token | None, described("Kinds ntfy and apprise: for `Authorization: Bearer`. Kind pagerduty: the routing key.")
    ] = None
    events: Annotated[NoticeNames | None, described("The notices to send; null or absent: the defaults.")] = None
    detail: Annotated[Detail, described("`words` says what waits; `count` only how much.")] = "words"
    after_minutes: Annotated[
        AfterMinutes, described("Tell of what waits only if it still waits after so many minutes.")
    ] = 0
    quiet_hours: Annotated[QuietHours | None, described("The hours in which nothing is sent.")] = None
    description: Annotated[Description | None, described("Your own note.")] = None

    def __repr__(self) -> str:
        return "NewChannelBody()"


class NewPushBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """A browser of yours to tell, as it subscribed to its push service."""

    endpoint: Annotated[Target, described("The address that the browser's push service gave it.")]
    p256dh: Annotated[PushPoint, described("The browser's public key, as it gave it.")]
    auth: Annotated[PushAuth, described("The browser's secret for this subscription, as it gave it.")]
    sender_key: Annotated[
        PushSender,
        described("The private half, in base64url, of the P-256 key that it subscribed with: used for this one alone."),
    ]
    events: Annotated[NoticeNames | None, described("The notices to send; null or absent: the defaults.")] = None
    detail: Annotated[Detail, described("`words` says what waits; `count` only how much.")] = "words"
    after_minutes: Annotated[
        AfterMinutes, described("Tell of what waits only if it still waits after so many minutes.")
    ] = 0
    quiet_hours: Annotated[QuietHours | None, described("The hours in which nothing is sent.")] = None
    description: Annotated[Description | None, described("Your own note.")] = None

    def __repr__(self) -> str:
        return "NewPushBody()"


class ChannelChangeBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """The fields to change; omitted fields stay as they are."""

    target: Annotated[Target | UnsetType, described("The address; a new one needs its token again.")] = UNSET
    token: Annotated[Token | UnsetType | None, described("The token; null: none. Only together with `target`.")] = UNSET
    events: Annotated[NoticeNames | UnsetType | None, described("The notices to send; null: the defaults.")] = UNSET
    detail: Annotated[Detail | UnsetType, described("`words` or `count`.")] = UNSET
    after_minutes: Annotated[AfterMinutes | UnsetType, described("Minutes after which it must still wait.")] = UNSET
    quiet_hours: Annotated[QuietHours | UnsetType | None, described("The quiet hours; null: none.")] = UNSET
    description: Annotated[Description | UnsetType | None, described("Your own note.")] = UNSET
    enabled: Annotated[bool | UnsetType, described("True if messages are sent.")] = UNSET

    def __repr__(self) -> str:
        return "ChannelChangeBody()"


class NoticeQuery(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A page of messages."""

    status: Annotated[NoticeStatus | None, described("Only those in this state.")] = None
    limit: Annotated[int, Meta(ge=1, le=200), described("Maximum number of items.")] = 50
    offset: Annotated[Offset, described("Number of items to skip.")] = 0
    cursor: Annotated[Cursor | None, described("`nextCursor` of the page before; instead of an offset.")] = None
