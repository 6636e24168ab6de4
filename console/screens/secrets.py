"""The secrets screen."""

from textual.app import ComposeResult

from console.screens.page import Page
from console.widgets.plain_text import PlainText


class Secrets(Page):
    """Not built yet."""

    PLACE = "secrets"

    def body(self) -> ComposeResult:
        yield PlainText("Not built yet.")
