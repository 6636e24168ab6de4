"""A notice in a terminal in which nothing could be read safely."""

from typing import Any

from textual import events
from textual.geometry import Size
from textual.screen import Screen

from console.widgets.plain_text import PlainText

LEAST = Size(50, 14)
# The class that a screen has from so many cells on.
WIDTHS = [(0, "-tiny"), (LEAST.width, "-narrow"), (120, "-wide")]
HEIGHTS = [(0, "-low"), (LEAST.height, "-high")]


class TooSmall(PlainText):
    """Lies over its screen while that is too small; what is below keeps its focus and whatever was typed.

    The style sheet shows it: the classes of the screen decide.
    """

    DEFAULT_CSS = """
    TooSmall {
        display: none; dock: top; layer: above; width: 100%; height: 100%;
        background: $background; color: $foreground; padding: 1 2;
    }
    """

    def on_resize(self, event: events.Resize) -> None:
        """Say how much is missing."""
        self.update(f"{event.size.width}x{event.size.height} is too small. Make it {LEAST.width}x{LEAST.height}.")


def fit(screen: Screen[Any]) -> None:
    """Give a screen the classes of the terminal's size, which may have changed while another screen was shown."""
    size = screen.app.size
    for length, steps in ((size.width, WIDTHS), (size.height, HEIGHTS)):
        right = max(least for least, _ in steps if least <= length)
        for least, name in steps:
            screen.set_class(least == right, name)
