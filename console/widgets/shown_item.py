"""The item that one looks at: a snapshot of its own, and the only thing a decision is ever made about."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from textual import work
from textual.app import ComposeResult
from textual.containers import Vertical

from console.application import Application
from console.orders.order_context import fetch_context
from console.queue.context_cache import ContextCache
from console.queue.decisions import find_outcome
from console.queue.queue import SAID, Item
from console.widgets.order_pane import OrderPane
from console.widgets.plain_text import PlainText
from console.wire.failures import Failure
from words.orders.order import Known, of_approval
from words.texts.lines import Line
from words.texts.moments import span


class ShownItem(Vertical):
    """The effects of an item and the time that it waits, or its outcome."""

    DEFAULT_CSS = """
    ShownItem #shown-state { height: auto; padding: 0 1; background: $panel; }
    ShownItem #shown-state.-over { background: $warning-muted; color: $text-warning; text-style: bold; }
    ShownItem OrderPane { height: 1fr; }
    """
    app: Application

    def __init__(self) -> None:
        super().__init__()
        self.item: Item | None = None
        self.known: Known | None = None
        self._around = ContextCache()

    def compose(self) -> ComposeResult:
        yield PlainText("", id="shown-state")
        yield OrderPane()

    def show(self, item: Item | None) -> None:
        """Look at this one now."""
        if item is None or self.item is None or item.id != self.item.id:
            self.known = self._around.recent(item.id, self.app.now()) if item else None
        changed = item != self.item
        self.item = item
        self._draw()
        if item is not None and changed:
            self.ask_around()

    def ask_around(self) -> None:
        """Find out what is known around it, and who decided where somebody has."""
        if self.item is not None:
            self._ask_around(self.item)

    def known_of(self, item: Item) -> Callable[[], Known | None]:
        """Return a function that tells what is known around an item now; more may become known while it is asked about.

        It starts without stale data, and refreshes what has become stale meanwhile.
        """
        self._around.recent(item.id, self.app.now())

        def now_known() -> Known | None:
            if self._wants(item):
                self._ask_anew(item)
            return self._around.for_decision(item.id, self.app.now())

        return now_known

    async def learn(self, item: Item) -> Known | None:
        """Find out what is known around an item that need not be the one in the pane; None where that cannot be had."""
        if (known := self._around.recent(item.id, self.app.now())) is not None:
            return known
        try:
            return await self._learn(item)
        except Failure as failure:
            self.app.signed_out(failure)
            return self._around.for_decision(item.id, self.app.now())

    def tick(self) -> None:
        """A second has passed."""
        self._draw_state()
        seen = bool(self.app.screen_stack) and self.app.screen_stack[0] is self.screen
        if seen and self.item is not None and not self.over and self._wants(self.item):
            self.ask_around()

    def _draw_state(self) -> None:
        state = self.query_one("#shown-state", PlainText)
        state.update(self.state)
        state.set_class(self.over, "-over")

    @property
    def over(self) -> bool:
        """True if nothing can be decided about it any more."""
        return self.item is not None and (self.item.outcome is not None or self.item.is_due(self.app.now()))

    @property
    def state(self) -> str:
        """One line: what the item is at this moment."""
        item, now = self.item, self.app.now()
        if item is None:
            return ""
        if item.outcome is not None:
            return item.outcome.sentence
        if item.is_due(now):
            return "Expired: not decided in time."
        since = f"Has waited {span(now - item.asked)}" if item.asked else "Waits"
        return f"{since}, {item.until(now)}."

    def _draw(self) -> None:
        self._draw_state()
        order = None if self.item is None else of_approval(self.item.approval)
        if order is not None and self.item is not None and self.item.outcome is not None:
            # It waits no more: what was spent has it already, or never will.
            order = replace(order, status=self.item.outcome.word)
        me = self.app.person.user if self.app.person else None
        self.query_one(OrderPane).show(order, self.known, outcome=self._outcome_lines(), me=me)

    def _outcome_lines(self) -> list[Line]:
        outcome = self.item.outcome if self.item else None
        if outcome is None:
            return []
        # The line above says all of it but a long reason, which it clips.
        whole = f'{SAID.get(outcome.word, "Reason")}: "{outcome.reason}"'
        return [Line(whole)] if outcome.reason and whole not in outcome.sentence else []

    @work(group="context", exclusive=True)
    async def _ask_around(self, item: Item) -> None:
        await asyncio.sleep(self.app.rest)
        try:
            await self._learn(item)
            if item.outcome is not None and item.outcome.wants_a_name:
                me = self.app.person.user if self.app.person else None
                self.app.queue_monitor.has_ended(item.id, await find_outcome(self.app.client, item, me))
        except Failure as failure:
            # Away is said by the banner; what is not known is said to be so in the pane.
            if not self.app.signed_out(failure) and self.item is not None and self.item.id == item.id:
                self.known = self.known or Known(trouble=failure.sentence)
                self._draw()

    def _wants(self, item: Item) -> bool:
        """Tell if an item is to be asked about, again or for the first time; while nobody is signed in, none is."""
        return self.app.person is not None and self._around.wants(item.id, self.app.now())

    @work(group="learn")
    async def _ask_anew(self, item: Item) -> None:
        try:
            await self._learn(item)
        except Failure as failure:
            self.app.signed_out(failure)

    async def _learn(self, item: Item) -> Known:
        asked = self.app.now()
        self._around.ask(item.id, asked)
        try:
            known = await fetch_context(self.app.client, of_approval(item.approval))
        except asyncio.CancelledError:
            # The answer goes unheard.
            self._around.give_up(item.id)
            raise
        known = self._around.take(item.id, known, asked)
        if self.item is not None and self.item.id == item.id:
            self.known = known
            self._draw()
        return known
