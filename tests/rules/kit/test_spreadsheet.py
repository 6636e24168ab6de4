"""Tables in which no cell is a formula. Spec 2/4.7."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.kit.spreadsheet import as_csv, cell


@pytest.mark.parametrize("prefix", ["=", "+", "-", "@", "\t", "\r"], ids=["equals", "plus", "minus", "at", "tab", "cr"])
def test_what_could_begin_a_formula_does_not(prefix: str) -> None:
    assert cell(f"{prefix}1+1") == f"'{prefix}1+1"


@pytest.mark.parametrize(
    ("value", "shown"), [("tx.signed", "tx.signed"), (7, "7"), (-7, "'-7"), (True, "true"), (None, ""), ("a=b", "a=b")]
)
def test_everything_else_is_as_it_was(value: object, shown: str) -> None:
    assert cell(value) == shown


@given(st.lists(st.lists(st.text(), min_size=2, max_size=2), max_size=5))
def test_a_table_is_read_back_as_it_was_but_for_apostrophes(rows: list[list[str]]) -> None:
    text = as_csv(["one", "two"], rows)

    read = list(csv.reader(io.StringIO(text, newline="")))
    assert read == [["one", "two"], *[[cell(value) for value in row] for row in rows]]
    assert not any(value.startswith(("=", "+", "-", "@", "\t", "\r")) for row in read for value in row)
