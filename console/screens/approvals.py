"""The approvals screen."""

from textual.app import ComposeResult

from console.screens.page import Page
from console.widgets.plain_text import PlainText


class Approvals(Page):
    """Not built yet."""

    PLACE = "approvals"

    def body(self) -> ComposeResult:
        yield PlainText("Not built yet.")
