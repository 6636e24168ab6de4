"""Names and values in two columns; a long value goes on below itself."""

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from console.widgets.plain_text import PlainText
from words.texts.fields import Field


class FieldRows(Vertical):
    """A row for each field, none of them shortened."""

    DEFAULT_CSS = """
    FieldRows { height: auto; }
    FieldRows Horizontal { height: auto; }
    FieldRows .field-name { color: $text-muted; }
    FieldRows .field-value { width: 1fr; }
    """

    def __init__(self, fields: Sequence[Field]) -> None:
        super().__init__()
        self._fields = fields

    def compose(self) -> ComposeResult:
        width = max((len(name) for name, _ in self._fields), default=0) + 2
        for name, value in self._fields:
            with Horizontal():
                label = PlainText(name, classes="field-name")
                label.styles.width = width
                yield label
                yield PlainText(value, classes="field-value")
