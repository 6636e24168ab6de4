"""The stream of a tenant's events."""

from api.areas.webhooks import stream
from api.http.endpoint import Routes
from api.http.who import tenant_read
from custody.kit.answer_kinds import Streamed
from custody.kit.callers import TenantCaller
from custody.kit.errors import DailyQuotaExceeded
from custody.ports import Ports
from custody.webhooks.types import StreamHeaders, StreamQuery, TooManyStreams

routes = Routes("/events", tag="Events")


@routes.get("", who=tenant_read, fails=(DailyQuotaExceeded, TooManyStreams), media="text/event-stream")
async def stream_events(ports: Ports, caller: TenantCaller, headers: StreamHeaders, query: StreamQuery) -> Streamed:
    """Listen to what happens in the tenant, as server-sent events.

    `id` is the number of the event, `event` its name and `data` what a webhook would be sent. With `Last-Event-ID` it
    goes on after that event, else it begins now. Events are kept for 30 days; after an older one comes `reset`.
    """
    return await stream.open_stream(ports, caller, query, headers)
