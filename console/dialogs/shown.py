"""One thing in full, over the list that has no room for it."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen

from console.widgets.field_rows import FieldRows
from console.widgets.plain_text import PlainText
from words.texts.fields import Field


class Shown(ModalScreen[None]):
    """Text or fields, which scroll, until one goes back. It asks nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,enter,q", "dismiss", "Close")]

    def __init__(self, title: str, text: str | Sequence[Field]) -> None:
        super().__init__()
        self._shown = title, text

    def compose(self) -> ComposeResult:
        title, text = self._shown
        with Vertical():
            yield PlainText(title, classes="over-title")
            with VerticalScroll():
                yield PlainText(text) if isinstance(text, str) else FieldRows(text)
            yield PlainText("Esc closes", classes="over-keys")
