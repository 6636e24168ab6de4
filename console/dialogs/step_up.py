"""Showing a second factor where the API wants a recent one."""

from textual.app import ComposeResult
from textual.widgets import Input

from console.dialogs.ask import Ask
from console.failures import MfaRequired
from console.widgets.plain_text import PlainText


class StepUp(Ask[bool]):
    """Answers True once the session has a fresh second factor."""

    TITLE_TEXT = "Show a second factor"

    def __init__(self, needed: MfaRequired) -> None:
        super().__init__()
        self._needed = needed

    def essentials(self) -> ComposeResult:
        yield PlainText(self._needed.sentence)

    def fields(self) -> ComposeResult:
        yield Input(id="code")

    async def perform(self) -> bool:
        raise self._needed
