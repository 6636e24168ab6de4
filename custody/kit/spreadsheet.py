"""Tables for spreadsheets, in which a cell is never a formula. Spec 2/4.7."""

import csv
import io
from collections.abc import Iterable

# Whatever a spreadsheet may take for the beginning of a formula, TAB and CR among it.
FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r")


def as_csv(names: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A line of names and a line for each row; None is an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerows([cell(value) for value in row] for row in (names, *rows))
    return text.getvalue()


def cell(value: object) -> str:
    """A value as text; where it could begin a formula, an apostrophe stands in front."""
    if value is None:
        return ""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"'{text}" if text.startswith(FORMULA_PREFIXES) else text
