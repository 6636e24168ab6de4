"""Keeps the queue current, wherever in the console one is: the stream of events is the bell, the list is the truth.

A stream that is open may still be deaf, when nobody publishes to it. So beside it, too, the list is glanced at every
second: its newest item and its length, which no change of what waits leaves as they were while the service counts all
of it.
"""

import asyncio
import gc
import time
from collections.abc import Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from console.queue.queue import PAGE, Item, Outcome, Queue, Sweep
from console.wire.api_client import ApiClient, Event
from console.wire.failures import Away, Failure, SignedOut, TooFast
from words.shapes import Approval
from words.texts.moments import moment

GLANCE_SECONDS: Final = 1.0
# The service says something on the stream every 15 seconds; and the list usually answers in a hundredth of these.
QUIET_SECONDS: Final = 20.0
UNANSWERED_SECONDS: Final = 5.0
# A sweep that was cut short is not begun again before this.
_CUT_SECONDS: Final = 600.0
_MANY: Final = 1_000
# A long queue is not redrawn after every page: sorting and drawing each time would be noticeable.
_TELL_SECONDS: Final = 0.5
_WORDS: Final[dict[str, Any]] = {"tx.approved": "approved", "tx.denied": "denied"}


@dataclass(frozen=True, slots=True)
class Rests:
    """Seconds that the watch rests between two looks."""

    glance: float = GLANCE_SECONDS
    # However quiet it is, the first page is read so often; and however loud the bell is, not more often than `least`.
    read: float = 10.0
    least: float = 0.2
    # A sweep that finds the count still different is not begun again before this.
    sweep: float = 10.0
    # A list that is longer than the service counts is swept so often, whatever its count says.
    uncounted: float = 60.0


