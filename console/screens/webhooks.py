"""The webhooks screen."""

from textual.app import ComposeResult

from console.screens.page import Page
from console.widgets.plain_text import PlainText


class Webhooks(Page):
    """Not built yet."""

    PLACE = "webhooks"

    def body(self) -> ComposeResult:
        yield PlainText("Not built yet.")
