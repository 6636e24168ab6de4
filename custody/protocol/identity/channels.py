"""Channels by which people are told, and the messages that are sent on them."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from custody.kit.described import Id, described
from custody.kit.errors import QuotaExceeded
from custody.kit.shapes import TenantId, Uuid
from custody.protocol.command import SESSION, Command, command, refuses
from custody.protocol.identity import refusals
from custody.protocol.refusals import AdministrationMoving

ChannelKind = Literal["email", "slack", "discord", "teams", "telegram", "ntfy", "pagerduty", "apprise", "webpush"]
Target = Annotated[str, Meta(min_length=1, max_length=2048)]
Token = Annotated[str, Meta(min_length=1, max_length=512, pattern=r"^[\x21-\x7e]+\Z")]
# What is told, when and how, as JSON: columns by name. The api and the table say what may be there: it decides nothing.
Fields = Annotated[str, Meta(max_length=16_384)]
Shown = Annotated[str, Meta(max_length=300)]


class Led(msgspec.Struct, frozen=True):
    """The place where a channel leads: a secret, and what of it is shown."""

    target: Target
    token: Token | None
    host: Shown
    last_four: Shown

    def __repr__(self) -> str:
        return "Led()"


class SavedChannel(msgspec.Struct, frozen=True):
    """A channel that was made or changed."""

    id: str


class DeletedChannel(msgspec.Struct, frozen=True):
    """The deleted channel."""

    deleted: Annotated[Id, described("The id of what was deleted.")]


class DueNotice(msgspec.Struct, frozen=True):
    """A message that is due."""

    id: str


class OpenedChannel(msgspec.Struct, frozen=True):
    """The target of one message, in the clear."""

    target: str
    token: str | None = None

    def __repr__(self) -> str:
        return "OpenedChannel()"


@command("identity", proofs=SESSION, mfa="webhooks", audit=("channel.created",))
@refuses(AdministrationMoving, QuotaExceeded, refusals.BadChannelTarget)
class CreateChannel(Command[SavedChannel], frozen=True):
    """Make a channel of the tenant, or a browser of the caller's; its target is sealed, every other channel is told."""

    kind: ChannelKind
    led: Led
    fields: Fields


@command("identity", proofs=SESSION, mfa="webhooks", audit=("channel.changed",))
@refuses(AdministrationMoving, refusals.BadChannelTarget, refusals.ChannelAbsent)
class ChangeChannel(Command[SavedChannel], frozen=True):
    """Change a channel; what is left out stays. Every other channel is told."""

    channel: Uuid
    led: Led | None
    fields: Fields


@command("identity", proofs=SESSION, mfa="webhooks", audit=("channel.deleted",))
@refuses(AdministrationMoving, refusals.ChannelAbsent)
class DeleteChannel(Command[DeletedChannel], frozen=True):
    """Delete a channel: it is told a last time, and every other one is."""

    channel: Uuid


@command("identity", proofs=SESSION, mfa="webhooks", audit=("channel.tested",))
@refuses(AdministrationMoving, refusals.ChannelAbsent, refusals.ChannelDisabled, refusals.ChannelTested)
class TestChannel(Command[DueNotice], frozen=True):
    """Send one message that says it is a test."""

    channel: Uuid


@command("identity", proofs=SESSION, mfa="webhooks", audit=("channel.notice_retried",))
@refuses(AdministrationMoving, refusals.ChannelDisabled, refusals.NoticeAbsent, refusals.NoticeNotFailed)
@refuses(refusals.NoticeTriedEnough)
class RetryNotice(Command[DueNotice], frozen=True):
    """Make a failed message due now, for one more attempt."""

    notice: Uuid


@command("identity", senders=("scheduler",))
@refuses(refusals.ChannelAbsent)
class OpenChannel(Command[OpenedChannel], frozen=True):
    """Open the target of a message that is due; nothing for who may not be told any more."""

    tenant: TenantId
    notice: Uuid
