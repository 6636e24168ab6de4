"""Masking: every form of a value, whatever the chunks."""

import base64
import json
from itertools import pairwise
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy_addon.mask import Masker, mask_text, needles

KEY = "sk-proj-4f9/Qz+88"
ODD = "pä'ss/wörd<&>\"\\\n\x01+😀~ end"
small = st.lists(st.binary(min_size=1, max_size=12).map(lambda raw: bytes(b"ab"[byte % 2] for byte in raw)), max_size=4)
ab = st.binary(max_size=40).map(lambda raw: bytes(b"ab*"[byte % 3] for byte in raw))
values = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).filter(lambda text: text.strip())


def oracle(text, forms):
    """Every byte of every occurrence, looked for at every place."""
    masked = bytearray(text)
    for form in forms:
        for at in range(len(text)):
            if text.startswith(form, at):
                masked[at : at + len(form)] = b"*" * len(form)
    return bytes(masked)


def in_chunks(text, cuts):
    marks = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    return [text[start:end] for start, end in pairwise(marks)]


def fed(forms, chunks):
    masker = Masker(forms)
    return b"".join([*map(masker.feed, chunks), masker.end()])


def begins(form, text):
    return form.startswith(text) and form != text


def shows(value, text):
    """Whether a text still has a form of the value after masking."""
    return mask_text(b"x" + text + b"y", needles(value)) != b"x" + b"*" * len(text) + b"y"


@pytest.mark.parametrize("value", [KEY, ODD])
def test_the_forms_that_encoders_write_are_masked_whole(value):
    raw = value.encode()
    written = {
        "raw": raw,
        "hex": raw.hex().encode(),
        "HEX": raw.hex().upper().encode(),
        "quote": quote(value).encode(),
        "quote all": quote(value, safe="").encode(),
        "quote_plus": quote_plus(value).encode(),
        "encodeURIComponent": quote(value, safe="!'()*").encode(),
        "encodeURI": quote(value, safe="!'()*;/?:@&=+$,#").encode(),
        "json ascii": json.dumps(value)[1:-1].encode(),
        "json": json.dumps(value, ensure_ascii=False)[1:-1].encode(),
        "php": json.dumps(value)[1:-1].replace("/", "\\/").encode(),
        "php unicode": json.dumps(value, ensure_ascii=False)[1:-1].replace("/", "\\/").encode(),
        "go": json.dumps(value, ensure_ascii=False)[1:-1]
        .replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026").encode(),
    }  # fmt: skip

    assert [name for name, text in written.items() if shows(value, text)] == []


def test_lower_case_escapes_are_masked():
    assert not shows("a/b+c", b"a%2fb%2bc")
    assert not shows("a/b c", b"a%2fb+c")
    assert not shows("ab/cdé", b"ab\\/cd\\u00E9")
    assert not shows("a<b>cd", b"a\\u003Cb\\u003Ecd")
    assert not shows("it's+1", b"it\\u0027s\\u002b1")