class Watch:
    """Reads the queue of one tenant until the credential is no good any more."""

    def __init__(
        self,
        client: ApiClient,
        queue: Queue,
        now: Callable[[], datetime],
        *,
        changed: Callable[[list[Item]], None],
        away: Callable[[float], None],
        rests: Rests = Rests(),
    ) -> None:
        self.queue = queue
        # Whether the stream is there, and what is wrong with the list, in a sentence.
        self.live = False
        self.trouble = ""
        self._client = client
        self._now = now
        self._changed = changed
        self._away = away
        self._rests = rests
        self._rung = asyncio.Event()
        self._seen = asyncio.Event()
        self._sweep: Sweep | None = None
        self._last_event: str | None = None
        self._glance: tuple[str | None, int] | None = None
        self._settled = False
        # Since when the list has been asked without an answer.
        self._asked_at: float | None = None
        self._read_at = self._swept_at = self._looked_at = self._told_at = float("-inf")

    @property
    def current(self) -> bool:
        """True if something new would be seen at once: the stream was heard of late, and the list answers."""
        now = time.monotonic()
        heard = now - self._client.stream_heard_at < QUIET_SECONDS
        return self.live and heard and (self._asked_at is None or now - self._asked_at < UNANSWERED_SECONDS)

    def ring(self) -> None:
        """Look now instead of soon."""
        self._rung.set()

    async def look(self) -> None:
        """Look now, and come back once the list has answered."""
        self._seen.clear()
        self.ring()
        await self._seen.wait()

    def sweep(self) -> None:
        """Read all of it again."""
        self._sweep = self._sweep or Sweep(self.queue.items.keys(), self.queue.most)
        self._rung.set()

    async def run(self) -> SignedOut:
        """Watch, until the API says who must sign in again."""
        async with asyncio.TaskGroup() as tasks:
            listening = tasks.create_task(self._listen())
            try:
                return await self._read()
            finally:
                listening.cancel()

    async def _read(self) -> SignedOut:
        failures = 0
        while True:
            try:
                self._asked_at = self._asked_at or time.monotonic()
                await self._look()
                self._asked_at = None
            except SignedOut as failure:
                return failure
            except Failure as failure:
                failures += 1
                wait = self._wait(failure, failures)
                if isinstance(failure, Away):
                    self._away(wait)
                self._say("" if isinstance(failure, Away) else failure.sentence)
            else:
                failures = 0
                self._say("")
                wait = 0.0 if self._sweep else self._rests.glance
            if self.queue.expire(self._now()):
                self._changed([])
            with suppress(TimeoutError):
                await asyncio.wait_for(self._rung.wait(), wait)

    async def _look(self) -> None:
        """One question, or two: the newest, and the next page of a sweep."""
        now = time.monotonic()
        rung = self._rung.is_set()
        if rung or now - self._read_at >= self._rests.read:
            await asyncio.sleep(max(0.0, self._read_at + self._rests.least - now))
            self._rung.clear()
            await self._first_page()
        elif now - self._looked_at >= self._rests.glance * 0.9:
            self._looked_at = now
            if await self._peek() != self._glance:
                await self._first_page()
        if self._sweep is not None:
            await self._next_page(self._sweep)

    async def _peek(self) -> tuple[str | None, int]:
        page = await self._client.get_page("/approvals", Approval, limit=1)
        return (page.items[0].id if page.items else None, page.total)

    async def _first_page(self) -> None:
        page = await self._client.get_page("/approvals", Approval, limit=PAGE)
        self._read_at = self._looked_at = time.monotonic()
        self._glance = (page.items[0].id if page.items else None, page.total)
        self._seen.set()
        came = self.queue.merge_first(page.items, page.total, self._now(), at_least=page.at_least)
        since = self._read_at - self._swept_at
        rested = since >= (_CUT_SECONDS if self.queue.more else self._rests.sweep)
        wanted = rested and (self.queue.differs or not self.queue.whole)
        # What the service does not count it does not tell apart either.
        unsure = page.at_least and not self.queue.more and since >= self._rests.uncounted
        if len(page.items) == PAGE and self._sweep is None and (wanted or unsure):
            self._sweep = Sweep(self.queue.items.keys(), self.queue.most)
        self._changed(came)

    async def _next_page(self, sweep: Sweep) -> None:
        page = await self._client.get_page("/approvals", Approval, limit=PAGE, cursor=sweep.cursor)
        self.queue.merge_sweep(page.items, self._now())
        sweep.take([one.id for one in page.items], page.cursor)
        if sweep.done:
            self.queue.conclude(sweep)
            self._sweep, self._swept_at = None, time.monotonic()
            if len(self.queue.items) >= _MANY and not self._settled:
                # They stay for long: to look through them again and again for garbage would stop the screen each time.
                self._settled = True
                gc.freeze()
        if sweep.done or time.monotonic() - self._told_at >= _TELL_SECONDS:
            self._told_at = time.monotonic()
            self._changed([])

    async def _listen(self) -> None:
        failures = 0
        while True:
            try:
                async with aclosing(self._client.events(self._last_event)) as events:
                    async for event in events:
                        failures = 0
                        self._take_event(event)
                wait = self._client.patience.again_in(1)
            except Failure as failure:
                if isinstance(failure, SignedOut):
                    # The next look finds the same, and says so.
                    self.ring()
                failures += 1
                wait = self._wait(failure, failures)
            self._set_live(live=False)
            await asyncio.sleep(wait)

    def _wait(self, failure: Failure, failures: int) -> float:
        return failure.retry_after if isinstance(failure, TooFast) else self._client.patience.again_in(failures)

    def _take_event(self, event: Event) -> None:
        if not self.live:
            # What came before the stream was there is found by looking.
            self._set_live(live=True)
            self.ring()
        self._last_event = event.id or self._last_event
        if event.name == "reset":
            self.sweep()
        elif event.name in ("tx.pending", "approval.voted"):
            self.ring()
        elif event.name in _WORDS:
            key, outcome = outcome_in(event)
            if self.queue.end(key, outcome):
                self._changed([])
            self.ring()

    def _set_live(self, *, live: bool) -> None:
        if live != self.live:
            self.live = live
            self._changed([])

    def _say(self, sentence: str) -> None:
        if sentence != self.trouble:
            self.trouble = sentence
            self._changed([])


def outcome_in(event: Event) -> tuple[str, Outcome]:
    """Read the id and the outcome of an item from an event."""
    data = event.data.get("data")
    data = data if isinstance(data, dict) else {}
    at = moment(str(event.data.get("timestamp") or ""))
    reason = str(data.get("comment" if event.name == "tx.approved" else "reason") or "")
    if event.name == "tx.denied" and reason == "expired" and data.get("resolvedBy") == "system":
        return str(data.get("approvalId")), Outcome("expired", at)
    # An event does not name the person; the list does, and is asked when somebody looks at the item.
    return str(data.get("approvalId")), Outcome(_WORDS[event.name], at, "", reason, str(data.get("txHash") or ""))
