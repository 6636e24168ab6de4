"""The pane that says what one order does, what the rules said of it, and what the past knows."""

from textual.app import ComposeResult
from textual.containers import VerticalScroll

from console.order import Known, Order
from console.widgets.plain_text import PlainText
from console.words import essentials


class OrderPane(VerticalScroll, can_focus=True):
    """Shows one order, and says so when there is none."""

    def compose(self) -> ComposeResult:
        yield PlainText("", id="order")

    def show(self, order: Order | None, known: Known | None = None, *, note: str = "") -> None:
        """Show this order; `note` is a sentence on top, such as what became of it meanwhile."""
        lines = [note] if note else []
        lines += [one.text for one in essentials(order, known or Known())] if order else ["Nothing is selected."]
        self.query_one("#order", PlainText).update("\n".join(lines))
