"""The agents: who there is, who is frozen, and one at a glance. Spec 1/4.10, decisions 10."""

from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal

from console.agents.agent_in_words import agent_in_words, frozen_words
from console.agents.agent_pages import Everybody, everybody
from console.agents.glance import Glance, glance
from console.dialogs.ask import Ask
from console.dialogs.freeze import Freeze, FreezeTenant, Unfreeze, UnfreezeTenant
from console.screens.page import Page
from console.texts.moments import ago, moment
from console.texts.said import Said
from console.widgets.agent_list import AgentList
from console.widgets.agent_pane import AgentPane
from console.widgets.listing import Cell, Column
from console.wire.failures import SignedOut
from console.wire.kept import Kept
from console.wire.shapes import Agent
from console.wire.shapes_agents import Frozen

_SIGN_IN: Final = "Unfreezing is for people who have signed in; you use the tenant key. Press i to sign in."


class Agents(Page):
    """A list of all agents, and beside it the one under the cursor once it rests there."""

    PLACE = "agents"
    AUTO_FOCUS = "#agents-list"
    BINDINGS: ClassVar[list[BindingType]] = [
        # Of two for one key the one that is possible is shown and done.
        Binding("z", "freeze", "Freeze"),
        Binding("z", "unfreeze", "Unfreeze"),
        Binding("Z", "freeze_tenant", "Freeze all", key_display="Z"),
        Binding("Z", "unfreeze_tenant", "Unfreeze all", key_display="Z"),
        Binding("t", "go('transactions')", "Transactions", show=False),
        Binding("p", "go('policies')", "Policies", show=False),
        Binding("slash", "search", "Search", key_display="/"),
        Binding("s", "sort", "Sort"),
        Binding("r", "look_again", "Reload", show=False),
    ]
    DEFAULT_CSS = """
    Agents #agents { height: 1fr; }
    Agents.-narrow #agents { layout: vertical; }
    Agents AgentList { width: 2fr; }
    Agents AgentPane { width: 3fr; border-left: solid $panel; }
    Agents.-narrow AgentList { width: 1fr; height: 2fr; }
    Agents.-narrow AgentPane { width: 1fr; height: 3fr; border-left: none; border-top: solid $panel; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._known: Everybody | None = None
        self._glances = Kept[Glance]()
        self._arriving = True
        self._states_shown = (False, False)

    def body(self) -> ComposeResult:
        with Horizontal(id="agents"):
            yield AgentList([
                Column("Agent", lambda agent: agent.name, 12, share=3),
                Column("Id", lambda agent: agent.id, 10, share=2, wide=True),
                Column("State", self._state, 8, share=2),
                Column("Waits", self._waits, 5, right=True),
                Column("Made", lambda agent: ago(moment(agent.created_at), self.app.now()), 5, right=True, wide=True),
            ])  # fmt: skip
            yield AgentPane()

    def on_screen_resume(self) -> None:
        # Another place may have gone to another agent meanwhile; once here, the cursor is the person's.
        self._arriving = True

    async def load(self) -> None:
        known = await everybody(self.app.client, self.app.person, self.app.lookout.queue)
        self._known = known
        agents = self.query_one(AgentList)
        agents.show(known.agents, known.waiting, note=self._figures(known))
        if self._arriving and self.app.chosen_agent:
            agents.select(self.app.chosen_agent)
        self._arriving = False
        self._draw()
        if agents.agent is not None:
            self._look(agents.agent.id)

    def on_agent_list_rested(self, event: AgentList.Rested) -> None:
        if event.agent is not None:
            self.app.chosen_agent = event.agent.id
            self._look(event.agent.id)
        self._draw()
        self.refresh_bindings()

    def on_agent_list_chosen(self, event: AgentList.Chosen) -> None:
        self.app.chosen_agent = event.agent.id
        self.app.action_go("transactions")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("freeze", "unfreeze", "freeze_tenant", "unfreeze_tenant"):
            person, tenant = self.app.person, self._known.tenant if self._known else None
            one = tenant if action.endswith("tenant") else self._shown()
            frozen = one is not None and one.frozen_at is not None
            may = not self.app.client.read_only and person is not None and person.may_decide
            return may and frozen == action.startswith("unfreeze")
        return super().check_action(action, parameters)

    def action_go(self, place: str) -> None:
        self.app.action_go(place)

    def action_search(self) -> None:
        self.query_one(AgentList).search()

    def action_sort(self) -> None:
        self.query_one(AgentList).sort()

    def action_look_again(self) -> None:
        self._glances.forget()
        self.reload()

    def action_freeze(self) -> None:
        """Freeze the agent that the pane shows."""
        if (agent := self._shown()) is not None:
            self._ask(Freeze(agent), f"{agent.name} is frozen.")

    def action_unfreeze(self) -> None:
        """Let the agent that the pane shows go on."""
        if (agent := self._shown()) is not None and self._has_session():
            self._ask(Unfreeze(agent), f"{agent.name} is no longer frozen.")

    def action_freeze_tenant(self) -> None:
        """Freeze all agents at once."""
        known = self._known
        if known is None or known.tenant is None:
            self.app.tell("There is no agent yet, so this key does not say whose tenant it is.", "warning")
        else:
            self._ask(FreezeTenant(known.tenant, known.total), "The whole tenant is frozen.")

    def action_unfreeze_tenant(self) -> None:
        """Let all agents go on that are not frozen themselves."""
        if self._known is not None and self._known.tenant is not None and self._has_session():
            self._ask(UnfreezeTenant(self._known.tenant), "The tenant is no longer frozen.")

    def _has_session(self) -> bool:
        """Whether somebody has signed in; if not, that is said."""
        person = self.app.person
        if person is not None and person.user is None:
            self.app.tell(_SIGN_IN, "warning")
            return False
        return True

    def _ask(self, question: Ask[Frozen], done: str) -> None:
        def answered(frozen: Frozen | None) -> None:
            if frozen is not None:
                self.app.tell(done)
                self.action_look_again()

        self.app.push_screen(question, answered)

    def _shown(self) -> Agent | None:
        """The agent that the pane shows: what is done is done to it, wherever the cursor went since."""
        agents = self._known.agents if self._known else ()
        return next((agent for agent in agents if agent.id == self.query_one(AgentPane).of), None)

    def _look(self, agent_id: str) -> None:
        if self._glances.want(agent_id):
            self.run_worker(self._glanced(), group="glance")

    async def _glanced(self) -> None:
        try:
            await self._glances.ask(lambda agent_id: glance(self.app.client, agent_id), self._draw)
        except SignedOut as failure:
            self.app.signed_out(failure)

    def _draw(self) -> None:
        agent = self.query_one(AgentList).agent
        pane = self.query_one(AgentPane)
        if agent is None:
            pane.show(None, [Said("No agent is selected.", "quiet")])
            return
        trouble = self._glances.trouble(agent.id)
        note = [Said(f"! {trouble}", "warn")] if trouble else []
        frozen = bool(self._known and self._known.tenant and self._known.tenant.frozen_at)
        seen = self._glances.get(agent.id)
        pane.show(agent.id, [*note, *agent_in_words(agent, seen, self.app.now(), tenant_frozen=frozen)])
        if (agent.frozen_at is not None, frozen) != self._states_shown:
            # The footer says what f and F do now.
            self._states_shown = agent.frozen_at is not None, frozen
            self.refresh_bindings()

    def _state(self, agent: Agent) -> Cell:
        return (frozen_words(agent), "bad") if agent.frozen_at else "active"

    def _waits(self, agent: Agent) -> Cell:
        known = self._known
        number = known.waiting[agent.id] if known else 0
        # Where not everything was read there may be more.
        more = "" if known is None or known.waiting_complete else "+"
        return (f"{number}{more}", "warn") if number or more else ("-", "quiet")

    def _figures(self, known: Everybody) -> str:
        frozen = bool(known.tenant and known.tenant.frozen_at)
        parts = ["THE WHOLE TENANT IS FROZEN" if frozen else ""]
        if known.total > len(known.agents):
            parts.append(f"only the newest of {known.total:,} are shown")
        return " · ".join(part for part in parts if part)
