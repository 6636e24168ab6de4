"""Notification channels: where people are told of what waits."""

from api.areas.webhooks import channels
from api.http.endpoint import Routes
from api.http.who import admin_mfa, asking
from custody.kit.answers import Answered
from custody.kit.callers import SessionCaller
from custody.kit.paging import Listed, Page
from custody.notices import store
from custody.notices.types import (
    BadChannelTime,
    ChannelChangeBody,
    NewChannelBody,
    Notice,
    NoticeQuery,
    NotificationChannel,
)
from custody.ports import Ports
from custody.protocol.identity.channels import (
    ChangeChannel,
    CreateChannel,
    DeleteChannel,
    DeletedChannel,
    RetryNotice,
    TestChannel,
)
from custody.protocol.identity.refusals import ChannelAbsent, NoticeAbsent

routes = Routes("/notification-channels", tag="Notifications")


@routes.post("", who=asking(CreateChannel), status=201, fails=(BadChannelTime,))
async def create_notification_channel(
    ports: Ports, caller: SessionCaller, body: NewChannelBody
) -> Answered[NotificationChannel]:
    """Create a channel, enabled. Its target is secret: no answer shows more of it than its host and last four.

    Every other channel of the tenant is told, and its owners by mail.
    """
    return await channels.create(ports, caller, body)


@routes.get("", who=admin_mfa("webhooks"))
async def list_notification_channels(ports: Ports, caller: SessionCaller, query: Page) -> Listed[NotificationChannel]:
    """List the tenant's channels, newest first."""
    return await store.all_of(ports.pool, caller.tenant, query)


@routes.get("/<channel_id>", who=admin_mfa("webhooks"), fails=(ChannelAbsent,))
async def get_notification_channel(ports: Ports, caller: SessionCaller, channel_id: str) -> NotificationChannel:
    """Get one channel."""
    return await store.get(ports.pool, caller.tenant, channel_id)


@routes.patch("/<channel_id>", who=asking(ChangeChannel), fails=(BadChannelTime,))
async def change_notification_channel(
    ports: Ports, caller: SessionCaller, channel_id: str, body: ChannelChangeBody
) -> Answered[NotificationChannel]:
    """Change some fields of a channel; omitted fields stay. Every other channel is told, and owners by mail."""
    return await channels.change(ports, caller, channel_id, body)


@routes.delete("/<channel_id>", who=asking(DeleteChannel))
async def delete_notification_channel(ports: Ports, caller: SessionCaller, channel_id: str) -> Answered[DeletedChannel]:
    """Delete a channel. It is told a last time, and so are every other one and the owners."""
    return await ports.workers.ask(DeleteChannel(channel_id), caller)


@routes.post("/<channel_id>/test", who=asking(TestChannel), fails=(NoticeAbsent,))
async def test_notification_channel(ports: Ports, caller: SessionCaller, channel_id: str) -> Answered[Notice]:
    """Send a message that says it is a test, once."""
    return await channels.test(ports, caller, channel_id)


@routes.get("/<channel_id>/deliveries", who=admin_mfa("webhooks"), fails=(ChannelAbsent,))
async def list_notification_deliveries(
    ports: Ports, caller: SessionCaller, channel_id: str, query: NoticeQuery
) -> Listed[Notice]:
    """List the messages to a channel, newest first, without their text."""
    return await store.notices_of(ports.pool, caller.tenant, channel_id, query)


@routes.post("/deliveries/<notice_id>/retry", who=asking(RetryNotice))
async def retry_notification_delivery(ports: Ports, caller: SessionCaller, notice_id: str) -> Answered[Notice]:
    """Send a failed message again at once, without what was decided meanwhile."""
    return await channels.retry(ports, caller, notice_id)
