"""Masking: every form of a value, whatever the chunks."""

import base64
import html
import json
from itertools import pairwise
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy_addon.mask import Masker, mask_header, mask_text, needles, unreadable

KEY = "sk-proj-4f9/Qz+88"
ODD = "pä'ss/wörd<&>\"\\\n\x01+😀~ end"
small = st.sampled_from([b"ab", b"ab ", b"ab\n"]).flatmap(
    lambda letters: st.lists(st.lists(st.sampled_from([*letters]), min_size=1, max_size=12).map(bytes), max_size=4)
)
ab = st.binary(max_size=40).map(lambda raw: bytes(b"ab* \n"[byte % 5] for byte in raw))
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


def test_a_piece_that_ends_in_a_line_end_goes_out_at_once():
    masker = Masker(needles("sk-12345"))

    assert masker.feed(b"data: {}\n\n") == b"data: {}\n\n"
    assert masker.feed(b"data: sk-12345\n\n") == b"data: ********\n\n"
    assert masker.end() == b""


def test_what_ends_like_a_key_waits_for_what_is_no_part_of_one():
    masker = Masker((b"sk-12345",))

    assert masker.feed(b"data: sk-1234") == b"data: "
    assert masker.feed(b"6\n\n") == b"sk-12346\n\n"
    assert masker.feed(b"data: another") == b"data: "
    assert masker.feed(b" sk-123") == b"another "
    assert masker.feed(b"45\n\n") == b"********\n\n"
    assert masker.feed(b"data: a-longer-one") == b"data: a-lon"
    assert masker.end() == b"ger-one"


def test_a_start_of_a_form_is_found_behind_one_that_went_on_otherwise():
    masker = Masker((b"ababcdefgh",))

    assert masker.feed(b"ab ababxabab") == b"ab "
    assert masker.feed(b"cdefgh") == b"ababx*"
    assert masker.end() == b"*********"


KEYS = (b"ab cd", b'ab"cd', b"ab'cd", b"ab`cd", b"ab<cd", b"ab>cd", b"ab{cd", b"ab}cd", b"ab[cd", b"ab]cd", b"ab,cd",
        b"ab;cd", "ab\u00e9cd".encode(), b"ab\x7fcd")  # fmt: skip


@pytest.mark.parametrize("key", [b"sk-12345", b"a/b+c=:d", b"a\\b|c~d%20", b"!#$&*-.?@^_"])
@pytest.mark.parametrize("last", [*b" \"'`()[]{}<>,;\n\t\x7f\x80\xff"])
def test_behind_a_key_of_plain_characters_nothing_waits_that_ends_in_another(key, last):
    text = key[:3] + bytes([last])

    assert Masker((key,)).feed(text) == text


@pytest.mark.parametrize("key", KEYS)
def test_for_a_key_with_other_characters_whatever_is_no_control_character_waits(key):
    masker = Masker((key, b"abcdefghi"))

    assert masker.feed(b"\x1f, {<xyz") == b"\x1f"
    assert masker.feed(b"0123") == b", {"
    assert masker.feed(b"\n") == b"<xyz0123\n"


def test_for_a_key_with_a_control_character_as_much_waits_always():
    masker = Masker((b"ab\ncd",))

    assert masker.feed(b"x\n\n") == b""
    assert masker.feed(b"\n\n\x00") == b"x\n"
    assert masker.feed(b"ab\nc") == b"\n\n\n\x00"
    assert masker.feed(b"d") == b"*"
    assert masker.end() == b"****"


def test_after_the_end_a_new_text_begins():
    masker = Masker((b"abcdef",))

    assert masker.feed(b"abc") == b""
    assert masker.end() == b"abc"
    assert masker.feed(b"def ") == b"def "


def test_a_masked_part_that_may_begin_another_occurrence_waits_masked():
    masker = Masker((b"xyab", b"abcde"))

    assert masker.feed(b":xyab") == b":"
    assert masker.feed(b" ") == b"**** "
    assert masker.feed(b"xyab") == b""
    assert masker.feed(b"cde ") == b"******* "


@settings(max_examples=500)
@given(small, ab, st.lists(st.integers(0, 40), max_size=8))
def test_the_chunks_make_no_difference(forms, text, cuts):
    assert fed(forms, in_chunks(text, cuts)) == mask_text(text, forms) == oracle(text, forms)


KINDS = [
    ("sk-proj-4f9/Qz+88", "abcXYZ019-_/+=.:|~"),
    ("pass word \u00e9{}, long", 'abcXYZ019-_ {}"<,;\u00e9'),
    ("line\nline\nline\nlast", "abcXYZ019-_ {}\n\t,;\u00e9"),
]
# True: as many letters of the value; False: a byte that no key is made of.
shapes = st.lists(st.tuples(st.booleans(), st.integers(1, 30)), max_size=12)
cuts_drawn = st.lists(st.integers(0, 400), max_size=12)


