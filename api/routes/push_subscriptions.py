"""Browsers of a person's own, which are told of what waits by their push services."""

from api.areas.webhooks import channels
from api.http.endpoint import Routes
from api.http.who import admin_mfa, asking
from custody.kit.answers import Answered
from custody.kit.callers import SessionCaller
from custody.kit.paging import Listed, Page
from custody.notices import store
from custody.notices.types import BadChannelTime, NewPushBody, NotificationChannel
from custody.ports import Ports
from custody.protocol.identity.channels import CreateChannel, DeleteChannel, DeletedChannel

routes = Routes("/user/me/push-subscriptions", tag="Notifications")


@routes.post("", who=asking(CreateChannel), status=201, fails=(BadChannelTime,))
async def create_push_subscription(
    ports: Ports, caller: SessionCaller, body: NewPushBody
) -> Answered[NotificationChannel]:
    """Tell a browser of yours of what waits in this tenant; five at most. Every channel of the tenant is told of it.

    Address and keys are secret: no answer shows more than the host and the last four. The browser alone can read the
    messages; its push service cannot.
    """
    return await channels.subscribe(ports, caller, body)


@routes.get("", who=admin_mfa("webhooks"))
async def list_push_subscriptions(ports: Ports, caller: SessionCaller, query: Page) -> Listed[NotificationChannel]:
    """List your own browsers that are told, newest first."""
    return await store.all_of(ports.pool, caller.tenant, query, caller.user)


@routes.delete("/<channel_id>", who=asking(DeleteChannel))
async def delete_push_subscription(ports: Ports, caller: SessionCaller, channel_id: str) -> Answered[DeletedChannel]:
    """Tell a browser no more. It is told so a last time, and so is every channel of the tenant."""
    return await ports.workers.ask(DeleteChannel(channel_id), caller)
