"""Keeps the approvals queue current on every screen; rings the terminal bell and updates the count."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final

from textual.app import App
from textual.worker import Worker, WorkerCancelled, WorkerFailed

from console.queue.queue import Item, Outcome, Queue
from console.queue.watch import Watch
from console.wire.api_client import ApiClient
from console.wire.failures import Failure
from console.work import work

_BELL_SECONDS: Final = 1.0


class QueueMonitor:
    """One queue, one watch over it, one bell."""

    def __init__(
        self,
        app: App[None],
        client: ApiClient,
        now: Callable[[], datetime],
        *,
        changed: Callable[[int | None], None],
        away: Callable[[float], None],
        ended: Callable[[Failure], object],
    ) -> None:
        """`changed` is told how many wait; `ended`, why nobody watches any more."""
        self._app = app
        self._client, self._now = client, now
        self._told, self._away, self._ended = changed, away, ended
        self._rang_at = float("-inf")
        self.restart()

    def restart(self) -> None:
        """Somebody else is here now: nothing of the queue that was seen before is kept."""
        self.stop()
        self.queue = Queue()
        self.watch = Watch(self._client, self.queue, self._now, changed=self.on_change, away=self._away)

    def start(self) -> None:
        """Watch, until the credential is no good any more."""
        self._watching: Worker[None] = work(self._app, "queue_monitor", self._watch)

    def stop(self) -> None:
        """Nobody is signed in."""
        self._app.workers.cancel_group(self._app, "queue_monitor")

    async def close(self) -> None:
        """Let whatever still asks, here or on a screen, come to its end; what is cut off leaves its connection open."""
        asking = [*self._app.workers]
        self._app.workers.cancel_all()
        for worker in asking:
            with suppress(WorkerFailed, WorkerCancelled):
                await worker.wait()

    def on_change(self, came: Sequence[Item] = ()) -> None:
        """Something is otherwise; the bell rings for what came, but not like mad."""
        self._told(self.queue.waiting)
        if came and time.monotonic() - self._rang_at >= _BELL_SECONDS:
            self._rang_at = time.monotonic()
            self._app.bell()

    def has_ended(self, key: str, outcome: Outcome) -> None:
        """Record an outcome that is known here before the service tells of it."""
        if self.queue.end(key, outcome):
            self.on_change()

    async def _watch(self) -> None:
        self._ended(await self.watch.run())
