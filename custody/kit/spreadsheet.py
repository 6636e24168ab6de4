"""Tables for spreadsheets, in which a cell is never a formula."""

import csv
import io
import itertools
from collections.abc import Iterable, Sequence

# Whatever a spreadsheet may take for the beginning of a formula: TAB, CR and LF too, and = + - @ in their wide forms.
FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def as_csv(names: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """A line of names, if there are any, and a line for each row; None is an empty cell."""
    text = io.StringIO()
    # All in quotes: much of Europe separates by `;`, where half a cell would become one of its own.
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerows([cell(value) for value in row] for row in itertools.chain([names] if names else [], rows))
    return text.getvalue()


def cell(value: object) -> str:
    """A value as text; where it could begin a formula, an apostrophe stands in front."""
    if value is None:
        return ""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"'{text}" if text.startswith(FORMULA_PREFIXES) else text
