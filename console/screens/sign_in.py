"""Signing in: with what is there, else by a code that one approves in a browser."""

from typing import TYPE_CHECKING

from textual import work
from textual.app import ComposeResult
from textual.screen import Screen

from console.credentials import TenantKey
from console.person import Person, find_person
from console.widgets.plain_text import PlainText

if TYPE_CHECKING:
    from console.app import Console


class SignIn(Screen[Person]):
    """Dismissed with who has signed in; the client has the credential by then."""

    app: "Console"

    def __init__(self, reason: str = "") -> None:
        super().__init__()
        self._reason = reason

    def compose(self) -> ComposeResult:
        yield PlainText("Signing in…")

    def on_mount(self) -> None:
        self._sign_in()

    @work(exclusive=True)
    async def _sign_in(self) -> None:
        self.app.client.credential = TenantKey(self.app.settings.key or "")
        self.dismiss(await find_person(self.app.client))
