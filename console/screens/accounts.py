"""Accounts: wallets of several agents under one name, and what they hold."""

from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal

from console.agents.accounts_in_words import families_of, in_full, name_of
from console.screens.page import Page
from console.widgets.agent_pane import AgentPane
from console.widgets.listing import Column, Listing
from console.widgets.plain_text import PlainText
from console.wire.failures import Answered
from console.wire.shapes_accounts import AccountBalance, AccountPage, DigitalAssetAccount
from words.texts.fields import pluralize
from words.texts.lines import Line

_PAGE: Final = 100
_EMPTY: Final = "No accounts."


class Accounts(Page):
    """A list over the agents, and the account under the cursor beside it; Esc goes back."""

    PLACE = "agents"
    EVERY_SECONDS = 30.0
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "look_again", "Reload"),
        Binding("escape", "leave", "Back"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._balances: dict[str, AccountBalance] = {}
        self._troubles: dict[str, str] = {}

    def body(self) -> ComposeResult:
        yield PlainText("", id="accounts-caption", classes="caption")
        with Horizontal(classes="beside"):
            yield Listing[DigitalAssetAccount](
                [
                    Column("Account", name_of, 12, share=2),
                    Column("Wallets", lambda one: str(len(one.wallets)), 7, right=True),
                    Column("On", families_of, 11, wide=True),
                ],
                lambda one: one.id,
                empty="Loading…",
            )
            yield AgentPane()

    async def load(self) -> None:
        page = await self.app.client.get("/accounts", AccountPage, limit=_PAGE)
        self._list.empty = _EMPTY
        self._list.show(page.accounts)
        count = pluralize(page.total, "account", "accounts")
        shown = "" if page.total == len(page.accounts) else f", the newest {len(page.accounts)} shown"
        self.query_one("#accounts-caption", PlainText).update(f"{count}{shown}. The API makes them: POST /accounts")
        self._draw()
        await self._ask_nodes()
        self._draw()

    def on_listing_highlighted(self) -> None:
        self._draw()
        if (one := self._list.row) is not None and one.id not in self._balances:
            self.reload()

    def on_listing_chosen(self, event: Listing.Chosen) -> None:
        event.stop()
        self.query_one(AgentPane).focus()

    def action_look_again(self) -> None:
        """Ask the nodes again, too."""
        self._balances.clear()
        self.reload()

    async def _ask_nodes(self) -> None:
        if (one := self._list.row) is None:
            return
        try:
            self._balances[one.id] = await self.app.client.get(f"/accounts/{one.id}/balance", AccountBalance)
            self._troubles.pop(one.id, None)
        except Answered as failure:
            self._troubles[one.id] = failure.sentence

    def _draw(self) -> None:
        one = self._list.row
        if one is None:
            self.query_one(AgentPane).show(None, [Line("No account is selected.", "quiet")])
        else:
            said = in_full(one, self._balances.get(one.id), self._troubles.get(one.id, ""))
            self.query_one(AgentPane).show(one.id, said)

    @property
    def _list(self) -> Listing[DigitalAssetAccount]:
        return self.query_one(Listing)
