"""The columns of a list: what stands in them, how wide they are, and how a line is laid out. Pure."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size

from words.texts.lines import Tone
from words.texts.plain import ELLIPSIS

GAP = 2
_LEAST = 4
# No letter takes less than a quarter of a cell, with all the marks that `plain` leaves over it.
_LETTERS_A_CELL = 4
# From so many cells on the `wide` columns are shown too.
WIDE = 100

# An amount as the words of an order hold one: thousands separated, with a unit behind it.
_AMOUNT_BEGUN = re.compile(r"(?<![^ ])[0-9][0-9,]*\Z")
_AMOUNT_GOES_ON = re.compile(r"[0-9,]")
# One id in forty begins with eight digits, and is no amount for that.
_ID_BEGINS = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-")

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


def fitting[Row](columns: Sequence[Column[Row]], width: int) -> list[Column[Row]]:
    """Those that are shown in so many cells."""
    return [column for column in columns if not (column.wide and width < WIDE)]


def widths[Row](columns: Sequence[Column[Row]], width: int) -> list[int]:
    """Share out so many cells: what is left over goes to columns with a share, and what is missing they give."""
    left = width - sum(column.width + GAP for column in columns)
    shares = sum(column.share for column in columns) or 1
    return [
        max(_LEAST, column.width + left * column.share // shares) if column.share else column.width
        for column in columns
    ]


def fit(text: str, width: int, *, right: bool) -> str:
    """Exactly so many cells; what does not fit ends in an ellipsis, which never stands for the end of an amount."""
    # Of ten thousand letters only those are measured that could be seen.
    text = text[: width * _LETTERS_A_CELL + 1]
    wide = len(text) if text.isascii() else cell_len(text)
    if wide > width:
        seen = set_cell_size(text, width - 1)
        # The first digits of an amount would say another, smaller one.
        begun = _AMOUNT_BEGUN.search(seen)
        if begun and _AMOUNT_GOES_ON.match(text, len(seen)) and not _ID_BEGINS.match(text, begun.start()):
            seen = set_cell_size(seen[: begun.start()], width - 1)
        return f"{seen}{ELLIPSIS}"
    return " " * (width - wide) + text if right else text + " " * (width - wide)