@pytest.mark.parametrize("before", [b"", b"a", b"ab", b"abc", b"Bearer ", b"user:"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_of_a_base64_text_no_character_that_the_value_decides_is_left(encode, before):
    value = "sk-ÿÿ~~>>??longer"
    text = encode(before + value.encode() + b"!after")
    first, last = -(-len(before) * 8 // 6), (len(before) + len(value.encode())) * 8 // 6

    masked = mask_text(text, needles(value))

    assert masked == text[:first] + b"*" * (last - first) + text[last:]


def test_white_space_around_the_value_is_not_looked_for():
    assert needles(" \t\r\nsk-12345\n") == needles("sk-12345")
    assert needles(" \n") == ()
    assert needles("") == ()


def test_needles_are_longest_first_and_each_once():
    forms = needles(ODD)

    assert [len(form) for form in forms] == sorted((len(form) for form in forms), reverse=True)
    assert len(set(forms)) == len(forms)
    assert ODD.encode() in forms


def test_a_short_value_is_looked_for_only_as_it_is():
    assert needles("ab") == (b"ab",)
    assert all(len(form) >= 6 for form in needles("abcd") if form != b"abcd")


def test_an_occurrence_is_masked_with_as_many_bytes():
    assert mask_text(b"key=sk-12345; other", (b"sk-12345",)) == b"key=********; other"
    assert mask_text(b"nothing", (b"sk-12345",)) == b"nothing"
    assert mask_text(b"anything", ()) == b"anything"


def test_overlapping_occurrences_are_masked_whole():
    assert mask_text(b"xababax", (b"aba",)) == b"x*****x"
    assert mask_text(b"abcd", (b"abc", b"bcd")) == b"****"
    assert mask_text(b"abcdef", (b"abcdef", b"bcd")) == b"******"


def test_nothing_is_held_of_a_text_that_cannot_be_the_start_of_a_form():
    masker = Masker(needles("sk-12345"))

    assert masker.feed(b"data: {}\n\n") == b"data: {}\n\n"
    assert masker.feed(b"data: sk-1234") == b"data: "
    assert masker.feed(b"6\n\n") == b"sk-12346\n\n"
    assert masker.feed(b"data: sk-123") == b"data: "
    assert masker.feed(b"45\n\n") == b"********\n\n"
    assert masker.end() == b""


def test_a_start_of_a_form_is_found_behind_one_that_went_on_otherwise():
    masker = Masker((b"ababcdefgh",))

    assert masker.feed(b"ababxabab") == b"ababx"
    assert masker.feed(b"cdefgh") == b"**********"


def test_after_the_end_a_new_text_begins():
    masker = Masker((b"abcdef",))

    assert masker.feed(b"abc") == b""
    assert masker.end() == b"abc"
    assert masker.feed(b"def") == b"def"


def test_a_masked_part_that_may_begin_another_occurrence_waits_masked():
    masker = Masker((b"xyab", b"abcde"))

    assert masker.feed(b"-xyab") == b"-**"
    assert masker.feed(b"-") == b"**-"
    assert masker.feed(b"xyab") == b"**"
    assert masker.feed(b"cde-") == b"*****-"


@settings(max_examples=500)
@given(small, ab, st.lists(st.integers(0, 40), max_size=8))
def test_the_chunks_make_no_difference(forms, text, cuts):
    assert fed(forms, in_chunks(text, cuts)) == mask_text(text, forms) == oracle(text, forms)


@settings(max_examples=300)
@given(small, ab, st.lists(st.integers(0, 40), max_size=8))
def test_what_is_held_is_the_longest_start_of_a_form_and_no_more(forms, text, cuts):
    masker = Masker(forms)
    taken, given_back = b"", 0

    for chunk in in_chunks(text, cuts):
        taken += chunk
        given_back += len(masker.feed(chunk))
        ends = [taken[at:] for at in range(len(taken) + 1)]
        assert len(taken) - given_back == max(
            len(end) for end in ends if any(begins(form, end) for form in forms) or not end
        )


@given(values, st.binary(max_size=20), st.binary(max_size=20), st.data())
def test_any_form_of_any_value_is_masked_in_any_chunks(value, before, after, data):
    forms = needles(value)
    text = before + data.draw(st.sampled_from(forms)) + after
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=10))

    masked = fed(forms, in_chunks(text, cuts))

    assert masked == oracle(text, forms)
    assert len(masked) == len(text)


@given(values)
def test_what_standard_encoders_make_of_a_value_is_masked(value):
    text = value.strip()
    raw = text.encode()
    written = [
        raw,
        quote(text).encode(),
        quote_plus(text).encode(),
        json.dumps(text)[1:-1].encode(),
        raw.hex().encode(),
    ]

    assert [form for form in written if len(form) >= 6 and shows(value, form)] == []
