"""Text of others cannot move the cursor, hide, or stand for something else."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len, get_character_cell_size

from words.texts.plain import clip, harmless, plain, short

# What must not come out, told without the tables of the code: by what Unicode says of it.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)
ANY = st.text(st.characters(exclude_categories=()))
NASTY = st.text(
    st.characters(categories=["Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp", "Mn", "Mc", "Me", "Lo", "So", "Sk"])
    | st.sampled_from("aA1 -\u034f\u200d\ufe0f\u20e3\U0001f1e9\U0001f3fd\u05d0\u0661\u3164")
)


@given(ANY | NASTY)
def test_harmless_text_is_shown_as_it_is(text: str) -> None:
    shown = plain(text)

    assert shown.isprintable()
    assert not _INVISIBLE.search(shown)
    assert not any(unicodedata.bidirectional(letter) in ("R", "AL", "AN") for letter in shown)


@given(ANY | NASTY)
def test_once_is_enough(text: str) -> None:
    assert plain(plain(text)) == plain(text)


@given(ANY | NASTY)
def test_a_text_is_as_wide_as_its_letters(text: str) -> None:
    shown = plain(text)

    assert cell_len(shown) == sum(map(get_character_cell_size, shown))


@given(ANY | NASTY)
def test_no_letter_has_more_than_three_marks(text: str) -> None:
    runs = "".join("m" if unicodedata.category(letter).startswith("M") else " " for letter in plain(text)).split()

    assert max(map(len, runs), default=0) <= 3


@given(st.text(st.characters(codec="ascii", min_codepoint=0x20, max_codepoint=0x7E)))
def test_clean_text_stays_as_it_is(text: str) -> None:
    assert plain(text) == text


@pytest.mark.parametrize("text", ["Zürich", "東京の財布", "한국 지갑", "Ελλάδα", "हिन्दी", "cafe\u0301", "→ ✓ 10 €"])
def test_the_words_of_people_stay_readable(text: str) -> None:
    assert plain(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", "\\x1b[2J"),
        ("\x1b]8;;http://evil\x07", "\\x1b]8;;http://evil\\x07"),
        ("\x9b2J", "\\x9b2J"),
        ("a\nb\r\tc\0", "a\\nb\\r\\tc\\x00"),
        ("\u202e0001\u2066", "<U+202E>0001<U+2066>"),
        ("pay\u200bpal", "pay<U+200B>pal"),
        ("a\xa0b\u3000c", "a\\xa0b<U+3000>c"),
        ("\u3164\u2800\uffa0", "<U+3164><U+2800><U+FFA0>"),
        ("\U000e0041", "<U+E0041>"),
        ("\ud800", "<U+D800>"),
        ("\ue000", "<U+E000>"),
        ("\u2028", "<U+2028>"),
        ("❤\ufe0f", "❤<U+FE0F>"),
        ("👨\u200d👧", "👨<U+200D>👧"),
        ("🇩🇪", "<U+1F1E9><U+1F1EA>"),
        ("👍🏽", "👍<U+1F3FD>"),
        ("1\u0336", "1<U+0336>"),
        ("\u0301a", "<U+0301>a"),
        ("a\u0301\u0301\u0301\u0301", "a\u0301\u0301\u0301<U+0301>"),
        ("שלום 10", "<U+05E9><U+05DC><U+05D5><U+05DD> 10"),
    ],
    ids=lambda value: value.encode("unicode_escape").decode()[:24] if isinstance(value, str) else None,
)
def test_invisible_characters_are_written_out(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_every_string_of_an_answer_is_made_plain() -> None:
    answer = {"na\nme": ["\x1b", {"a": "\u202e"}], "n": 5, "f": None, "t": True}

    assert harmless(answer) == {"na\\nme": ["\\x1b", {"a": "<U+202E>"}], "n": 5, "f": None, "t": True}


def test_text_that_is_too_long_says_its_length() -> None:
    assert clip("x" * 10_000, 3) == "xxx… (10,000 characters)"
    assert clip("xxx", 3) == "xxx"


@given(st.text(min_size=1), st.integers(5, 60))
def test_a_short_name_is_no_longer_than_it_may_be(name: str, most: int) -> None:
    assert len(short(name, most)) == min(len(name), most)
