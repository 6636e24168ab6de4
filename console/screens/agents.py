"""The agents: who there is, who is frozen, and one at a glance."""

from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal

from console.agents.agent_in_words import agent_in_words, frozen_words
from console.agents.agent_pages import AllAgents
from console.agents.agent_summary import AgentSummary, fetch_summary
from console.dialogs.ask import Ask
from console.dialogs.freeze import Freeze, FreezeTenant, Unfreeze, UnfreezeTenant
from console.screens.accounts import Accounts
from console.screens.by_agent import ByAgent
from console.screens.signers import Signers
from console.widgets.agent_list import AgentList
from console.widgets.agent_pane import AgentPane
from console.widgets.listing import Cell, Column
from console.wire.shapes_agents import Frozen
from words.shapes import Agent
from words.texts.lines import Line
from words.texts.moments import ago, moment

_SIGN_IN: Final = "Unfreezing requires a signed-in person; you use the tenant key. Press i to sign in."


class Agents(ByAgent[AgentSummary]):
    """A list of all agents, and beside it the one under the cursor once it rests there."""

    PLACE = "agents"
    BINDINGS: ClassVar[list[BindingType]] = [
        # Of two for one key the one that is possible is shown and done.
        Binding("z", "freeze", "Freeze"),
        Binding("z", "unfreeze", "Unfreeze"),
        Binding("Z", "freeze_tenant", "Freeze all", key_display="Z"),
        Binding("Z", "unfreeze_tenant", "Unfreeze all", key_display="Z"),
        Binding("u", "signers", "Signers"),
        Binding("o", "accounts", "Accounts"),
        Binding("t", "go('transactions')", "Transactions", show=False),
        Binding("p", "go('policies')", "Policies", show=False),
        Binding("slash", "search", "Search", key_display="/"),
        Binding("s", "sort", "Sort"),
        Binding("r", "look_again", "Reload", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._states_shown = (False, False)

    def body(self) -> ComposeResult:
        with Horizontal(classes="beside"):
            yield AgentList(
                [
                    Column("Agent", lambda agent: agent.name, 12, share=3),
                    Column("Id", lambda agent: agent.id, 10, share=2, wide=True),
                    Column("State", self._state, 8, share=2),
                    Column("Waits", self._waits, 5, right=True),
                    Column(
                        "Made", lambda agent: ago(moment(agent.created_at), self.app.now()), 5, right=True, wide=True
                    ),
                ]
            )
            yield AgentPane()

    def on_agent_list_chosen(self, event: AgentList.Chosen) -> None:
        self.app.chosen_agent = event.agent.id
        self.app.action_go("transactions")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("freeze", "unfreeze", "freeze_tenant", "unfreeze_tenant"):
            person, tenant = self.app.person, self.all_agents.tenant if self.all_agents else None
            one = tenant if action.endswith("tenant") else self._agent()
            frozen = one is not None and one.frozen_at is not None
            may = not self.app.client.read_only and person is not None and person.may_decide
            return may and frozen == action.startswith("unfreeze")
        return super().check_action(action, parameters)

    def action_go(self, place: str) -> None:
        self.app.action_go(place)

    def action_accounts(self) -> None:
        """Wallets of several agents under one name."""
        self.app.push_screen(Accounts())

    def action_signers(self) -> None:
        """Open the signers and quorums that must agree to the orders of the agent in the pane."""
        if (agent := self._agent()) is not None:
            self.app.push_screen(Signers(agent))

    def action_freeze(self) -> None:
        """Freeze the agent that the pane shows."""
        if (agent := self._agent()) is not None:
            self._ask(Freeze(agent), f"{agent.name} is frozen.")

    def action_unfreeze(self) -> None:
        """Let the agent that the pane shows go on."""
        if (agent := self._agent()) is not None and self._has_session():
            self._ask(Unfreeze(agent), f"{agent.name} is no longer frozen.")

    def action_freeze_tenant(self) -> None:
        """Freeze all agents at once."""
        known = self.all_agents
        if known is None or known.tenant is None:
            self.app.tell("The tenant of this key is unknown, because it has no agent yet.", "warning")
        else:
            self._ask(FreezeTenant(known.tenant, known.total), "The whole tenant is frozen.")

    def action_unfreeze_tenant(self) -> None:
        """Let all agents go on that are not frozen themselves."""
        if self.all_agents is not None and self.all_agents.tenant is not None and self._has_session():
            self._ask(UnfreezeTenant(self.all_agents.tenant), "The tenant is no longer frozen.")

    def _has_session(self) -> bool:
        """Tell whether somebody has signed in; if not, say so."""
        person = self.app.person
        if person is not None and person.user is None:
            self.app.tell(_SIGN_IN, "warning")
            return False
        return True

    def _ask(self, question: Ask[Frozen], done: str) -> None:
        def on_answer(frozen: Frozen | None) -> None:
            if frozen is not None:
                self.app.tell(done)
                self.action_look_again()

        self.app.push_screen(question, on_answer)

    def _agent(self) -> Agent | None:
        """The agent that the pane shows: what is done is done to it, wherever the cursor went since."""
        agents = self.all_agents.agents if self.all_agents else ()
        return next((agent for agent in agents if agent.id == self.query_one(AgentPane).of), None)

    async def find(self, agent_id: str) -> AgentSummary:
        return await fetch_summary(self.app.client, agent_id)

    def draw(self) -> None:
        agent, pane = self.agent, self.query_one(AgentPane)
        if agent is None:
            pane.show(None, [Line("No agent is selected.", "quiet")])
            return
        trouble = self.kept.trouble(agent.id)
        note = [Line(f"! {trouble}", "warn")] if trouble else []
        frozen = bool(self.all_agents and self.all_agents.tenant and self.all_agents.tenant.frozen_at)
        seen = self.kept.get(agent.id)
        pane.show(agent.id, [*note, *agent_in_words(agent, seen, self.app.now(), tenant_frozen=frozen)])
        if (agent.frozen_at is not None, frozen) != self._states_shown:
            # The footer says what z and Z do now.
            self._states_shown = agent.frozen_at is not None, frozen
            self.refresh_bindings()

    def _state(self, agent: Agent) -> Cell:
        return (frozen_words(agent), "bad") if agent.frozen_at else "active"

    def _waits(self, agent: Agent) -> Cell:
        known = self.all_agents
        number = known.waiting[agent.id] if known else 0
        # Where not everything was read there may be more.
        more = "" if known is None or known.waiting_complete else "+"
        return (f"{number}{more}", "warn") if number or more else ("-", "quiet")

    def note(self, known: AllAgents) -> str:
        frozen = bool(known.tenant and known.tenant.frozen_at)
        parts = ["THE WHOLE TENANT IS FROZEN" if frozen else ""]
        if known.total > len(known.agents):
            parts.append(f"only the newest of {known.total:,} are shown")
        return " · ".join(part for part in parts if part)
