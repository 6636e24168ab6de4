"""The queue as a list, with the line one searches in and the one that says what is seen."""

from collections.abc import Set

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message

from console.application import Application
from console.queue.history import History
from console.queue.queue import Item
from console.queue.queue_view import View
from console.widgets.listing import Listing
from console.widgets.plain_text import PlainText
from console.widgets.queue_rows import QueueRows
from console.widgets.queue_state import QueueState
from console.widgets.search_line import SearchLine


class QueueList(Vertical):
    """Shows what a view has of the queue, or of a history."""

    DEFAULT_CSS = """
    QueueList #why-not { height: auto; padding: 0 1; color: $text-warning; display: none; }
    QueueList #why-not.-shown { display: block; }
    """
    app: Application

    class Searched(Message):
        """Only what has this in it is to be seen."""

        def __init__(self, text: str) -> None:
            self.text = text
            super().__init__()

    def __init__(self) -> None:
        super().__init__()
        self._view = View()
        self._history: History | None = None
        # Whether all of the queue was there when it was shown last.
        self._was_whole = False

    def compose(self) -> ComposeResult:
        yield Listing[Item](QueueRows(self.app.now).columns(), lambda item: item.id, mark=True, id="items")
        yield SearchLine(placeholder="agent, address, amount, id or reason")
        yield QueueState()
        yield PlainText("", id="why-not")

    @property
    def listing(self) -> Listing[Item]:
        """The list itself."""
        return self.query_one("#items", Listing)

    @property
    def marked(self) -> list[Item]:
        """The marked items, from top to bottom."""
        return [item for item in self.listing.rows if item.id in self.listing.marks]

    def show(self, view: View, history: History | None) -> None:
        """Show what there is now; the cursor stays on its item."""
        queue = self.app.queue_monitor.queue
        # What is read of a long queue, or asked for, comes in too, but is no news.
        news = self._was_whole and history is None and (view, history) == (self._view, self._history)
        self._view, self._history, self._was_whole = view, history, queue.whole
        items = view.of(queue.rows() if history is None else history.items(queue.ended))
        self.listing.empty = self._empty()
        self.listing.show(items, news=news)
        self._say_state()

    def tick(self) -> None:
        """A second has passed."""
        self.listing.tick()
        self._say_state()

    @property
    def searching(self) -> bool:
        """True if there is a search to leave."""
        return self.query_one(SearchLine).has_class("-shown")

    def toggle_mark(self) -> None:
        """Mark the item under the cursor, or take its mark away."""
        self.listing.toggle_mark()
        self._say_state()

    def unmark(self, but: Set[str] = frozenset()) -> None:
        """Take all marks away but those of these ids."""
        self.listing.marks &= but
        self.listing.refresh()
        self._say_state()

    def explain(self, why_not: str) -> None:
        """Why nothing can be decided here; empty where it can."""
        line = self.query_one("#why-not", PlainText)
        line.update(why_not)
        line.set_class(bool(why_not), "-shown")

    def search(self) -> None:
        """Go to the line in which one searches."""
        self.query_one(SearchLine).enter()

    def leave_search(self) -> None:
        """Search for nothing any more."""
        self.query_one(SearchLine).leave()
        self.listing.focus()

    @on(SearchLine.Changed)
    def _search(self, event: SearchLine.Changed) -> None:
        event.stop()
        self.post_message(self.Searched(event.value))

    @on(SearchLine.Submitted)
    def _keep(self, event: SearchLine.Submitted) -> None:
        event.stop()
        self.query_one(SearchLine).keep()
        self.listing.focus()

    def _say_state(self) -> None:
        line, shown = self.query_one(QueueState), len(self.listing.rows)
        if self._history is not None:
            line.of_history(self._view, self._history, shown=shown)
        else:
            queue_monitor, marked = self.app.queue_monitor, len(self.listing.marks)
            shown -= sum(item.outcome is not None for item in self.listing.rows)
            line.of_waiting(
                self._view,
                queue_monitor.queue,
                queue_monitor.watch,
                shown=shown,
                marked=marked,
                above=self.listing.new_above,
            )

    def _empty(self) -> str:
        if self._view.narrowed:
            return "No matching approvals."
        return "No pending approvals." if self.app.queue_monitor.queue.whole else "Reading the queue…"
