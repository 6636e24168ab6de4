"""A choice of the agent whose transactions are shown."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from console.widgets.agent_list import AgentList
from console.widgets.listing import Column
from console.widgets.plain_text import PlainText
from words.shapes import Agent

ALL = ""


class ChooseAgent(ModalScreen[str | None]):
    """Answers the id of an agent, `ALL`, or None when one steps back. It changes nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Back"),
        Binding("slash", "search", "Search"),
        Binding("a", "all", "All agents"),
    ]

    def __init__(self, agents: Sequence[Agent], chosen: str | None, *, all_allowed: bool) -> None:
        super().__init__()
        self._agents = agents
        self._chosen = chosen
        self._all_allowed = all_allowed

    def compose(self) -> ComposeResult:
        with Vertical():
            yield PlainText("Whose transactions?", classes="over-title")
            yield AgentList(
                [
                    Column("Agent", lambda agent: agent.name, 12, share=3),
                    Column("Id", lambda agent: agent.id, 10, share=2),
                ]
            )
            every = "  a all agents" if self._all_allowed else ""
            yield PlainText(f"Enter chooses  / searches{every}  Esc goes back", classes="over-keys")

    def on_mount(self) -> None:
        agents = self.query_one(AgentList)
        agents.show(self._agents, {})
        if self._chosen:
            agents.select(self._chosen)
        self.query_one("#agents-list").focus()

    def on_agent_list_chosen(self, event: AgentList.Chosen) -> None:
        event.stop()
        self.dismiss(event.agent.id)

    def action_search(self) -> None:
        self.query_one(AgentList).search()

    def action_all(self) -> None:
        if self._all_allowed:
            self.dismiss(ALL)