@settings(max_examples=300)
@given(st.sampled_from(KINDS), shapes, cuts_drawn, st.data())
def test_what_waits_is_as_much_whether_a_text_has_parts_of_the_value_or_anything_else(kind, shape, cuts, data):
    value, letters = kind
    forms = needles(value)
    secret, other = b"", b""
    for of_value, size in shape:
        if not of_value:
            secret, other = secret + b"\n" * size, other + b"\n" * size
            continue
        form = data.draw(st.sampled_from(forms))
        at = data.draw(st.integers(0, len(form) - 1))
        part = form[at : at + size] if "\n" in value else form.replace(b"\n", b"x")[at : at + size]
        secret += part
        other += data.draw(
            st.lists(st.sampled_from([*letters.encode()]), min_size=len(part), max_size=len(part)).map(bytes)
        )

    assert [len(secret), *lengths(forms, secret, cuts)] == [len(other), *lengths(forms, other, cuts)]


def lengths(forms, text, cuts):
    """How many bytes come back at once for each chunk."""
    masker = Masker(forms)
    return [len(masker.feed(chunk)) for chunk in in_chunks(text, cuts)]


class Weighed(bytes):
    """A text that counts how much of it is compared."""

    work = 0

    def find(self, part, start=0, *more):
        at = super().find(part, start, *more)
        Weighed.work += 1 + (len(self) - start if at < 0 else at - start + len(part))
        return at

    def startswith(self, part, start=0, *more):
        Weighed.work += 1 + len(part)
        return super().startswith(part, start, *more)

    def __getitem__(self, key):
        part = super().__getitem__(key)
        Weighed.work += 1 + (len(part) if isinstance(key, slice) else 1)
        return part


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (b"a" * 65_000, b"a" * 400_000),
        (b"ab" * 32_500, b"ab" * 200_000),
        (b"a" * 65_000, (b"a" * 64_999 + b"b") * 6),
        (b"a" * 65_000, (b"a" * 65_001 + b"b") * 6),
        (b"a" * 64_999 + b"b", b"a" * 400_000),
        (b"a" * 30_000 + b"b" + b"a" * 30_000, (b"a" * 30_000 + b"b") * 13),
        ((b"ab" * 500 + b"a") * 50, (b"ab" * 500 + b"a") * 400),
        (b"aba", b"ab" * 100_000),
        (b"a", b"a" * 100_000),
    ],
)
def test_the_work_grows_with_the_text_and_not_with_how_often_a_value_repeats_itself(form, text):
    Weighed.work = 0

    masked = mask_text(Weighed(text), (form,))

    assert len(form) <= Weighed.work < 8 * (len(text) + len(form))
    assert (b"*" * len(form) in masked) == (form in text)


@st.composite
def periodic(draw):
    """A needle that repeats itself, and a text that is made of its parts."""
    unit = draw(st.sampled_from([b"a", b"ab", b"aab", b"abaab", b"aabaa"]))
    form = unit * draw(st.integers(1, 6)) + unit[: draw(st.integers(0, len(unit) - 1))]
    part = st.tuples(st.integers(0, len(form)), st.integers(0, len(form))).map(lambda cut: form[min(cut) : max(cut)])
    return form, b"".join(draw(st.lists(part | st.sampled_from([form, unit, b"a", b"b", b"-"]), max_size=12)))


@settings(max_examples=500)
@given(periodic(), periodic(), cuts_drawn)
def test_a_value_that_repeats_itself_is_masked_like_any_other(drawn, another, cuts):
    form, text = drawn
    forms = (form, another[0])
    text += another[1]

    assert fed(forms, in_chunks(text, cuts)) == mask_text(text, forms) == oracle(text, forms)


@pytest.mark.parametrize("unit", ["\"\\/<>&'", "k\u00e9y ", "\x01", '{"a": "sk-1/2+3"}\n', "abc~d"])
def test_the_forms_of_a_large_value_take_little_room_and_are_the_common_ones(unit):
    value = (unit * 65_536).encode()[:65_500].decode(errors="ignore").strip()
    raw = value.encode()
    forms = needles(value)

    assert sum(map(len, forms)) < 20 * len(raw)
    for text in (
        raw, base64.b64encode(raw), base64.urlsafe_b64encode(b"a" + raw), base64.b64encode(b"ab" + raw + b"c"),
        quote(value, safe="").encode(), json.dumps(value, ensure_ascii=False)[1:-1].encode(),
    ):  # fmt: skip
        assert b"*" * (len(text) - 8) in mask_text(text, forms)


