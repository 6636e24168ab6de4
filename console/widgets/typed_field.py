"""A field of a form: its name, where one types, and a line below that says what is understood or what is wrong."""

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Input

from console.widgets.plain_text import PlainText


class TypedField(Vertical):
    """One line to type in. What is typed stays, whatever is said of it."""

    DEFAULT_CSS = """
    TypedField { height: auto; }
    TypedField Horizontal { height: 1; }
    TypedField .field-name { width: 11; color: $text-muted; }
    TypedField Input { width: 1fr; background: $panel; }
    TypedField .field-note { display: none; height: auto; margin-left: 11; color: $text-muted; }
    TypedField .field-note.-shown { display: block; }
    TypedField .field-note.-wrong { color: $text-error; }
    """

    def __init__(self, field: str, label: str, hint: str, value: str = "") -> None:
        super().__init__(id=f"field-{field}")
        self._field, self._label, self._hint, self._value = field, label, hint, value

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield PlainText(self._label, classes="field-name")
            yield Input(self._value, placeholder=self._hint, compact=True, id=self._field)
        yield PlainText("", classes="field-note")

    @property
    def text(self) -> str:
        """The typed text."""
        return self.query_one(Input).value

    def note(self, sentence: str, *, wrong: bool = False) -> None:
        """Say something of it; nothing, when it is empty."""
        line = self.query_one(".field-note", PlainText)
        line.update(f"! {sentence}" if wrong else sentence)
        line.set_class(bool(sentence), "-shown")
        line.set_class(wrong, "-wrong")
