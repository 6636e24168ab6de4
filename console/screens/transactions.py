"""The transactions screen."""

from textual.app import ComposeResult

from console.screens.page import Page
from console.widgets.plain_text import PlainText


class Transactions(Page):
    """Not built yet."""

    PLACE = "transactions"

    def body(self) -> ComposeResult:
        yield PlainText("Not built yet.")
