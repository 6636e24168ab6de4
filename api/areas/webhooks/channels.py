"""Make, change and test notification channels: checked here, and sealed by identity."""

from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from msgspec import UNSET

from api.areas.webhooks import channel_targets
from custody.kit.answers import Answered
from custody.kit.callers import SessionCaller
from custody.notices import store
from custody.notices.names import in_order
from custody.notices.types import (
    BadChannelTime,
    ChannelChangeBody,
    NewChannelBody,
    NewPushBody,
    Notice,
    NotificationChannel,
)
from custody.ports import Ports
from custody.protocol.identity.channels import ChangeChannel, CreateChannel, RetryNotice, TestChannel
from custody.protocol.identity.refusals import BadChannelTarget


async def create(ports: Ports, caller: SessionCaller, body: NewChannelBody) -> Answered[NotificationChannel]:
    """Make a channel, enabled."""
    led = channel_targets.check(body.kind, body.target, body.token, public_url=ports.deployment.public_url)
    saved = await ports.workers.ask(CreateChannel(body.kind, led, _fields(body)), caller)
    return Answered(await store.get(ports.pool, caller.tenant, saved.answer.id), saved.replayed)


async def subscribe(ports: Ports, caller: SessionCaller, body: NewPushBody) -> Answered[NotificationChannel]:
    """Tell a browser of the caller's, which subscribed with a key of its own."""
    keys = (body.p256dh, body.auth, body.sender_key)
    led = channel_targets.check_push(body.endpoint, *keys, public_url=ports.deployment.public_url)
    saved = await ports.workers.ask(CreateChannel("webpush", led, _fields(body)), caller)
    return Answered(await store.get(ports.pool, caller.tenant, saved.answer.id, caller.user), saved.replayed)


async def change(
    ports: Ports, caller: SessionCaller, channel: str, body: ChannelChangeBody
) -> Answered[NotificationChannel]:
    """Change what is given; a new target is of the channel's kind, and has its token again."""
    led = None
    if body.target is not UNSET:
        kind = (await store.get(ports.pool, caller.tenant, channel)).kind
        token = None if body.token is UNSET else body.token
        led = channel_targets.check(kind, body.target, token, public_url=ports.deployment.public_url)
    elif body.token is not UNSET:
        raise BadChannelTarget("token: give the target with it.", fields=["token"])
    saved = await ports.workers.ask(ChangeChannel(channel, led, _fields(body)), caller)
    return Answered(await store.get(ports.pool, caller.tenant, saved.answer.id), saved.replayed)


async def test(ports: Ports, caller: SessionCaller, channel: str) -> Answered[Notice]:
    """Send a message that says it is a test."""
    due = await ports.workers.ask(TestChannel(channel), caller)
    return Answered(await store.notice(ports.pool, caller.tenant, due.answer.id), due.replayed)


async def retry(ports: Ports, caller: SessionCaller, notice: str) -> Answered[Notice]:
    """Send a failed message again."""
    due = await ports.workers.ask(RetryNotice(notice), caller)
    return Answered(await store.notice(ports.pool, caller.tenant, due.answer.id), due.replayed)


def _fields(body: NewChannelBody | NewPushBody | ChannelChangeBody) -> str:
    names = ("detail", "after_minutes", "description", "enabled")
    given: dict[str, Any] = {name: value for name in names if (value := getattr(body, name, UNSET)) is not UNSET}
    if body.events is not UNSET:
        given["events"] = in_order(body.events)
    if (hours := body.quiet_hours) is None:
        given |= {"quiet_start": None, "quiet_end": None, "quiet_zone": None}
    elif hours is not UNSET:
        try:
            ZoneInfo(hours.timezone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise BadChannelTime from None
        if hours.start == hours.end:
            raise BadChannelTime
        given |= {"quiet_start": hours.start, "quiet_end": hours.end, "quiet_zone": hours.timezone}
    return msgspec.json.encode(given).decode()
