"""The transactions: what agents asked for, what it did, and what became of it."""

import asyncio
from typing import Any, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container

from console.dialogs.choose_agent import ChooseAgent
from console.orders.address_book import book_of
from console.orders.merged import Merged
from console.orders.transaction_filters import HINT, fields
from console.screens.page import Page
from console.widgets.filter_line import FilterLine
from console.widgets.listing import Cell, Column, Listing
from console.widgets.plain_text import PlainText
from console.widgets.transaction_pane import TransactionPane
from console.wire.failures import Answered
from words.orders.order import Known, of_transaction
from words.orders.outcome_lines import state
from words.orders.words import summary
from words.shapes import Transaction, TransactionPage
from words.texts.chains import chain_of
from words.texts.moments import ago, moment
from words.texts.plain import short

PAGE: Final = 50
AHEAD: Final = 20
# The service lists agent by agent: of more than so many nobody waits for all.
MOST_AT_ONCE: Final = 20


class Transactions(Page):
    """A list, newest first, and everything about the one under the cursor."""

    PLACE = "transactions"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "choose", "Choose agent"),
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("r", "look_again", "Reload"),
        Binding("escape", "back", "Back", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._query: dict[str, str] = {}
        self._merged = Merged(())
        self._more = False

    def body(self) -> ComposeResult:
        yield FilterLine(HINT, lambda: fields(self.app.now))
        yield PlainText("", id="caption")
        with Container(id="both"):
            yield Listing[Transaction](
                [
                    Column("Ago", lambda row: ago(moment(row.created_at), self.app.now()), 4, right=True),
                    Column("Status", _state, 10),
                    Column("What", lambda row: summary(of_transaction(row), Known()), 24, share=4),
                    Column("Agent", lambda row: self._agent_name(row.agent_id), 10, share=1),
                    Column("Chain", lambda row: chain_of(row.kind, row.chain_id, row.caip2), 10, share=1, wide=True),
                ],
                lambda row: row.id,
                empty="Loading…",
                id="transactions",
            )
            yield TransactionPane()

    def on_mount(self) -> None:
        self.watch(self._listing, "scroll_y", self._look_ahead, init=False)

    async def load(self) -> None:
        """The newest page of each agent that is shown, and more below as far as one has scrolled."""
        book = book_of(self.app.client)
        await book.read(self.app.client)
        chosen = self.app.chosen_agent
        agents = [chosen] if chosen else [agent.id for agent in book.agents()]
        if len(agents) > MOST_AT_ONCE:
            self._listing.empty = f"There are {len(agents):,} agents: press c and choose one."
            agents = []
        if self._merged.agents != agents:
            self._merged = Merged(agents)
        try:
            await self._ask([(agent, 0) for agent in agents])
            while self._more and (wanted := self._merged.next()):
                self._more = False
                await self._ask(wanted)
        except Answered as refusal:
            if refusal.status != 400:
                raise
            # What was typed cannot be searched for; what was found before is not shown as its answer.
            self.query_one(FilterLine).trouble(refusal.sentence)
            self._merged = Merged(agents)
        else:
            if agents:
                self._listing.empty = "No transaction matches the filter." if self._query else "No transactions yet."
        self._show()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "back" and self.query_one(TransactionPane).has_focus is False and not self.has_class("-open"):
            return False
        return super().check_action(action, parameters)

    def on_listing_highlighted(self, event: Listing.Highlighted) -> None:
        row = event.row
        self.query_one(TransactionPane).look_at(row, self._agent_name(row.agent_id) if row else "")
        self._look_ahead()

    def on_listing_chosen(self, event: Listing.Chosen) -> None:
        self.add_class("-open")
        self.query_one(TransactionPane).focus()

    def on_filter_line_asked(self, event: FilterLine.Asked) -> None:
        self._query = event.query
        self._start_anew()

    def on_filter_line_left(self) -> None:
        self._listing.focus()

    def action_filter(self) -> None:
        self.action_back()
        self.query_one(FilterLine).enter()

    def action_back(self) -> None:
        """From the pane to the list."""
        self.remove_class("-open")
        self._listing.focus()

    def action_look_again(self) -> None:
        self.query_one(TransactionPane).look_again()
        self.reload()

    def action_choose(self) -> None:
        """Another agent, or all of them."""
        agents = book_of(self.app.client).agents()
        question = ChooseAgent(agents, self.app.chosen_agent, all_allowed=len(agents) <= MOST_AT_ONCE)

        def on_choice(agent_id: str | None) -> None:
            if agent_id is not None:
                self.app.chosen_agent = agent_id or None
                self._start_anew()

        self.app.push_screen(question, on_choice)

    def _start_anew(self) -> None:
        self._merged, self._more = Merged(()), False
        self._listing.empty = "Loading…"
        self._show()
        self.action_back()
        self.reload()

    async def _ask(self, wanted: list[tuple[str, int]]) -> None:
        async def one(agent: str, offset: int) -> None:
            page = await self.app.client.get(
                f"/vault/{agent}/transactions", TransactionPage, limit=PAGE, offset=offset, **self._query
            )
            merged.take(agent, page, offset)

        merged = self._merged
        await asyncio.gather(*(one(agent, offset) for agent, offset in wanted))
        self._show()

    def _show(self) -> None:
        self._listing.show(self._merged.rows())
        chosen = self.app.chosen_agent
        whose = f"of {short(self._agent_name(chosen), 32)} ({chosen})" if chosen else "of all agents"
        count = "1 transaction" if self._merged.total == 1 else f"{self._merged.total:,} transactions"
        count = f"at least {count}" if self._merged.at_least else count
        self.query_one("#caption", PlainText).update(f"{count} {whose}, newest first")

    def _look_ahead(self, *_: Any) -> None:
        if not self._more and self._listing.ends_within(AHEAD) and self._merged.next():
            self._more = True
            self.reload()

    def _agent_name(self, agent_id: str | None) -> str:
        agent = book_of(self.app.client).agent(agent_id or "")
        return agent.name if agent else agent_id or ""

    @property
    def _listing(self) -> Listing[Transaction]:
        return self.query_one("#transactions", Listing)


def _state(row: Transaction) -> Cell:
    word, tone = state(row.status, row.status_detail)
    return (word, tone) if tone else word
