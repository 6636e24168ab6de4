"""One of a few, all of them seen: the one that is chosen stands in brackets, not only in another colour."""

from collections.abc import Sequence
from typing import Any, ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message

from console.widgets.plain_text import PlainText

_GAP = 2


class Choice(PlainText, can_focus=True):
    """Left and right choose, or a click. The labels are our own words."""

    DEFAULT_CSS = """
    Choice { height: 1; color: $text-muted; text-wrap: nowrap; }
    Choice:focus { background: $primary-darken-1; color: $text; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "choose(-1)", "Before", show=False),
        Binding("right,space", "choose(1)", "Next", show=False),
    ]

    class Changed(Message):
        """Another one is chosen."""

        def __init__(self, choice: "Choice") -> None:
            self.choice = choice
            super().__init__()

    def __init__(self, options: Sequence[tuple[str, str]], **given: Any) -> None:
        super().__init__(**given)
        self._options = options
        self._place = 0

    @property
    def value(self) -> str:
        """The name of the one that is chosen."""
        return self._options[self._place][0]

    def on_mount(self) -> None:
        self._draw()

    def action_choose(self, steps: int) -> None:
        self._go((self._place + steps) % len(self._options))

    def on_click(self, event: events.Click) -> None:
        end = 0
        for place, (_, label) in enumerate(self._options):
            end += len(label) + 2 + _GAP
            if event.x < end:
                self._go(place)
                return

    def _go(self, place: int) -> None:
        if place != self._place:
            self._place = place
            self._draw()
            self.post_message(self.Changed(self))

    def _draw(self) -> None:
        parts = [
            Content.styled(f"[{label}]", "bold") if place == self._place else Content(f" {label} ")
            for place, (_, label) in enumerate(self._options)
        ]
        self.update(Content(" " * _GAP).join(parts))
