"""The tenant's agents in a list that one searches and sorts, and a word when the cursor has come to rest."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Input

from console.agents.agent_order import ORDERS, search, sort
from console.application import Application
from console.widgets.listing import Column, Listing
from console.widgets.plain_text import PlainText
from words.shapes import Agent


class AgentList(Vertical):
    """A line of figures, the list, and a search line while one searches."""

    DEFAULT_CSS = """
    AgentList #agents-figures { height: auto; padding: 0 1; color: $text-muted; background: $surface; }
    AgentList Input { display: none; border: none; height: 1; padding: 0 1; background: $panel; }
    AgentList Input.-shown { display: block; }
    """
    app: Application
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave_search", "Back", show=False)]

    class Rested(Message):
        """The cursor has come to rest on an agent, or there is none."""

        def __init__(self, agent: Agent | None) -> None:
            self.agent = agent
            super().__init__()

    class Chosen(Message):
        """Enter on an agent."""

        def __init__(self, agent: Agent) -> None:
            self.agent = agent
            super().__init__()

    def __init__(self, columns: Sequence[Column[Agent]], **options: Any) -> None:
        super().__init__(**options)
        self._columns = columns
        self._agents: list[Agent] = []
        self._waiting: Mapping[str, int] = {}
        self._note = ""
        self._order = 0
        self._words = ""
        self._rest: Timer | None = None

    def compose(self) -> ComposeResult:
        yield Input(placeholder="name, id, address, frozen: every word must be found; Esc ends", id="agents-search")
        yield PlainText("", id="agents-figures")
        yield Listing[Agent](self._columns, lambda agent: agent.id, empty="No agents.", id="agents-list")

    @property
    def agent(self) -> Agent | None:
        """The one under the cursor."""
        row = self.query_one("#agents-list", Listing).row
        return row if isinstance(row, Agent) else None

    def show(self, agents: Sequence[Agent], waiting: Mapping[str, int], *, note: str = "") -> None:
        """Show these agents; `note` is what else the figures should say."""
        self._agents, self._waiting, self._note = list(agents), waiting, note
        self._draw()

    def select(self, agent_id: str) -> bool:
        """Put the cursor on one."""
        return self.query_one("#agents-list", Listing).select(agent_id)

    def search(self) -> None:
        """Begin to search."""
        line = self.query_one(Input)
        line.set_class(True, "-shown")
        line.focus()

    def sort(self) -> None:
        """The next order."""
        self._order = (self._order + 1) % len(ORDERS)
        self._draw()

    def action_leave_search(self) -> None:
        line = self.query_one(Input)
        line.value = ""
        line.set_class(False, "-shown")
        self.query_one("#agents-list", Listing).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._words = event.value
        self._draw()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.query_one("#agents-list", Listing).focus()

    def on_listing_highlighted(self, event: "Listing.Highlighted") -> None:
        event.stop()
        if self._rest is not None:
            self._rest.stop()
        self._rest = self.set_timer(self.app.rest, self._post_rested)

    def on_listing_chosen(self, event: "Listing.Chosen") -> None:
        event.stop()
        self.post_message(self.Chosen(event.row))

    def _post_rested(self) -> None:
        self.post_message(self.Rested(self.agent))

    def _draw(self) -> None:
        shown = sort(search(self._agents, self._words), ORDERS[self._order], self._waiting)
        frozen = sum(agent.frozen_at is not None for agent in self._agents)
        listing = self.query_one("#agents-list", Listing)
        listing.empty = "No agent is found by these words." if self._words and self._agents else "No agents yet."
        parts = [f"{len(shown):,} of {len(self._agents):,} agents" if self._words.strip() else _count(len(shown))]
        parts += [ORDERS[self._order], f"{frozen:,} frozen" if frozen else "", self._note]
        self.query_one("#agents-figures", PlainText).update(" · ".join(part for part in parts if part))
        listing.show(shown)


def _count(number: int) -> str:
    return "1 agent" if number == 1 else f"{number:,} agents"
