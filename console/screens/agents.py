"""The agents screen."""

from textual.app import ComposeResult

from console.screens.page import Page
from console.widgets.plain_text import PlainText


class Agents(Page):
    """Not built yet."""

    PLACE = "agents"

    def body(self) -> ComposeResult:
        yield PlainText("Not built yet.")
