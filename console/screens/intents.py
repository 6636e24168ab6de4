"""Intents: what somebody proposed, and what a person decides over it."""

import asyncio
from datetime import datetime
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal

from console.dialogs.act_on_intent import Act, ActOnIntent
from console.entry.person import ADMINS
from console.intents.digest import digest_of, harmlessly
from console.intents.in_words import OPEN, POLICY, in_full, proposer_of, state_of, type_of
from console.orders.address_book import book_of
from console.rules.rule_terms import Names
from console.screens.page import Page
from console.widgets.agent_pane import AgentPane
from console.widgets.listing import Cell, Column, Listing
from console.widgets.plain_text import PlainText
from console.wire.failures import Answered, Failure
from console.wire.shapes_intents import Intent, IntentPage
from console.work import work
from words.shapes import PolicyRule
from words.texts.fields import pluralize
from words.texts.lines import Line
from words.texts.moments import ago, moment, span

# So many of one state; who has more decides over these first.
MOST: Final = 100
_WAITING: Final = ("pending", "authorized")
_NOTHING: Final = "No intent waits. Press v to see those that are over."
_DONE: Final = {"authorize": "authorised", "reject": "rejected", "execute": "executed", "cancel": "canceled"}


class Intents(Page):
    """A list over the approvals, and the intent under the cursor beside it; Esc goes back."""

    PLACE = "approvals"
    EVERY_SECONDS = 3.0
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "act('authorize')", "Authorise"),
        Binding("d", "act('reject')", "Reject"),
        Binding("e", "act('execute')", "Execute"),
        Binding("x", "act('cancel')", "Cancel it"),
        Binding("v", "view", "All or waiting"),
        Binding("r", "reload", "Reload", show=False),
        Binding("escape", "leave", "Back"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._all = False
        # Of the agent of the intent under the cursor; None where they could not be read.
        self._rules: dict[str, list[PolicyRule] | None] = {}
        self._names: dict[str, str] = {}

    def body(self) -> ComposeResult:
        yield PlainText("", id="intents-caption", classes="caption")
        with Horizontal(classes="beside"):
            yield Listing[Intent](
                [
                    Column("What", type_of, 14, share=2),
                    Column("State", _state, 11),
                    Column("Agent", self._agent_name, 10, share=2),
                    Column("By", proposer_of, 10, share=1, wide=True),
                    Column("Age", lambda one: ago(moment(one.created_at), self.app.now()), 4, right=True),
                    Column("Ends", self._time_left, 7, right=True, wide=True),
                ],
                lambda one: one.id,
                empty="Loading…",
            )
            yield AgentPane()

    async def load(self) -> None:
        client, book = self.app.client, book_of(self.app.client)
        wanted = (None,) if self._all else _WAITING
        pages = await asyncio.gather(
            *(client.get("/intents", IntentPage, status=state, limit=MOST, include="data") for state in wanted)
        )
        await book.read(client)
        self._names = {agent.id: agent.name for agent in book.agents()}
        found = sorted((one for page in pages for one in page.intents), key=lambda one: one.created_at, reverse=True)
        self._list.empty = "No intents." if self._all else _NOTHING
        self._list.show(found)
        total = sum(page.total for page in pages)
        count = pluralize(total, "intent", "intents") + (
            "" if total == len(found) else f", the newest {len(found)} shown"
        )
        caption = (
            f"{'All' if self._all else 'Waiting'}: {count}. One proposes, another authorises, then it is executed."
        )
        self.query_one("#intents-caption", PlainText).update(caption)
        await self._read_rules()
        self._draw()

    def on_listing_highlighted(self) -> None:
        self._draw()
        if (one := self._list.row) is not None and one.intent_type in POLICY and one.agent_id not in self._rules:
            self.reload()

    def on_listing_chosen(self, event: Listing.Chosen) -> None:
        event.stop()
        self.query_one(AgentPane).focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "act":
            one, person = self._list.row if self.is_mounted else None, self.app.person
            if one is None or self.app.client.read_only or person is None or person.role not in ADMINS:
                return False
            if parameters[0] == "authorize":
                return one.status == "pending" and one.created_by != f"user:{person.user}"
            states = {"reject": ("pending",), "execute": ("authorized",), "cancel": OPEN}
            return one.status in states[str(parameters[0])]
        return super().check_action(action, parameters)

    def action_act(self, act: Act) -> None:
        """Ask about the intent under the cursor."""
        if (one := self._list.row) is not None:
            work(self, "ask", self._ask, one, act)

    async def _ask(self, one: Intent, act: Act) -> None:
        """Read the intent once more before asking, with the rules it would change; its digest is computed from that."""
        try:
            exact = await self.app.client.get_exact(f"/intents/{one.id}", Intent)
            await self._read_rules()
        except Failure as failure:
            if not self.app.signed_out(failure):
                self.app.tell(failure.sentence, "warning")
            return
        shown = harmlessly(exact)
        if digest_of(exact) != exact.digest or (one.id, one.agent_id, one.digest) != (
            shown.id,
            shown.agent_id,
            shown.digest,
        ):
            self.app.tell("The service shows another intent than the one it names: decide nothing here.", "error")
            return
        self.app.push_screen(ActOnIntent(shown, self._lines(shown), act), lambda done: self._report_act(done, act))

    def _report_act(self, done: Intent | None, act: Act) -> None:
        if done is not None:
            word = _DONE[act] if done.status != "failed" else "failed: the pane says why"
            self.app.tell(f"{type_of(done)}: {word}.", "information" if done.status != "failed" else "warning")
            self.reload()

    def action_view(self) -> None:
        """All of them, or only those that wait."""
        self._all = not self._all
        self.reload()

    async def _read_rules(self) -> None:
        """The rules as they are now, of the agent whose rules the intent under the cursor changes."""
        one = self._list.row
        if one is None or one.agent_id is None or one.intent_type not in POLICY:
            return
        try:
            self._rules[one.agent_id] = await self.app.client.get(f"/agents/{one.agent_id}/policies", list[PolicyRule])
        except Answered:
            self._rules[one.agent_id] = None

    def _draw(self) -> None:
        one = self._list.row
        if one is None:
            self.query_one(AgentPane).show(None, [Line("No intent is selected.", "quiet")])
        else:
            self.query_one(AgentPane).show(one.id, self._lines(one))
        self.refresh_bindings()

    def _lines(self, one: Intent) -> list[Line]:
        person = self.app.person
        rules, names = self._rules.get(one.agent_id or ""), Names({}, book_of(self.app.client).names())
        agent = f"{self._agent_name(one)} ({one.agent_id})" if one.agent_id else "none"
        return in_full(one, agent, rules, names, person.user if person else None, self.app.now())

    def _agent_name(self, one: Intent) -> str:
        return self._names.get(one.agent_id or "", one.agent_id or "-")

    def _time_left(self, one: Intent) -> str:
        end: datetime | None = moment(one.expires_at)
        return span(end - self.app.now()) if end is not None and one.status in OPEN else "-"

    @property
    def _list(self) -> Listing[Intent]:
        return self.query_one(Listing)


def _state(one: Intent) -> Cell:
    word, tone = state_of(one)
    return word if tone is None else (word, tone)
