"""Freezing an agent, or the whole tenant, and letting it go on."""

from typing import Final

from textual.app import ComposeResult
from textual.widgets import Input

from console.dialogs.ask import Ask
from console.widgets.line_view import LineView
from console.widgets.reason_line import ReasonLine
from console.wire.failures import Failure
from console.wire.shapes_agents import Frozen, Tenant
from words.shapes import Agent
from words.texts.lines import Line
from words.texts.moments import clock, moment

_WHO_UNFREEZES: Final = "Only an owner or admin with a recent second factor can unfreeze."


class Freeze(Ask[Frozen]):
    """Nothing more is signed for one agent."""

    TITLE_TEXT = "Freeze this agent?"
    AUTO_FOCUS = "#reason"
    CONFIRM = "Freeze"
    VARIANT = "error"
    DEFAULT_CSS = "Freeze Input { margin-top: 1; background: $panel; }"
    # In CSS, not DEFAULT_CSS: it must win over what the application says of every question. 80x24 has no line to spare.
    CSS = "Freeze #question { padding: 0 2; }"

    def __init__(self, agent: Agent) -> None:
        super().__init__()
        self._agent = agent

    def essentials(self) -> ComposeResult:
        yield LineView(
            [
                *_who(self._agent),
                Line(""),
                Line("It signs no more orders, and the proxy refuses its calls.", "bad"),
                Line("Pending approvals stay pending, and can expire."),
                Line(_WHO_UNFREEZES),
            ]
        )

    def fields(self) -> ComposeResult:
        yield _reason()

    async def perform(self) -> Frozen:
        path, body = f"/agents/{self._agent.id}/freeze", _typed_reason(self)
        return await self.send("POST", path, Frozen, body)


class Unfreeze(Ask[Frozen]):
    """An agent may sign again, as far as its rules let it."""

    TITLE_TEXT = "Unfreeze this agent?"
    CONFIRM = "Unfreeze"
    VARIANT = "warning"

    def __init__(self, agent: Agent) -> None:
        super().__init__()
        self._agent = agent

    def essentials(self) -> ComposeResult:
        reason = self._agent.frozen_reason
        yield LineView(
            [
                *_who(self._agent),
                Line(f"frozen   {clock(moment(self._agent.frozen_at))}"),
                Line(f"reason   {reason or 'none was given'}"),
                Line(""),
                Line("From then on what its rules let pass is signed again.", "warn"),
            ]
        )

    async def perform(self) -> Frozen:
        path = f"/agents/{self._agent.id}/unfreeze"
        return await self.send("POST", path, Frozen)


class FreezeTenant(Ask[Frozen]):
    """Nothing more is signed for any agent. The tenant's id is typed, because this stops everybody."""

    TITLE_TEXT = "Freeze the WHOLE TENANT?"
    AUTO_FOCUS = "#tenant-id"
    CONFIRM = "Freeze everything"
    DEFAULT_CSS = "FreezeTenant Input { margin-top: 1; background: $panel; }"
    CSS = "FreezeTenant #question { padding: 0 2; }"
    VARIANT = "error"

    def __init__(self, tenant: Tenant, agents: int) -> None:
        super().__init__()
        self._tenant, self._agents = tenant, agents

    def essentials(self) -> ComposeResult:
        yield LineView(
            [
                Line(f"tenant   {self._tenant.name}"),
                Line(f"id       {self._tenant.id}"),
                Line(f"agents   {self._agents:,}"),
                Line(""),
                Line("From then on nothing is signed for any agent of this tenant.", "bad"),
                Line(_WHO_UNFREEZES),
            ]
        )

    def fields(self) -> ComposeResult:
        yield Input(placeholder="type the tenant's id", id="tenant-id", compact=True)
        yield _reason()

    async def perform(self) -> Frozen:
        line = self.query_one("#tenant-id", Input)
        if line.value.strip() != self._tenant.id:
            line.focus()
            raise Failure("Type the tenant's id exactly as shown above; nothing was frozen.")
        path, body = f"/tenants/{self._tenant.id}/freeze", _typed_reason(self)
        return await self.send("POST", path, Frozen, body)


class UnfreezeTenant(Ask[Frozen]):
    """The tenant's agents may sign again; those that are frozen themselves stay so."""

    TITLE_TEXT = "Unfreeze the whole tenant?"
    CONFIRM = "Unfreeze"
    VARIANT = "warning"

    def __init__(self, tenant: Tenant) -> None:
        super().__init__()
        self._tenant = tenant

    def essentials(self) -> ComposeResult:
        yield LineView(
            [
                Line(f"tenant   {self._tenant.name}"),
                Line(f"id       {self._tenant.id}"),
                Line(f"frozen   {clock(moment(self._tenant.frozen_at))}"),
                Line(""),
                Line("From then on what the rules of its agents let pass is signed again.", "warn"),
                Line("Agents that are frozen themselves stay frozen."),
            ]
        )

    async def perform(self) -> Frozen:
        path = f"/tenants/{self._tenant.id}/unfreeze"
        return await self.send("POST", path, Frozen)


def _who(agent: Agent) -> list[Line]:
    return [
        Line(f"agent    {agent.name}"),
        Line(f"id       {agent.id}"),
        Line(f"EVM      {agent.wallet_addresses.evm}"),
        Line(f"Solana   {agent.wallet_addresses.solana}"),
    ]


def _reason() -> ReasonLine:
    return ReasonLine("reason: shown to refused callers", compact=True)


def _typed_reason(dialog: Freeze | FreezeTenant) -> dict[str, str]:
    """The reason as typed, left out where there is none."""
    reason = dialog.query_one(ReasonLine).reason
    return {"reason": reason} if reason else {}
