"""The queue of what waits for a person, and what the item that one looks at does."""

from dataclasses import replace
from typing import ClassVar

import msgspec
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal

from console.dialogs.batch import BatchDecision
from console.dialogs.deciding import Approve, Deny
from console.dialogs.filter_queue import FilterQueue
from console.dialogs.vote import Vote
from console.queue import batch
from console.queue.decisions import Way, why_not
from console.queue.history import History
from console.queue.queue import PAGE, Item, Outcome
from console.queue.queue_view import View
from console.screens.intents import Intents
from console.screens.page import Page
from console.widgets.listing import Listing
from console.widgets.order_pane import OrderPane
from console.widgets.queue_list import QueueList
from console.widgets.shown_item import ShownItem
from words.orders.votes import count, why_no_vote
from words.shapes import Approval, Votes


class Approvals(Page):
    """List and pane. Decisions are about the item in the pane, never about the line under the cursor."""

    PLACE = "approvals"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "decide('approve')", "Approve"),
        Binding("d", "decide('deny')", "Deny"),
        Binding("space", "mark", "Mark"),
        Binding("slash", "search", "Search", key_display="/"),
        Binding("f", "filter", "Filter"),
        Binding("s", "sort", "Sort"),
        Binding("n", "intents", "Intents"),
        Binding("r", "reload", "Reload"),
        Binding("escape", "back", "Back"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.view = View()
        self._history: History | None = None
        # Whether one is about to see the end of what was read of it.
        self._more = False

    def body(self) -> ComposeResult:
        with Horizontal(id="both"):
            yield QueueList()
            yield ShownItem()

    def on_mount(self) -> None:
        self.queue.listing.focus()
        self.watch(self.app, "queue_version", self.redraw)
        self.set_interval(1, self._second)

    async def load(self) -> None:
        self.queue.explain(self._why_not())
        if (history := self._history) is None:
            await self.app.queue_monitor.watch.look()
        else:
            await self._read_newest(history)
            if self._more:
                await self._read_on(history)
                self._more = False

    @property
    def queue(self) -> QueueList:
        """The list from which one chooses."""
        return self.query_one(QueueList)

    @property
    def shown(self) -> ShownItem:
        """The pane, and the item in it."""
        return self.query_one(ShownItem)

    def redraw(self) -> None:
        """Show the queue as it is known now; neither cursor nor pane go anywhere."""
        if not self.is_mounted:
            return
        self.queue.show(self.view, self._history)
        self.trouble(self.app.queue_monitor.watch.trouble)
        item = self.shown.item
        if item is not None:
            # The same order stays in the pane, as it was read; what has become of it is said there.
            now = self.app.queue_monitor.queue.latest(item)
            approval = item.approval
            if now.approval.digest == approval.digest and now.approval.votes != approval.votes:
                # Votes come while one reads; the order is the same.
                approval = msgspec.structs.replace(approval, votes=now.approval.votes)
            self.shown.show(Item(approval, now.outcome, now.clock_is_wrong))

    @on(Listing.Highlighted)
    def _follow(self, event: Listing.Highlighted) -> None:
        if event.by_person or self.shown.item is None:
            # Where the cursor is now: what it was on when this was said may be gone already.
            self._look_at(self.queue.listing.row)
        near_end = self._history is not None and self._history.wants_more(self.queue.listing.position)
        if near_end and not self._more:
            self._more = True
            self.reload()

    def _look_at(self, item: Item | None) -> None:
        self.shown.show(item)
        if self._history is None and self.app.queue_monitor.queue.keep(item):
            self.redraw()

    @on(Listing.Chosen)
    def _open(self) -> None:
        self.add_class("-reading")
        self.query_one(OrderPane).focus()
        self.refresh_bindings()

    def action_decide(self, way: Way) -> None:
        """Ask about the marked items, else about the one in the pane."""
        item = self.shown.item
        if marked := self.queue.marked:
            self._decide_marked(way, marked)
        elif item is None:
            self.app.tell("Nothing is selected.")
        elif self.shown.over:
            self.app.tell(f"Nothing is left to decide. {self.shown.state}", "warning")
        else:
            self._ask_about(way, item)

    def _ask_about(self, way: Way, item: Item) -> None:
        known = self.shown.known_of(item)
        votes = item.approval.votes
        if way == "approve" and votes is not None:
            if why := why_no_vote(votes, self._me):
                self.app.tell(why, "warning")
            else:
                self.app.push_screen(Vote(item, known), self._report_decision)
            return
        self.app.push_screen(Approve(item, known) if way == "approve" else Deny(item, known), self._report_decision)

    def _decide_marked(self, way: Way, marked: list[Item]) -> None:
        waiting = [item for item in marked if item.outcome is None and not item.is_due(self.app.now())]
        if way == "approve" and len(waiting) > 1 and (voted := [one for one in waiting if one.approval.votes]):
            # Each vote is a touch of a key for one order.
            waiting = [item for item in waiting if not item.approval.votes]
            self.app.tell(f"{batch.left_out(len(voted))}", "warning")
            if not waiting:
                return
        why = batch.refusal(waiting) if way == "approve" and len(waiting) > 1 else ""
        if len(waiting) == 1:
            # One is one, however it was chosen: all of it is read, and known around it.
            self._ask_about(way, waiting[0])
        elif why or not waiting:
            self.app.tell(why or "None of the marked items is still pending.", "warning")
        else:
            question = BatchDecision(way, waiting, self.shown.learn)
            self.app.push_screen(question, lambda left: None if left is None else self.queue.unmark(but=left))

    def _report_decision(self, found: Outcome | Votes | None) -> None:
        if found is None:
            return
        self.queue.unmark()
        if isinstance(found, Outcome):
            self.app.tell(found.briefly)
        else:
            self.app.tell(f"Your vote was taken: {count(found, self._me)}. The order is not signed yet.")

    def action_mark(self) -> None:
        self.queue.toggle_mark()

    def action_sort(self) -> None:
        """The next order; the cursor stays on its item."""
        self.view = self.view.with_next_sorting()
        self.redraw()

    def action_reload(self) -> None:
        """Read all of it again; what has ended goes."""
        self.app.queue_monitor.watch.sweep()
        if self.shown.item is not None and self.shown.item.outcome is not None and self._history is None:
            self._turn_to(self.view)
        else:
            self.shown.ask_around()
        self.reload()

    def action_intents(self) -> None:
        """Open the proposals that wait for a person, beside the orders of agents."""
        self.app.push_screen(Intents())

    def action_filter(self) -> None:
        waiting = [*self.app.queue_monitor.queue.items.values()]
        self.app.push_screen(FilterQueue(self.view, waiting), self._turn_to)

    def action_search(self) -> None:
        self.queue.search()
        self.refresh_bindings()

    @on(QueueList.Searched)
    def _search(self, event: QueueList.Searched) -> None:
        if event.text != self.view.search:
            self._turn_to(replace(self.view, search=event.text))

    def action_back(self) -> None:
        """Out of the pane, or out of the search."""
        if self.has_class("-reading"):
            self.remove_class("-reading")
            self.queue.listing.focus()
        else:
            self.queue.leave_search()
        self.refresh_bindings()

    def _turn_to(self, view: View | None) -> None:
        """Another part of the queue: what a person asks for themselves may move cursor and pane."""
        if view is None:
            return
        if view.status != self.view.status:
            self._history = None if view.status == "pending" else History(view.status, self._me)
            self._more = False
            self.reload()
        self.view = view
        self.app.queue_monitor.queue.keep(None)
        self.redraw()
        self._look_at(self.queue.listing.row)

    async def _read_newest(self, history: History) -> None:
        page = await self.app.client.get_page("/approvals", Approval, status=history.status, limit=PAGE)
        history.take_newest(page.items, page.total, page.cursor, at_least=page.at_least)
        self.redraw()

    async def _read_on(self, history: History) -> None:
        if (cursor := history.cursor) is None:
            return
        page = await self.app.client.get_page("/approvals", Approval, status=history.status, limit=PAGE, cursor=cursor)
        history.take_more(page.items, page.cursor)
        self.redraw()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        reading = self.has_class("-reading")
        if action == "mark" and self.app.settings.read_only:
            return False
        if action in ("mark", "search") and reading and self.has_class("-narrow"):
            # There the pane lies over the list.
            return False
        if action == "back" and not reading:
            return self.queue.searching
        return not self._why_not() if action == "decide" else super().check_action(action, parameters)

    @property
    def _me(self) -> str | None:
        return self.app.person.user if self.app.person else None

    def _why_not(self) -> str:
        return why_not(self.app.person, read_only=self.app.settings.read_only)

    def _second(self) -> None:
        """Ages and what is left of time; only what reads otherwise than a second ago is drawn."""
        if self.app.queue_monitor.queue.expire(self.app.now()):
            self.app.queue_monitor.on_change()
        self.queue.tick()
        self.shown.tick()
