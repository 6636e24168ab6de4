"""The events of a tenant as they are published, for whoever listens. Decisions 10, `docs/webhooks.md`.

Nothing is kept for a listener but his place: he gets the next rows after it, and when there are none, waits for the
bell. So one who reads slowly costs a few rows, and one who comes back with his last number misses nothing.
"""

import time
from collections.abc import AsyncIterator, Awaitable, Callable

from custody.kit.answers import Streamed
from custody.kit.bell import Listener
from custody.kit.callers import TenantCaller
from custody.ports import Ports
from custody.webhooks import store
from custody.webhooks.store import Published
from custody.webhooks.types import StreamHeaders, StreamQuery, TooManyStreams

# Where the publisher tells of a tenant's new events.
CHANNEL = "custody_events"
# Of one process; each costs a socket, and a query for each event of its tenant. Two a tenant once half are taken.
MAX_STREAMS, MAX_IN_ALL = 20, 500
COMMENT_SECONDS = 15.0
# How often it is asked whether somebody may still listen while he gets nothing; before he gets something it always is.
RECHECK_SECONDS = 4.0
# How often rows are looked for while the bell does not work.
POLL_SECONDS = 1.0
_BATCH = 50

Still = Callable[[], Awaitable[object]]


async def open_stream(ports: Ports, caller: TenantCaller, query: StreamQuery, headers: StreamHeaders) -> Streamed:
    """Begin after the event that is named, or with what comes from now on.

    An event that is not kept any more is answered with a `reset`: what came between is not known here.
    """
    listener = ports.bell.listener(caller.tenant, most=MAX_STREAMS, most_in_all=MAX_IN_ALL)
    if listener is None:
        raise TooManyStreams(retry_after=5)
    newest = await store.newest_event(ports.pool, caller.tenant)
    place, reset = newest, False
    if headers.last_event_id:
        kept = await store.place_after(ports.pool, caller.tenant, int(headers.last_event_id))
        place, reset = (newest, True) if kept is None else (kept, False)
    reader = _Reader(ports, caller.tenant, listener, place, follow=query.follow)
    return Streamed("text/event-stream", lambda still: reader.chunks(still, reset=reset))


class _Reader:
    """One listener and his place."""

    def __init__(self, ports: Ports, tenant: str, listener: Listener, place: int, *, follow: bool) -> None:
        self._ports = ports
        self._tenant = tenant
        self._listener = listener
        self._place = place
        self._follow = follow
        self._checked = time.monotonic()

    async def chunks(self, still: Still, *, reset: bool) -> AsyncIterator[bytes]:
        """What is sent, until he may not listen any more or the service stops; `still` raises when he may not."""
        try:
            # The place at once, and be it 0: who is cut off before the first event comes back with it, and either
            # misses nothing or hears a reset.
            yield b": open\n\n" if reset else b": open\nid: %d\n\n" % self._place
            if reset:
                yield _reset(self._place)
            comment_at = time.monotonic() + COMMENT_SECONDS
            while True:
                rows = await store.events_after(self._ports.pool, self._tenant, self._place, _BATCH)
                if rows or time.monotonic() - self._checked >= RECHECK_SECONDS:
                    await still()
                    self._checked = time.monotonic()
                for row in rows:
                    yield _shown(row)
                    self._place = row.number
                if self._ports.bell.closed:
                    return
                if len(rows) < _BATCH:
                    if not self._follow:
                        return
                    await self._listener.heard(self._patience(comment_at))
                if time.monotonic() >= comment_at:
                    yield b":\n\n"
                    comment_at = time.monotonic() + COMMENT_SECONDS
        finally:
            self._ports.bell.leave(self._tenant, self._listener)

    def _patience(self, comment_at: float) -> float:
        now = time.monotonic()
        seconds = min(comment_at - now, self._checked + RECHECK_SECONDS - now)
        return max(0.0, seconds if self._ports.bell.works else min(seconds, POLL_SECONDS))


def _shown(published: Published) -> bytes:
    # A line break in JSON stands between its parts only, so it may as well be one between lines of data.
    data = b"\n".join(b"data: " + line for line in published.content.splitlines())
    return b"id: %d\nevent: %s\n%s\n\n" % (published.number, published.event.encode(), data)


def _reset(place: int) -> bytes:
    # Without an event there is no number to come back with; whoever does is told the same once more.
    return (b"id: %d\n" % place if place else b"") + b"event: reset\ndata: {}\n\n"
