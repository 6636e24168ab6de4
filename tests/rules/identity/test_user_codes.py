"""The code that a device shows, as people type it. RFC 8628 6.1."""

from hypothesis import given
from hypothesis import strategies as st

from identity.people.user_codes import ALPHABET, LENGTH, normalise, spell
from tests.fixtures.each import each

LETTERS = st.text(ALPHABET, min_size=LENGTH, max_size=LENGTH)
SEPARATORS = st.text(" -\t\u2010\u2013\u2014", max_size=3)


def test_no_code_is_a_word_and_no_two_characters_are_taken_for_each_other() -> None:
    assert not set(ALPHABET) & set("AEIOUY" + "01258")
    assert len(set(ALPHABET)) == len(ALPHABET)
    assert spell("BCDFGH34") == "BCDF-GH34"


@given(LETTERS, SEPARATORS, SEPARATORS, SEPARATORS, st.booleans())
def test_case_blanks_and_hyphens_do_not_matter(letters: str, a: str, b: str, c: str, small: bool) -> None:
    typed = a + letters[:4] + b + letters[4:] + c

    assert normalise(typed.lower() if small else typed) == spell(letters)


@given(st.text(max_size=40))
def test_normalizing_gives_a_code_or_nothing(typed: str) -> None:
    found = normalise(typed)

    assert found is None or (found == normalise(found) and len(found) == LENGTH + 1)


@each(
    "typed", ["", "BCDF", "BCDF-GH3", "BCDF-GH344", "ACDF-GH34", "BCDF_GH34", "BCDF-GH34\x00", "ẞCDF-GH34", "ﬀCDFGH34"]
)
def test_anything_else_is_no_code(typed: str) -> None:
    assert normalise(typed) is None
