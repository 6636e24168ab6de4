"""The line under the queue: how many of what, in which order, and how current it is."""

from console.queue.history import History
from console.queue.queue import Queue
from console.queue.queue_view import View
from console.queue.watch import Watch
from console.widgets.plain_text import PlainText


class QueueState(PlainText):
    """Says what one sees; what is said in colour elsewhere is said in words here."""

    DEFAULT_CSS = "QueueState { height: auto; padding: 0 1; color: $text-muted; }"

    def of_waiting(self, view: View, queue: Queue, watch: Watch, *, shown: int, marked: int, above: int) -> None:
        """Describe the items that wait."""
        waiting = f"{'at least ' if queue.at_least else ''}{queue.waiting:,}"
        reading = f" · {len(queue.items):,} of {waiting} read" if queue.total and not queue.whole else ""
        current = "live" if watch.current else "NOT live: no response" if watch.live else "polled every second"
        new = f" · {above:,} new above" if above else ""
        self.update(f"{view.sentence(shown, marked)}{new}{reading} · {current}")

    def of_history(self, view: View, history: History, *, shown: int) -> None:
        """Describe the decided items."""
        more = f" · {history.progress}" if history.progress else ""
        self.update(f"{view.sentence(shown)}{more}")
