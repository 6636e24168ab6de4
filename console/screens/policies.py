"""The policies screen."""

from textual.app import ComposeResult

from console.screens.page import Page
from console.widgets.plain_text import PlainText


class Policies(Page):
    """Not built yet."""

    PLACE = "policies"

    def body(self) -> ComposeResult:
        yield PlainText("Not built yet.")
