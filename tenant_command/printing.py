"""Printing of results: rows for people, tabs for programs that cut lines, JSON where it is asked for.

Results go to standard output, and everything else (progress, warnings, questions) to standard error.
"""

import asyncio
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, repeat
from typing import Any, Final

import click
import msgspec
from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.status import Status
from rich.table import Table
from rich.text import Text

from words.texts.lines import Heading, Line, Tone
from words.texts.moments import clock, moment
from words.texts.plain import harmless, plain

# What takes longer than this shows that it goes on.
_QUIET_SECONDS: Final = 1.0
# Blanks between columns, and what a column has in any case.
_BETWEEN: Final = 2
_NARROWEST: Final = 4
_STYLES: Final[Mapping[Tone | None, str]] = {"bad": "bold red", "warn": "yellow", "good": "green", "quiet": "dim"}
# A column: the path of a field (`a.b`), or what makes the words of a row.
Column = str | Callable[[Any], str]


class Printer:
    """The output of one command."""

    def __init__(self, *, as_json: bool, about: str) -> None:
        self.as_json = as_json
        self._console = Console(highlight=False, soft_wrap=True)
        self._errors = Console(stderr=True, highlight=False, soft_wrap=True)
        self._status = Status(Text(f"Waiting for {plain(about)}"), console=self._errors)
        self._is_waiting = False

    @property
    def width(self) -> int | None:
        """Columns of the terminal that reads the results; None where none does."""
        return self._console.width if self._console.is_terminal else None

    def day(self, time: str) -> str:
        """Write a time for a list: its day at a terminal, else all of it."""
        return time if self.width is None else clock(moment(time))[:10]

    def show(self, data: Any, *lines: str) -> None:
        """Print lines for people; where JSON is asked for, the data."""
        if self.as_json:
            self.data(data)
            return
        for line in lines:
            print(plain(line))

    def data(self, data: Any) -> None:
        """Print data as JSON."""
        # What a terminal would obey is written out there; a program gets what was sent.
        shown = harmless(data) if sys.stdout.isatty() else data
        print(msgspec.json.format(msgspec.json.encode(shown), indent=2).decode())

    def rows(self, data: Sequence[Any], columns: Mapping[str, Column], *, nothing: str) -> None:
        """Print a list: a table on a terminal, else a line for each with tabs between its columns."""
        if self.as_json:
            self.data(data)
            return
        cells = [[plain(_cell(row, column)) for column in columns.values()] for row in data]
        if not self._console.is_terminal:
            for line in cells:
                print("\t".join(line))
            return
        if not cells:
            print(plain(nothing))
            return
        table = Table(box=None, pad_edge=False, header_style="dim")
        for title, width in zip(columns, _widths(columns, cells, self._console.width), strict=True):
            table.add_column(title, overflow="fold", width=width)
        for line in cells:
            table.add_row(*(Text(cell) for cell in line))
        self._console.print(table, soft_wrap=False)

    def lines(self, lines: Sequence[Line], *, beside: bool = False) -> None:
        """Print lines in words, in colour on a terminal; `beside` the result: on standard error."""
        console = self._errors if beside else self._console
        if not console.is_terminal:
            for line in lines:
                print(plain(line.text), file=sys.stderr if beside else sys.stdout)
            return
        with self._silence():
            for line in lines:
                text = plain(line.text)
                said = text.lstrip()
                style = "bold" if isinstance(line, Heading) else _STYLES.get(line.tone, "")
                # What is broken off goes on below its own beginning.
                indent = len(text) - len(said)
                console.print(
                    Text() if not said else Padding(Text(said, style=style), (0, 0, 0, indent), expand=False),
                    soft_wrap=False,
                )

    def stream(self, data: Any, *cells: str, widths: Sequence[int] = ()) -> None:
        """Print one more of what goes on: cells that are at least so wide, or with tabs between; JSON in one line."""
        with self._silence():
            if self.as_json:
                shown = harmless(data) if sys.stdout.isatty() else data
                print(msgspec.json.encode(shown).decode(), flush=True)
            elif self._console.is_terminal:
                wide = zip(cells, chain(widths, repeat(0)), strict=False)
                print("  ".join(plain(cell).ljust(width) for cell, width in wide).rstrip(), flush=True)
            else:
                print("\t".join(map(plain, cells)), flush=True)

    def warn(self, sentence: str) -> None:
        """Tell what is no result."""
        with self._silence():
            print(plain(sentence), file=sys.stderr)

    def answer(self, question: str) -> str:
        """Ask for a line at the terminal; what is typed is not shown. Nothing else happens meanwhile."""
        with self._silence():
            said: str = click.prompt(question, hide_input=True, err=True)
        return said

    def asks(self, question: str) -> bool:
        """Ask for a yes or no; no is what Enter says."""
        with self._silence():
            return click.confirm(plain(question), default=False, err=True)

    def doing(self, words: str) -> None:
        """Say what is going on, for as long as it takes more than a second."""
        self._status.update(Text(plain(words)))

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Show from the second on that it goes on, if somebody looks."""
        if not self._errors.is_terminal or self.as_json:
            yield
            return
        later = asyncio.get_running_loop().call_later(_QUIET_SECONDS, self._begin)
        try:
            yield
        finally:
            later.cancel()
            self._status.stop()

    def _begin(self) -> None:
        self._is_waiting = True
        self._status.start()

    @contextmanager
    def _silence(self) -> Iterator[None]:
        self._status.stop()
        yield
        if self._is_waiting:
            self._status.start()


def _widths(titles: Iterable[str], cells: Sequence[Sequence[str]], width: int) -> list[int]:
    """The width of each column: none beyond its longest cell, and no word broken as long as that is possible."""
    columns = [list(column) for column in zip(titles, *cells, strict=True)]
    longest = [max(map(cell_len, column)) for column in columns]
    words = [max(map(cell_len, " ".join(column).split()), default=0) for column in columns]
    found = [min(_NARROWEST, most) for most in longest]
    left = width - _BETWEEN * (len(columns) - 1) - sum(found)
    # The first column, which one types next; then those of short words, for a long one takes the place of several.
    for place in sorted(range(len(words)), key=lambda place: (place > 0, words[place])):
        more = max(0, words[place] - found[place])
        if more <= left:
            left, found[place] = left - more, found[place] + more
    # Then those that lack least, so that most rows stay on one line.
    for place in sorted(range(len(words)), key=lambda place: longest[place] - found[place]):
        more = min(left, longest[place] - found[place])
        left, found[place] = left - more, found[place] + more
    return found


def _cell(row: Any, column: Column) -> str:
    if callable(column):
        return column(row)
    for name in column.split("."):
        row = row.get(name) if isinstance(row, dict) else None
    match row:
        case None:
            return ""
        case bool():
            return "yes" if row else "no"
        case list():
            return ", ".join(map(str, row))
        case _:
            return str(row)
