"""The pane that says what one order does, what the rules said of it, and what the past knows."""

from typing import Any

from textual.app import ComposeResult
from textual.containers import VerticalScroll

from console.widgets.line_view import LineView
from words.orders.order import Known, Order
from words.orders.sections import sections
from words.texts.lines import Line


class OrderPane(VerticalScroll, can_focus=True):
    """Shows one order, and says so when there is none. Reading on is not disturbed when more becomes known of it."""

    DEFAULT_CSS = """
    OrderPane { padding: 0 1; background: $surface; scrollbar-size-vertical: 1; scrollbar-gutter: stable; }
    OrderPane:focus { background-tint: $foreground 3%; }
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.order: Order | None = None
        """The order on show."""
        self.known: Known | None = None
        """The context it was last shown with."""

    def compose(self) -> ComposeResult:
        yield LineView([Line("Nothing is selected.", "quiet")], id="order")

    def show(
        self,
        order: Order | None,
        known: Known | None = None,
        *,
        outcome: list[Line] | None = None,
        me: str | None = None,
    ) -> None:
        """Show this order, and what became of it meanwhile."""
        lines = self.query_one(LineView)
        again = order is not None and self.order is not None and _which(order) == _which(self.order)
        place, below = lines.place_of(round(self.scroll_y)) if again else (0, 0)
        reading = lines.said[place] if again and self.scroll_y and lines.said else None
        self.order, self.known = order, known
        lines.show(_sections(order, known, outcome or [], me))
        if not again:
            self.scroll_home(animate=False)
        elif reading in lines.said:
            # The line under one's eyes stays where it is, whatever came to stand above it.
            found = min((at for at, one in enumerate(lines.said) if one == reading), key=lambda at: abs(at - place))
            self.call_after_refresh(self.scroll_to, y=lines.line_of(found) + below, animate=False)


def _sections(order: Order | None, known: Known | None, outcome: list[Line], me: str | None) -> list[Line]:
    if order is None:
        return [Line("Nothing is selected.", "quiet")]
    said = sections(order, known, outcome=outcome, me=me)
    if known and known.trouble:
        said = [Line(f"! {known.trouble}", "warn"), Line(""), *said]
    return said


def _which(order: Order) -> tuple[str, str]:
    return order.agent_id, order.tx_id
