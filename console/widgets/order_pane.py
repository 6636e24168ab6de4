"""The pane that says what one order does, what the rules said of it, and what the past knows."""

from typing import Any

from textual.app import ComposeResult
from textual.containers import VerticalScroll

from console.orders.before import before
from console.orders.details import details
from console.orders.limits import limits
from console.orders.order import Known, Order
from console.orders.results import results
from console.orders.votes import votes_section
from console.orders.words import essentials
from console.texts.lines import Heading, Line
from console.widgets.line_view import LineView


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


def sections(
    order: Order, known: Known | None, *, outcome: list[Line] | None = None, me: str | None = None
) -> list[Line]:
    """All that is known of an order, section by section; `me` is the person who reads it."""
    found = known or Known()
    said = [Heading("What it does"), *essentials(order, found)]
    if outcome:
        said += [Line(""), Heading("Outcome"), *outcome]
    said += [*votes_section(order.votes, me), Line(""), Heading("Rules"), *rules(order, found)]
    if known is None:
        return [*said, Line(""), Line("Loading context…", "quiet")]
    said += [Line(""), Heading("Limits"), *(limits(order, found) or [Line("No rolling limit of this agent is known.")])]
    said += [Line(""), Heading("Before"), *before(order, found)]
    said += [Line(""), Heading("Details"), *details(order, found)]
    return said


def rules(order: Order, known: Known) -> list[Line]:
    """Describe the result of each rule."""
    if not order.policy_results:
        return [Line("No rule results.", "warn")]
    # An item of the queue was never refused by a rule, whatever a person made of it.
    return results(
        order.policy_results,
        refused=order.status == "rejected" and not order.digest,
        chain_id=order.chain_id,
        own=known.own_rules,
    )


def _sections(order: Order | None, known: Known | None, outcome: list[Line], me: str | None) -> list[Line]:
    if order is None:
        return [Line("Nothing is selected.", "quiet")]
    said = sections(order, known, outcome=outcome, me=me)
    if known and known.trouble:
        said = [Line(f"! {known.trouble}", "warn"), Line(""), *said]
    return said


def _which(order: Order) -> tuple[str, str]:
    return order.agent_id, order.tx_id
