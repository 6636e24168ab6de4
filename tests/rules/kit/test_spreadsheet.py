"""Tables in which no cell is a formula."""

import csv
import io

from hypothesis import given
from hypothesis import strategies as st

from custody.kit.spreadsheet import as_csv, cell
from tests.fixtures.each import each

# By their codes, for the wide ones look like the others.
PREFIXES = {
    0x3D: "equals",
    0x2B: "plus",
    0x2D: "minus",
    0x40: "at",
    0x09: "tab",
    0x0D: "cr",
    0x0A: "lf",
    0xFF1D: "wide-equals",
    0xFF0B: "wide-plus",
    0xFF0D: "wide-minus",
    0xFF20: "wide-at",
}


@each("prefix", [chr(code) for code in PREFIXES], ids=PREFIXES.values())
def test_cells_that_could_begin_a_formula_are_escaped(prefix: str) -> None:
    assert cell(f"{prefix}1+1") == f"'{prefix}1+1"


@each(
    ("value", "shown"), [("tx.signed", "tx.signed"), (7, "7"), (-7, "'-7"), (True, "true"), (None, ""), ("a=b", "a=b")]
)
def test_everything_else_is_as_it_was(value: object, shown: str) -> None:
    assert cell(value) == shown


@given(st.lists(st.lists(st.text(), min_size=2, max_size=2), max_size=5))
def test_a_table_is_read_back_as_it_was_but_for_apostrophes(rows: list[list[str]]) -> None:
    text = as_csv(["one", "two"], rows)

    read = list(csv.reader(io.StringIO(text, newline="")))
    assert read == [["one", "two"], *[[cell(value) for value in row] for row in rows]]
    assert not any(value.startswith(tuple(map(chr, PREFIXES))) for row in read for value in row)


def test_no_cell_becomes_two_where_something_else_than_a_comma_separates() -> None:
    rows = [["a;=cmd|' /C calc'!A0", "b\t=1"]]

    text = as_csv(["one", "two"], rows)

    # Quoted as a whole, a cell is one in every reading, whatever the reader's separator is.
    assert text == '"one","two"\r\n"a;=cmd|\' /C calc\'!A0","b\t=1"\r\n'
