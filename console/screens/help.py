"""What the keys do."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import ModalScreen

from console.widgets.plain_text import PlainText


class Help(ModalScreen[None]):
    """Not built yet."""

    BINDINGS: ClassVar[list[BindingType]] = [("escape", "dismiss", "Close")]

    def compose(self) -> ComposeResult:
        yield PlainText("Not built yet.")
