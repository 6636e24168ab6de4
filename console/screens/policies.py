"""The rules of one agent in words, and what would become of an order under them."""

from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal

from console.agents.agent_in_words import frozen_words
from console.agents.agent_summary import token_facts
from console.dialogs.dry_run import DryRun
from console.orders.address_book import book_of
from console.rules.rule_terms import Names
from console.rules.rules_in_words import rules_in_words
from console.screens.by_agent import ByAgent
from console.widgets.agent_list import AgentList
from console.widgets.agent_pane import AgentPane
from console.widgets.listing import Cell, Column
from words.shapes import Agent, PolicyRule
from words.texts.lines import Heading, Line
from words.texts.plain import clip


@dataclass(frozen=True)
class Rules:
    """An agent's rules in stored order, and what is known of the tokens and addresses they name."""

    rules: list[PolicyRule]
    names: Names


class Policies(ByAgent[Rules]):
    """A list of agents, and the rules of the one under the cursor. Nothing is changed here."""

    PLACE = "policies"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t", "try", "Try a transaction"),
        Binding("v", "raw", "As stored"),
        Binding("slash", "search", "Search", key_display="/"),
        Binding("s", "sort", "Sort"),
        Binding("r", "look_again", "Reload", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._raw = False

    def body(self) -> ComposeResult:
        with Horizontal(classes="beside"):
            yield AgentList(
                [
                    Column("Agent", lambda agent: agent.name, 12, share=3),
                    Column("State", _state, 8, share=2),
                ]
            )
            yield AgentPane()

    def on_agent_list_chosen(self) -> None:
        self.query_one(AgentPane).focus()

    def action_raw(self) -> None:
        """Each rule also as it is stored, or no longer."""
        self._raw = not self._raw
        self.draw()

    def action_try(self) -> None:
        """Ask what would become of an order; nothing is signed and nothing is written."""
        if (agent := self.agent) is not None:
            self.app.push_screen(DryRun(agent))

    async def find(self, agent_id: str) -> Rules:
        client, book = self.app.client, book_of(self.app.client)
        rules = await client.get(f"/agents/{agent_id}/policies", list[PolicyRule])
        await book.read(client)
        return Rules(rules, Names(await token_facts(client, agent_id, rules), book.names()))

    def draw(self) -> None:
        agent, pane = self.agent, self.query_one(AgentPane)
        if agent is None:
            pane.show(None, [Line("No agent is selected.", "quiet")])
            return
        lines = [
            Heading(f"Rules of {clip(agent.name, 200)} ({agent.id}), in evaluation order"),
            Line(""),
        ]
        if trouble := self.kept.trouble(agent.id):
            lines.append(Line(f"! {trouble}", "warn"))
        if (found := self.kept.get(agent.id)) is None:
            lines.append(Line("Asking…", "quiet"))
        else:
            lines += rules_in_words(found.rules, found.names, raw=self._raw)
        pane.show(agent.id, lines)


def _state(agent: Agent) -> Cell:
    return (frozen_words(agent), "bad") if agent.frozen_at else "active"
