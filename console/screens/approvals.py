"""The queue of what waits for a person, and what the item that one looks at does. Spec 1/2.6, 4.7, decisions 11."""

import time
from dataclasses import replace
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical

from console import batch
from console.decisions import Way
from console.dialogs.approve import Approve
from console.dialogs.batch import BatchDecision
from console.dialogs.deny import Deny
from console.dialogs.filter_queue import FilterQueue
from console.history import History
from console.order import Known
from console.queue import PAGE, Item, Outcome
from console.queue_view import View
from console.screens.page import Page
from console.shapes import Approval
from console.widgets.listing import Listing
from console.widgets.order_pane import OrderPane
from console.widgets.plain_text import PlainText
from console.widgets.queue_rows import QueueRows
from console.widgets.queue_state import QueueState
from console.widgets.search_line import SearchLine
from console.widgets.shown_item import ShownItem

# While a long queue is being read the list is not sorted anew with every page.
_READING_SECONDS = 0.5


class Approvals(Page):
    """List and pane. Decisions are about the item in the pane, never about the line under the cursor."""

    PLACE = "approvals"
    DEFAULT_CSS = """
    Approvals #queue { width: 6fr; height: 1fr; }
    Approvals ShownItem { width: 5fr; height: 1fr; border-left: vkey $panel; }
    Approvals #why-not { height: auto; padding: 0 1; color: $text-warning; display: none; }
    Approvals #why-not.-shown { display: block; }
    Approvals.-narrow #both { layout: vertical; }
    Approvals.-narrow #queue { width: 1fr; height: 2fr; }
    Approvals.-narrow ShownItem { width: 1fr; height: 3fr; border-left: none; }
    Approvals.-narrow.-reading #queue { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "decide('approve')", "Approve"),
        Binding("d", "decide('deny')", "Deny"),
        Binding("space", "mark", "Mark"),
        Binding("slash", "search", "Search", key_display="/"),
        Binding("f", "filter", "Filter"),
        Binding("s", "sort", "Sort"),
        Binding("r", "reload", "Reload"),
        Binding("escape", "back", "Back", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.view = View()
        self._history: History | None = None
        self._drawn_at = float("-inf")

    def body(self) -> ComposeResult:
        with Horizontal(id="both"):
            with Vertical(id="queue"):
                columns = QueueRows(self.app.now).columns()
                yield Listing[Item](columns, lambda item: item.id, empty="", mark=True, id="items")
                yield SearchLine(placeholder="agent, address, amount, id or reason")
                yield QueueState()
                yield PlainText("", id="why-not")
            yield ShownItem()

    def on_mount(self) -> None:
        super().on_mount()
        self.listing.focus()
        self.watch(self.app, "queue_version", self.redraw)
        self.set_interval(1, self._second)

    async def load(self) -> None:
        if self.view.status == "pending":
            await self.app.lookout.watch.looked()
        else:
            await self._read_history(0)
        why = self.query_one("#why-not", PlainText)
        why.update(self._why_not())
        why.set_class(bool(self._why_not()), "-shown")

    @property
    def listing(self) -> Listing[Item]:
        return self.query_one("#items", Listing)

    @property
    def shown(self) -> ShownItem:
        """The pane, and the item in it."""
        return self.query_one(ShownItem)

    def redraw(self) -> None:
        """Show the queue as it is known now; neither cursor nor pane go anywhere."""
        if not self.is_mounted or (self.app.lookout.watch.sweeping and self._drew_lately()):
            return
        queue, history = self.app.lookout.queue, self._history
        items = self.view.of(queue.listed() if history is None else history.listed(queue.ended))
        self.listing.empty = self._empty()
        self.listing.show(items)
        self._follow_outcome()
        self._say_state()
        self.trouble(self.app.lookout.watch.trouble)

    def _follow_outcome(self) -> None:
        """The same item stays in the pane; what has become of it is said there."""
        item = self.shown.item
        if item is not None:
            outcome = item.outcome or self.app.lookout.queue.ended.get(item.id)
            now = Item(item.approval, self.app.lookout.queue.ended.get(item.id, outcome))
            if now != item:
                self.shown.show(now)

    @on(Listing.Highlighted)
    def _moved(self, event: Listing.Highlighted) -> None:
        if event.by_person or self.shown.item is None:
            self._look_at(event.row)
        if self._history is not None and self._history.wants_more(self.listing.position):
            self.run_worker(self._read_history(self._history.next_offset), group="more", exclusive=True)

    def _look_at(self, item: Item | None) -> None:
        self.shown.show(item)
        if self._history is None and self.app.lookout.queue.keep(item):
            self.redraw()

    @on(Listing.Chosen)
    def _opened(self) -> None:
        self.add_class("-reading")
        self.query_one(OrderPane).focus()

    def action_decide(self, way: Way) -> None:
        """Ask about the marked items, else about the one in the pane."""
        if marked := [item for item in self.listing.rows if item.id in self.listing.marks]:
            self._decide_marked(way, marked)
            return
        item, app = self.shown.item, self.app
        if item is None:
            app.tell("Nothing is selected.")
        elif self.shown.over:
            app.tell(f"Nothing is left to decide. {self.shown.state}", "warning")
        else:
            known = self.shown.known or Known()
            app.push_screen(Approve(item, known) if way == "approve" else Deny(item, known), self._decided)

    def _decide_marked(self, way: Way, marked: list[Item]) -> None:
        waiting = [item for item in marked if item.outcome is None and not item.is_due(self.app.now())]
        why = batch.refusal(waiting) if way == "approve" else ""
        if why or not waiting:
            self.app.tell(why or "Nothing of what is marked waits any longer.", "warning")
        else:
            self.app.push_screen(BatchDecision(way, waiting), lambda _: self._unmark())

    def _decided(self, outcome: Outcome | None) -> None:
        if outcome is not None:
            self.app.tell(outcome.sentence)

    def _unmark(self) -> None:
        self.listing.marks.clear()
        self.redraw()

    def action_mark(self) -> None:
        self.listing.toggle_mark()
        self._say_state()

    def action_sort(self) -> None:
        """The next order; the cursor stays on its item."""
        self.view = self.view.turned()
        self.redraw()

    def action_reload(self) -> None:
        """Read all of it again; what has ended goes."""
        self.app.lookout.watch.sweep()
        self.shown.ask_around()
        if self.shown.item is not None and self.shown.item.outcome is not None and self._history is None:
            self._turn_to(self.view)
        self.reload()

    def action_filter(self) -> None:
        waiting = list(self.app.lookout.queue.items.values())
        self.app.push_screen(FilterQueue(self.view, waiting), self._turn_to)

    def action_search(self) -> None:
        self.query_one(SearchLine).enter()

    @on(SearchLine.Changed)
    def _searched(self, event: SearchLine.Changed) -> None:
        if event.value != self.view.search:
            self._turn_to(replace(self.view, search=event.value))

    @on(SearchLine.Submitted)
    def _kept_search(self) -> None:
        self.query_one(SearchLine).keep()
        self.listing.focus()

    def action_back(self) -> None:
        """Out of the pane, or out of the search."""
        if self.has_class("-reading"):
            self.remove_class("-reading")
        else:
            self.query_one(SearchLine).leave()
        self.listing.focus()

    def _turn_to(self, view: View | None) -> None:
        """Another part of the queue: what a person asks for themselves may move cursor and pane."""
        if view is None:
            return
        if view.status != self.view.status:
            me = self.app.person.user if self.app.person else None
            self._history = None if view.status == "pending" else History(view.status, me)
            self.reload()
        self.view = view
        self.app.lookout.queue.keep(None)
        self.redraw()
        self._look_at(self.listing.row)

    async def _read_history(self, offset: int) -> None:
        history = self._history
        if history is None:
            return
        page = await self.app.client.get_page("/approvals", Approval, status=history.status, limit=PAGE, offset=offset)
        history.take(page.items, page.total)
        self.redraw()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return not self._why_not() if action == "decide" else super().check_action(action, parameters)

    def _why_not(self) -> str:
        if self.app.settings.read_only:
            return "This console is read-only: others decide."
        if self.app.person is not None and not self.app.person.may_decide:
            return f"Your role ({self.app.person.role}) sees the queue; owners and admins decide."
        return ""

    def _second(self) -> None:
        """Ages and what is left of time; only lines that are seen are drawn."""
        if self.app.lookout.queue.expire(self.app.now()):
            self.app.lookout.changed()
        self.listing.refresh()
        self.shown.tick()

    def _say_state(self) -> None:
        line, shown = self.query_one(QueueState), len(self.listing.rows)
        if self._history is not None:
            line.of_history(self.view, self._history, shown=shown)
        else:
            marked = len(self.listing.marks)
            line.of_waiting(self.view, self.app.lookout.queue, self.app.lookout.watch, shown=shown, marked=marked)

    def _empty(self) -> str:
        if self.view.narrowed:
            return "Nothing like this is here."
        return "Nothing waits for you." if self.app.lookout.queue.whole else "Reading the queue…"

    def _drew_lately(self) -> bool:
        now = time.monotonic()
        if now - self._drawn_at < _READING_SECONDS:
            return True
        self._drawn_at = now
        return False
