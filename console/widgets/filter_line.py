"""A line in which one types what to show; what is wrong with it is said below it, and what was typed stays."""

from collections.abc import Callable, Mapping

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input

from console.widgets.plain_text import PlainText
from words.texts import filters


class FilterLine(Vertical):
    """Enter asks, Esc goes back to the list; `fields` are those that may be typed."""

    DEFAULT_CSS = """
    FilterLine { height: auto; background: $surface; }
    FilterLine Input { width: 1fr; padding: 0 1; background: $panel; }
    FilterLine Input:focus { background: $primary-darken-1; }
    FilterLine Input.-wrong { color: $text-error; }
    FilterLine #filter-trouble { display: none; height: auto; padding: 0 1; color: $text-error; }
    FilterLine #filter-trouble.-shown { display: block; }
    """
    BINDINGS = [Binding("escape", "leave", "Back to the list", show=False)]  # noqa: RUF012 - as Textual declares it

    class Asked(Message):
        """Show what this line says: `query` has it in the API's words."""

        def __init__(self, query: dict[str, str]) -> None:
            self.query = query
            super().__init__()

    class Left(Message):
        """Back to the list, with nothing changed."""

    def __init__(self, hint: str, fields: Callable[[], Mapping[str, filters.Reader]]) -> None:
        super().__init__()
        self._hint, self._fields = hint, fields

    def compose(self) -> ComposeResult:
        # Returning to the line continues with its text.
        yield Input(placeholder=self._hint, select_on_focus=False, compact=True, id="filter")
        yield PlainText("", id="filter-trouble")

    def trouble(self, sentence: str) -> None:
        """Say what is wrong with the line; nothing, when it is empty."""
        wrong = self.query_one("#filter-trouble", PlainText)
        wrong.update(f"! {sentence}" if sentence else "")
        wrong.set_class(bool(sentence), "-shown")
        self.query_one(Input).set_class(bool(sentence), "-wrong")

    def enter(self) -> None:
        """Go to the line."""
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        try:
            query = filters.read(event.value, self._fields())
        except filters.BadFilter as problem:
            self.trouble(problem.sentence)
        else:
            self.trouble("")
            self.post_message(self.Asked(query))

    def action_leave(self) -> None:
        self.post_message(self.Left())
