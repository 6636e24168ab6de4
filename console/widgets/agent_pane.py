"""The pane beside the list of agents: one agent at a glance."""

from collections.abc import Sequence
from typing import Any

from textual.app import ComposeResult
from textual.containers import VerticalScroll

from console.widgets.line_view import LineView
from words.texts.lines import Line


class AgentPane(VerticalScroll, can_focus=True):
    """Lines that scroll; from the top again when it shows another thing."""

    DEFAULT_CSS = """
    AgentPane { padding: 0 1; background: $background; scrollbar-size-vertical: 1; }
    AgentPane:focus { background: $surface; }
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.of: str | None = None
        """Id of the agent that the lines are about."""

    def compose(self) -> ComposeResult:
        yield LineView()

    def show(self, of: str | None, lines: Sequence[Line]) -> None:
        """Show these lines; `of` names what they are about."""
        self.query_one(LineView).show(lines)
        if of != self.of:
            self.of = of
            self.scroll_home(animate=False)
