"""Lines in words, broken by our own hand: what continues a line is indented under it, behind its bar if it has one.

So nothing that an agent has written can come to stand at the beginning of a line and look like one of the console's.
"""

import re
from collections.abc import Sequence
from typing import Any, ClassVar, Final

from rich.cells import cell_len, chop_cells
from textual.content import Content
from textual.geometry import Size
from textual.style import Style
from textual.widget import Widget

from words.texts.lines import Heading, Line

_HANGING = 2
# A blank in front of a continued line leaves too little room in a column narrower than this.
_NARROWEST = 20
# What stands before each line of a text of others.
_BAR: Final = re.compile(r" *\| ")


class LineView(Widget):
    """Some lines, each in its tone."""

    # No automatic colours here: they are of their own widget's background, which a line's style does not know.
    DEFAULT_CSS = """
    LineView { height: auto; width: 1fr; }
    LineView > .said--bad { color: $text-error; text-style: bold; }
    LineView > .said--warn { color: $text-warning; }
    LineView > .said--good { color: $text-success; }
    LineView > .said--quiet { color: $secondary; }
    LineView > .said--heading { color: $foreground; text-style: bold; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "said--bad",
        "said--warn",
        "said--good",
        "said--quiet",
        "said--heading",
    }

    def __init__(self, said: Sequence[Line] = (), **options: Any) -> None:
        super().__init__(markup=False, **options)
        self.said = list(said)

    def show(self, said: Sequence[Line]) -> None:
        """Show these lines in place of those before."""
        if list(said) != self.said:
            self.said = list(said)
            self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """So many lines as there are once they are broken."""
        return sum(len(wrap(one.text, width)) for one in self.said)

    def render(self) -> Content:
        """The lines, broken to the width there is."""
        lines: list[Content] = []
        width = self.content_size.width
        for one in self.said:
            style = self._style(one)
            for line in wrap(one.text, width):
                lines.append(Content.styled(line, style) if style else Content(line))
        return Content("\n").join(lines)

    def place_of(self, line: int) -> tuple[int, int]:
        """Find which of the lines said stands on a line of the screen, and how far that is below its beginning."""
        top = 0
        for place, one in enumerate(self.said):
            height = len(wrap(one.text, self.content_size.width))
            if line < top + height:
                return place, line - top
            top += height
        return max(0, len(self.said) - 1), 0

    def line_of(self, place: int) -> int:
        """The line of the screen on which one of the lines said begins."""
        return sum(len(wrap(one.text, self.content_size.width)) for one in self.said[:place])

    def _style(self, one: Line) -> Style | None:
        kind = "heading" if isinstance(one, Heading) else one.tone
        return self.get_visual_style(f"said--{kind}", partial=True) if kind else None


def wrap(text: str, width: int) -> list[str]:
    """A text in lines of at most so many cells; what continues is indented two more than it began, or has its bar."""
    if width <= 0 or cell_len(text) <= width:
        return [text]
    bar = _BAR.match(text)
    begin = bar[0] if bar else " " * (len(text) - len(text.lstrip(" ")))
    hanging = begin if bar else begin + " " * _HANGING if width >= _NARROWEST else ""
    lines: list[str] = []
    line, begun = begin, False
    for word in text[len(begin) :].split(" "):
        longer = f"{line} {word}" if begun else line + word
        if cell_len(longer) > width:
            if begun:
                lines.append(line)
                line = hanging
            # A word that is longer than a line is cut wherever the line ends.
            room = max(2, width - len(hanging))
            *full, word = chop_cells(word, room) if cell_len(word) > room else [word]  # noqa: PLW2901
            for piece in full:
                lines.append(line + piece)
                line = hanging
            longer = line + word
        line, begun = longer, True
    return [*lines, line]
