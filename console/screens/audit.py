"""The audit screen."""

from textual.app import ComposeResult

from console.screens.page import Page
from console.widgets.plain_text import PlainText


class Audit(Page):
    """Not built yet."""

    PLACE = "audit"

    def body(self) -> ComposeResult:
        yield PlainText("Not built yet.")
