"""The events of a tenant as they are published, for its listeners. See `docs/webhooks.md`.

Nothing is kept for a listener but their place: they get the next rows after it, and when there are none, waits for the
notifier. So one who reads slowly costs a few rows, and one who comes back with their last number misses nothing.
"""

import time
from collections.abc import AsyncIterator, Awaitable, Callable

from custody.kit import quotas
from custody.kit.answer_kinds import Streamed
from custody.kit.callers import SessionCaller, TenantCaller
from custody.kit.maker_store import maker_of
from custody.kit.notifier import Listener
from custody.ports import Ports
from custody.webhooks import store
from custody.webhooks.store import Published
from custody.webhooks.types import StreamHeaders, StreamQuery, TooManyStreams

# Where the publisher tells of a tenant's new events.
CHANNEL = "custody_events"
# Of one process; each costs a socket, and a query for each event of its tenant. Once half are taken, two for a tenant
# or person; the last hundred are for those that have none.
MAX_IN_ALL = 500
COMMENT_SECONDS = 15.0
# Interval of the permission re-check on an idle stream; before an event is sent, the check always runs.
RECHECK_SECONDS = 4.0
# How often rows are looked for while the notifier does not work.
POLL_SECONDS = 1.0
_BATCH = 50

Still = Callable[[], Awaitable[object]]


async def open_stream(ports: Ports, caller: TenantCaller, query: StreamQuery, headers: StreamHeaders) -> Streamed:
    """Begin after the event that is named, or with what comes from now on.

    An event that is not kept any more is answered with a `reset`: what came between is not known here.
    """
    listener = _admit(ports, caller, await maker_of(ports.pool, caller.tenant))
    newest = await store.newest_event(ports.pool, caller.tenant)
    place, reset = newest, False
    if headers.last_event_id:
        kept = await store.place_after(ports.pool, caller.tenant, int(headers.last_event_id))
        place, reset = (newest, True) if kept is None else (kept, False)
    reader = _Reader(ports, caller.tenant, listener, place, follow=query.follow)
    return Streamed("text/event-stream", lambda still: reader.chunks(still, reset=reset))


def _admit(ports: Ports, caller: TenantCaller, maker: str | None) -> Listener:
    """A place, counted to the tenant, to the person who made it, and to the one who listens."""
    people = [caller.user if isinstance(caller, SessionCaller) else None, maker]
    persons = frozenset(person for person in people if person is not None)
    allowed = ports.quotas.of(caller.tenant).event_streams
    quotas.check("event_streams", ports.notifier.waiting(caller.tenant), allowed)
    for person in persons:
        each = ports.quotas.people.event_streams_per_person
        quotas.check("event_streams_per_person", ports.notifier.sharing(person), each)
    listener = ports.notifier.listener(
        caller.tenant, most=allowed or MAX_IN_ALL, most_in_all=MAX_IN_ALL, shares=persons
    )
    if listener is None:
        raise TooManyStreams(retry_after=5)
    return listener


class _Reader:
    """One listener and their place."""

    def __init__(self, ports: Ports, tenant: str, listener: Listener, place: int, *, follow: bool) -> None:
        self._ports = ports
        self._tenant = tenant
        self._listener = listener
        self._place = place
        self._follow = follow
        self._checked = time.monotonic()

    async def chunks(self, still: Still, *, reset: bool) -> AsyncIterator[bytes]:
        """Send events until the caller may listen no more or the service stops; `still` raises when they may not."""
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
                    yield _frame(row)
                    self._place = row.number
                if self._ports.notifier.closed:
                    return
                if len(rows) < _BATCH:
                    if not self._follow:
                        return
                    await self._listener.wait(self._patience(comment_at))
                if time.monotonic() >= comment_at:
                    yield b":\n\n"
                    comment_at = time.monotonic() + COMMENT_SECONDS
        finally:
            self._ports.notifier.leave(self._tenant, self._listener)

    def _patience(self, comment_at: float) -> float:
        now = time.monotonic()
        seconds = min(comment_at - now, self._checked + RECHECK_SECONDS - now)
        return max(0.0, seconds if self._ports.notifier.connected else min(seconds, POLL_SECONDS))


def _frame(published: Published) -> bytes:
    # A line break in JSON stands between its parts only, so it may as well be one between lines of data.
    data = b"\n".join(b"data: " + line for line in published.content.splitlines())
    return b"id: %d\nevent: %s\n%s\n\n" % (published.number, published.event.encode(), data)


def _reset(place: int) -> bytes:
    # Without an event there is no number to resume from; a reconnecting client gets the same `reset` again.
    return (b"id: %d\n" % place if place else b"") + b"event: reset\ndata: {}\n\n"
