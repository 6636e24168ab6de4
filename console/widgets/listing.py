"""A list of things in columns that draws only the lines one sees, so that ten thousand scroll like ten.

Its cursor stays on a thing, not on a line number: what appears or goes above it moves neither the cursor nor the line
it is on. docs/console.md says why it is not Textual's own table.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, get_args

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from console.widgets.columns import GAP, WIDE, Cell, Column, fit, fitting, widths
from words.texts.lines import Tone

__all__ = ["WIDE", "Cell", "Column", "Listing"]

_TONES = frozenset(get_args(Tone))


class Listing[Row](ScrollView, can_focus=True):
    """Rows under a heading, one of them under the cursor, some of them marked."""

    DEFAULT_CSS = """
    Listing { height: 1fr; background: $surface; color: $foreground; scrollbar-size-horizontal: 0; }
    Listing > .listing--heading { background: $panel; color: $text-muted; text-style: bold; }
    Listing > .listing--cursor { background: $panel; }
    Listing:focus > .listing--cursor { background: $primary-muted; color: $text; text-style: bold; }
    Listing > .listing--marked { text-style: bold; }
    Listing > .listing--empty { color: $text-muted; }
    Listing > .listing--bad { color: $text-error; }
    Listing > .listing--warn { color: $text-warning; }
    Listing > .listing--good { color: $text-success; }
    Listing > .listing--quiet { color: $text-muted; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "listing--heading",
        "listing--cursor",
        "listing--marked",
        "listing--empty",
        "listing--bad",
        "listing--warn",
        "listing--good",
        "listing--quiet",
    }
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
        self,
        columns: Sequence[Column[Row]],
        key: Callable[[Row], str],
        *,
        empty: str = "Nothing here.",
        mark: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.columns = list(columns)
        self.key_of = key
        self.empty = empty
        self.marking = mark
        self.marks: set[str] = set()
        self.rows: list[Row] = []
        self._places: dict[str, int] = {}
        self._cursor = 0
        self._styles_of: dict[str, Style] = {}
        # What came in above the first line one sees, and was not seen since.
        self._came_above: set[str] = set()
        # What was drawn of the rows that are seen, by their places.
        self._cells: dict[int, list[Cell]] = {}

    @property
    def row(self) -> Row | None:
        """The row under the cursor."""
        return self.rows[self._cursor] if self.rows else None

    @property
    def position(self) -> int:
        """The number of the row under the cursor, from 0."""
        return self._cursor

    @property
    def new_above(self) -> int:
        """Number of rows that came in above the first visible line, and were not seen since."""
        return len(self._came_above)

    def ends_within(self, rows: int) -> bool:
        """Tell whether at most so many rows follow on the last one that is seen, or on the cursor."""
        return len(self.rows) <= max(self._cursor, self._top + self.size.height) + rows

    def show(self, rows: Sequence[Row], *, news: bool = False) -> None:
        """Show these rows. The cursor stays on its thing, and that on its line of the screen.

        With `news` those that were not here before have just come; else one has asked for others.
        """
        if not news:
            self._came_above.clear()
        if rows and self.rows == list(rows):
            # The same once more; what the time has changed of it is drawn by a tick.
            return
        before, anchor, places = self.row, self._anchor(), self._places
        seen = self._top <= self._cursor < self._top + self._room
        self.rows = list(rows)
        self._places = {self.key_of(row): place for place, row in enumerate(self.rows)}
        self.marks &= self._places.keys()
        found = None if before is None else self._places.get(self.key_of(before))
        self._cursor = found if found is not None else max(0, min(self._cursor, len(self.rows) - 1))
        self._measure()
        self._hold(anchor)
        if found is None or seen:
            # At the top, too, what comes in does not push the cursor out of sight.
            self._into_view()
        if news:
            self._came_above |= self._places.keys() - places.keys()
            self._forget_seen()
        self.refresh()
        if (found is None and (before is not None or self.rows)) or (found is not None and self.row != before):
            self.post_message(self.Highlighted(self, self.row, by_person=before is None))

    def tick(self) -> None:
        """Draw those lines again whose cells the time has changed, and no others."""
        for place, cells in list(self._cells.items()):
            if self._top <= place < min(self._top + self._room, len(self.rows)):
                if cells != self._cells_of(self.rows[place]):
                    self._draw_again(place)
            else:
                del self._cells[place]

    def holds(self, key: str) -> bool:
        """Tell whether a thing is among the rows."""
        return key in self._places

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
        place = self._top + event.y - 1
        if event.y > 0 and place < len(self.rows):
            self._go(place)
            if event.chain > 1:
                self.action_choose()

    def notify_style_update(self) -> None:
        self._styles_of.clear()
        super().notify_style_update()

    def render_line(self, y: int) -> Strip:
        """One line of the screen: the heading, then rows from where one has scrolled to."""
        width = self.size.width
        if y == 0:
            return self._line([column.title for column in self._columns_in_sight()], self._style("heading"), "")
        place = self._top + y - 1
        if place >= len(self.rows):
            if not self.rows and y == 2:
                return Strip([Segment(f"  {self.empty}", self._style("empty"))]).adjust_cell_length(
                    width, self.rich_style
                )
            return Strip.blank(width, self.rich_style)
        row = self.rows[place]
        marked, here = self.key_of(row) in self.marks, place == self._cursor
        style = self._style("cursor" if here else "marked" if marked else "")
        cells = self._cells[place] = self._cells_of(row)
        # No colour alone: the cursor has an arrow, a mark has a dot.
        return self._line(cells, style, ("▸" if here else " ") + ("●" if marked else ""))

    def _cells_of(self, row: Row) -> list[Cell]:
        return [column.cell(row) for column in self._columns_in_sight()]

    def _columns_in_sight(self) -> list[Column[Row]]:
        return fitting(self.columns, self.size.width)

    def _line(self, cells: Sequence[Cell], style: Style, mark: str) -> Strip:
        columns = self._columns_in_sight()
        lead = 3 if self.marking else 2
        segments = [Segment(mark.ljust(lead), style)]
        for column, width, cell in zip(columns, widths(columns, self.size.width - lead), cells, strict=True):
            text, tone = cell if isinstance(cell, tuple) else (cell, None)
            coloured = style + self._style(tone) if tone else style
            segments.append(Segment(fit(text, width, right=column.right), coloured))
            segments.append(Segment(" " * GAP, style))
        return Strip(segments).adjust_cell_length(self.size.width, style)

    def _style(self, name: str) -> Style:
        """Look up the style of a kind of line; of a tone only the colour, so that the line's background stays."""
        style = self._styles_of.get(name)
        if style is None:
            style = self.get_component_rich_style(f"listing--{name}") if name else self.rich_style
            style = Style(color=style.color) if name in _TONES else style
            self._styles_of[name] = style
        return style

    def _go(self, place: int) -> None:
        if not self.rows:
            return
        place = max(0, min(place, len(self.rows) - 1))
        if place != self._cursor:
            self._draw_again(self._cursor)
            self._cursor = place
            self._draw_again(place)
            self.post_message(self.Highlighted(self, self.row, by_person=True))
        self._into_view()

    @property
    def _top(self) -> int:
        """The number of the first row that is seen."""
        return round(self.scroll_y)

    @property
    def _room(self) -> int:
        # One line of the view is the heading, which does not scroll.
        return max(1, self.size.height - 1)

    def _draw_again(self, place: int) -> None:
        if 0 <= place - self._top < self._room:
            self.refresh(Region(0, place - self._top + 1, self.size.width, 1))

    def _anchor(self) -> tuple[int, list[str]] | None:
        """Choose the lines that stay where they are: the cursor's, or those in sight where that is not."""
        if not self._top or not self.rows:
            # At the top new rows are seen to come in.
            return None
        if self._top <= self._cursor < self._top + self._room:
            return self._cursor - self._top, [self.key_of(self.rows[self._cursor])]
        return 0, [self.key_of(row) for row in self.rows[self._top : self._top + self._room]]

    def _hold(self, anchor: tuple[int, list[str]] | None) -> None:
        line, keys = anchor or (0, [])
        known = (self._places[key] - line - above for above, key in enumerate(keys) if key in self._places)
        self._turn_to(next(known, self._top))

    def _into_view(self) -> None:
        if self._cursor < self._top:
            self._turn_to(self._cursor)
        elif self._cursor >= self._top + self._room:
            self._turn_to(self._cursor - self._room + 1)

    def _turn_to(self, top: int) -> None:
        top = max(0, min(top, len(self.rows) - self._room))
        if top != self.scroll_y:
            self.scroll_to(y=top, animate=False, force=True)

    def _forget_seen(self) -> None:
        if self._came_above:
            top = self._top
            self._came_above = {key for key in self._came_above if self._places.get(key, top) < top}

    def _measure(self) -> None:
        self.virtual_size = Size(max(1, self.size.width), len(self.rows) + 1)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._forget_seen()
        self.refresh(Region(0, 0, *self.size))
