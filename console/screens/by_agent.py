"""The base of places where one goes from agent to agent."""

from abc import abstractmethod

from console.agents.agent_pages import AllAgents, all_agents
from console.screens.page import Page
from console.widgets.agent_list import AgentList
from console.wire.failures import SignedOut
from console.wire.kept import Kept
from console.work import work
from words.shapes import Agent


class ByAgent[Seen](Page):
    """A list of all agents, and beside it what is known of the one under the cursor once it rests there."""

    AUTO_FOCUS = "#agents-list"

    def __init__(self) -> None:
        super().__init__()
        self.all_agents: AllAgents | None = None
        self.kept = Kept[Seen]()
        self._arriving = True

    @abstractmethod
    async def find(self, agent_id: str) -> Seen:
        """Ask the service about one agent."""

    @abstractmethod
    def draw(self) -> None:
        """Show what is known of the agent under the cursor."""

    def note(self, known: AllAgents) -> str:
        """Write the note below the list beside its length."""
        return ""

    @property
    def agent(self) -> Agent | None:
        """The agent under the cursor."""
        return self.query_one(AgentList).agent

    def on_screen_resume(self) -> None:
        # Another place may have gone to another agent meanwhile; once here, the cursor is the person's.
        self._arriving = True

    async def load(self) -> None:
        known = self.all_agents = await all_agents(self.app.client, self.app.person, self.app.queue_monitor.queue)
        agents = self.query_one(AgentList)
        agents.show(known.agents, known.waiting, note=self.note(known))
        if self._arriving and self.app.chosen_agent:
            agents.select(self.app.chosen_agent)
        self._arriving = False
        self.draw()
        self._look()

    def on_agent_list_rested(self, event: AgentList.Rested) -> None:
        if event.agent is not None:
            self.app.chosen_agent = event.agent.id
            self._look()
        self.draw()
        self.refresh_bindings()

    def action_search(self) -> None:
        self.query_one(AgentList).search()

    def action_sort(self) -> None:
        self.query_one(AgentList).sort()

    def action_look_again(self) -> None:
        self.kept.forget()
        self.reload()

    def _look(self) -> None:
        if self.agent is not None and self.kept.want(self.agent.id):
            work(self, "agent", self._find_out, exclusive=False)

    async def _find_out(self) -> None:
        try:
            await self.kept.ask(self.find, self.draw)
        except SignedOut as failure:
            self.app.signed_out(failure)
