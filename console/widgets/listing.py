"""A list of things in columns that draws only the lines one sees, so that ten thousand scroll like ten.

Its cursor stays on a thing, not on a line number: what appears or goes above it moves neither the cursor nor the line
it is on. Decision 0034 says why it is not Textual's own table.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from console.plain import ELLIPSIS

_GAP = 2
_MARK = 2
_LEAST = 4
# From so many cells on the `wide` columns are shown too.
WIDE = 100

Tone = Literal["bad", "warn", "good", "quiet"]
# A tone only repeats in colour what the text says.
Cell = str | tuple[str, Tone]


@dataclass(frozen=True)
class Column[Row]:
    """One column: `width` in cells, `share` of what is left over; `wide` ones are left out of a narrow terminal."""

    title: str
    cell: Callable[[Row], Cell]
    width: int
    share: int = 0
    right: bool = False
    wide: bool = False


class Listing[Row](ScrollView, can_focus=True):
    """Rows under a heading, one of them under the cursor, some of them marked."""

    DEFAULT_CSS = """
    Listing { height: 1fr; background: $surface; color: $foreground; scrollbar-size-horizontal: 0; }
    Listing > .listing--heading { background: $panel; color: $text-muted; text-style: bold; }
    Listing > .listing--cursor { background: $panel; }
    Listing:focus > .listing--cursor { background: $primary-darken-1; color: $text; text-style: bold; }
    Listing > .listing--marked { text-style: bold; }
    Listing > .listing--empty { color: $text-muted; }
    Listing > .listing--bad { color: $text-error; }
    Listing > .listing--warn { color: $text-warning; }
    Listing > .listing--good { color: $text-success; }
    Listing > .listing--quiet { color: $text-muted; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "listing--heading", "listing--cursor", "listing--marked", "listing--empty", "listing--bad", "listing--warn",
        "listing--good", "listing--quiet",
    }  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home,g", "end(-1)", "First", show=False),
        Binding("end,G", "end(1)", "Last", show=False),
        Binding("enter", "choose", "Open", show=False),
    ]

    class Highlighted(Message):
        """The cursor is on another row now, or on none; `by_person` unless the row it was on went away."""

        def __init__(self, listing: "Listing[Any]", row: Any, *, by_person: bool) -> None:
            self.listing = listing
            self.row = row
            self.by_person = by_person
            super().__init__()

        @property
        def control(self) -> "Listing[Any]":
            return self.listing

    class Chosen(Message):
        """Enter or a double click on a row."""

        def __init__(self, listing: "Listing[Any]", row: Any) -> None:
            self.listing = listing
            self.row = row
            super().__init__()

        @property
        def control(self) -> "Listing[Any]":
            return self.listing

    def __init__(
        self, columns: Sequence[Column[Row]], key: Callable[[Row], str], *, empty: str = "Nothing here.",
        mark: bool = False, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(**options)
        self.columns = list(columns)
        self.key_of = key
        self.empty = empty
        self.marking = mark
        self.marks: set[str] = set()
        self.rows: list[Row] = []
        self._places: dict[str, int] = {}
        self._cursor = 0

    @property
    def row(self) -> Row | None:
        """The row under the cursor."""
        return self.rows[self._cursor] if self.rows else None

    @property
    def position(self) -> int:
        """The number of the row under the cursor, from 0."""
        return self._cursor

    def show(self, rows: Sequence[Row]) -> None:
        """Show these rows. The cursor stays on its thing, and that on its line of the screen."""
        before = self.row
        offset = self._cursor - round(self.scroll_y)
        self.rows = list(rows)
        self._places = {self.key_of(row): place for place, row in enumerate(self.rows)}
        self.marks &= self._places.keys()
        found = None if before is None else self._places.get(self.key_of(before))
        self._cursor = found if found is not None else max(0, min(self._cursor, len(self.rows) - 1))
        self._measure()
        # At the top new rows are seen to come in; anywhere else the lines under one's eyes stay where they are.
        if found is not None and round(self.scroll_y) > 0:
            self.scroll_to(y=max(0, found - offset), animate=False, force=True)
        self.refresh()
        if (found is None and (before is not None or self.rows)) or (found is not None and self.row != before):
            self.post_message(self.Highlighted(self, self.row, by_person=before is None))

    def select(self, key: str) -> bool:
        """Put the cursor on a thing; False if it is not here."""
        place = self._places.get(key)
        if place is not None:
            self._go(place)
        return place is not None

    def toggle_mark(self) -> None:
        """Mark the row under the cursor, or take its mark away, and go to the next."""
        if (row := self.row) is not None and self.marking:
            self.marks ^= {self.key_of(row)}
            self._go(min(self._cursor + 1, len(self.rows) - 1))
            self.refresh()

    def action_move(self, lines: int) -> None:
        self._go(self._cursor + lines)

    def action_page(self, pages: int) -> None:
        self._go(self._cursor + pages * max(1, self.size.height - 2))

    def action_end(self, side: int) -> None:
        self._go(0 if side < 0 else len(self.rows) - 1)

    def action_choose(self) -> None:
        if self.row is not None:
            self.post_message(self.Chosen(self, self.row))

    def on_resize(self) -> None:
        self._measure()
        self._into_view()

    def on_click(self, event: events.Click) -> None:
        place = round(self.scroll_y) + event.y - 1
        if event.y > 0 and place < len(self.rows):
            self._go(place)
            if event.chain > 1:
                self.action_choose()

    def render_line(self, y: int) -> Strip:
        """One line of the screen: the heading, then rows from where one has scrolled to."""
        width = self.size.width
        if y == 0:
            return self._line(
                [column.title for column in self._shown()], self.get_component_rich_style("listing--heading"), " "
            )
        place = round(self.scroll_y) + y - 1
        if place >= len(self.rows):
            if not self.rows and y == 2:
                style = self.get_component_rich_style("listing--empty")
                return Strip([Segment(f"  {self.empty}", style)]).adjust_cell_length(width, self.rich_style)
            return Strip.blank(width, self.rich_style)
        row = self.rows[place]
        marked = self.key_of(row) in self.marks
        name = "listing--cursor" if place == self._cursor else "listing--marked" if marked else None
        style = self.get_component_rich_style(name) if name else self.rich_style
        # No colour alone: the cursor has an arrow, a mark has a dot.
        mark = "●" if marked else "▸" if place == self._cursor else " "
        return self._line([column.cell(row) for column in self._shown()], style, mark)

    def _shown(self) -> list[Column[Row]]:
        return [column for column in self.columns if not (column.wide and self.size.width < WIDE)]

    def _line(self, cells: Sequence[Cell], style: Style, mark: str) -> Strip:
        columns = self._shown()
        # What is left over goes to those with a share; what is missing they give, down to a few letters.
        left = self.size.width - _MARK - sum(column.width + _GAP for column in columns)
        shares = sum(column.share for column in columns) or 1
        segments = [Segment(f"{mark} ", style)]
        for column, cell in zip(columns, cells, strict=True):
            text, tone = cell if isinstance(cell, tuple) else (cell, None)
            width = max(_LEAST, column.width + left * column.share // shares) if column.share else column.width
            segments.append(Segment(_fitted(text, width, right=column.right), style + self._colour(tone)))
            segments.append(Segment(" " * _GAP, style))
        return Strip(segments).adjust_cell_length(self.size.width, style)

    def _colour(self, tone: Tone | None) -> Style:
        # The tone's colour over the line's own background, so that the cursor is seen under it.
        return Style(color=self.get_component_rich_style(f"listing--{tone}").color) if tone else Style()

    def _go(self, place: int) -> None:
        if not self.rows:
            return
        place = max(0, min(place, len(self.rows) - 1))
        if place != self._cursor:
            self._cursor = place
            self.refresh()
            self.post_message(self.Highlighted(self, self.row, by_person=True))
        self._into_view()

    def _into_view(self) -> None:
        # One line of the view is the heading, which does not scroll.
        room = max(1, self.size.height - 1)
        top = round(self.scroll_y)
        if self._cursor < top:
            self.scroll_to(y=self._cursor, animate=False, force=True)
        elif self._cursor >= top + room:
            self.scroll_to(y=self._cursor - room + 1, animate=False, force=True)

    def _measure(self) -> None:
        self.virtual_size = Size(max(1, self.size.width), len(self.rows) + 1)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self.refresh(Region(0, 0, *self.size))


def _fitted(text: str, width: int, *, right: bool) -> str:
    """Exactly so many cells; what does not fit ends in an ellipsis."""
    wide = cell_len(text)
    if wide > width:
        return f"{set_cell_size(text, width - 1)}{ELLIPSIS}"
    return " " * (width - wide) + text if right else text + " " * (width - wide)