def test_all_forms_of_a_value_of_4_kib_are_looked_for():
    value = ("<k/" * 1366)[:4096]

    assert not shows(value, value.encode().hex().encode())
    assert sum(map(len, needles(value))) < 2**20


@pytest.mark.parametrize(
    "written",
    [
        "a&amp;b&lt;c&gt;d&quot;e&#39;f", "a&amp;b&lt;c&gt;d&quot;e&apos;f", "a&amp;b&lt;c&gt;d&#34;e&#39;f",
        "a&#38;b&#60;c&#62;d&#34;e&#39;f", "a&amp;b&lt;c&gt;d&quot;e&#x27;f", "a&amp;b&lt;c&gt;d&quot;e&#039;f",
        "a&amp;b&lt;c&gt;d\"e'f",
    ],
)  # fmt: skip
def test_html_entities_are_masked(written):
    assert html.unescape(written) == "a&b<c>d\"e'f"
    assert not shows("a&b<c>d\"e'f", written.encode())


@pytest.mark.parametrize("value", ["dXNlcjpwYTpzc3dvcmQ=", "dXNlcjpwYTpzc3dvcmQ", "Basic dXNlcjpwYTpzc3dvcmQ="])
def test_what_a_base64_value_says_is_masked(value):
    assert not shows(value, b"user:pa:ssword")
    assert not shows(value, b"pa:ssword")
    assert shows(value, b"user")


def test_the_user_and_password_of_a_base64url_value_are_masked():
    value = base64.urlsafe_b64encode("u:>>>???\u00ff\u00ff".encode()).decode()

    assert "_" in value
    assert not shows(value, ">>>???\u00ff\u00ff".encode())


@pytest.mark.parametrize(
    ("inside", "shown"),
    [
        (b"user:short", b"short"),
        (b"abcde", b"abcde"),
        (b"\xff\xfe:password", b"password"),
        (b"a\x00:secret", b"secret"),
    ],
)
def test_what_is_too_short_or_no_text_is_not_looked_for(inside, shown):
    assert shows(base64.b64encode(inside).decode(), shown)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (b"Content-Length", b"12"), (b"transfer-encoding", b"Chunked"), (b"Connection", b"Upgrade"),
        (b"connection", b"close"), (b"Upgrade", b"websocket"), (b"DATE", b"Tue, 12 Mar 2024 12:12:12 GMT"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", [b"12", b"Con", b"e"])
def test_what_frames_or_dates_a_message_is_not_masked(name, value, form):
    assert mask_header(name, value, (form,)) == (name, value)


@pytest.mark.parametrize(
    ("name", "value", "masked"),
    [
        (b"X-Key-12", b"a12", (b"X-Key-**", b"a**")),
        (b"Content-Type", b"text/12", (b"Content-Type", b"text/**")),
        (b"Date", b"12", (b"Date", b"**")),
        (b"Date", b"Tue, 12 Mar 2024 12:12:12 GMT x", (b"Date", b"Tue, ** Mar 2024 **:**:** GMT x")),
        (b"Content-Length", b"12a", (b"Content-Length", b"**a")),
        (b"Connection", b"close, 12", (b"Connection", b"close, **")),
    ],
)
def test_every_other_header_is_masked_in_name_and_value(name, value, masked):
    assert mask_header(name, value, (b"12",)) == masked


@pytest.mark.parametrize(
    "charset",
    [
        "utf-16", "UTF-16LE", '"utf-16be"', "'utf16'", "utf-32", "UTF_32", "ucs-2", "iso-10646-ucs-4", "csUnicode",
        "unicode", "utf-7", "unicode-1-1-utf-7", "csUTF16", "ibm037", "cp500", "IBM1047", "cp1140", "x-utf-16le-bom",
    ],
)  # fmt: skip
def test_a_body_in_which_a_letter_is_not_its_byte_is_unreadable(charset):
    assert unreadable(f"text/plain; format=flowed;charset={charset}")
    assert unreadable(f"text/plain; Charset = {charset}; x=y")


@pytest.mark.parametrize(
    "content_type",
    [
        None, "", "text/plain", "text/utf-16", "application/json; charset=utf-8", "text/html;charset=UTF8",
        "text/html; charset=iso-8859-1", "text/html; charset=windows-1252", "text/html; charset=cp1252",
        "text/html; charset=shift_jis", "text/html; charset=gb18030", "text/html; charset=us-ascii",
        "text/html; charset=ibm437", "text/html; charset=cp866", "text/html; charset=unicode-1-1-utf-8",
        "text/html; charset=koi8-r", "text/html; charset=big5",
    ],
)  # fmt: skip
def test_a_body_in_which_ascii_is_ascii_is_readable(content_type):
    assert not unreadable(content_type)


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
