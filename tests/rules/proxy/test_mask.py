"""Masking: every form of a value, whatever the chunks."""

import base64
import html
import json
import re
import time
import timeit
from itertools import filterfalse, pairwise
from urllib.parse import quote, quote_plus
from xml.sax import saxutils

import jinja2
import markupsafe
import msgspec
import ujson
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy_addon.mask import MAX_SPECIAL, STAR, Masker, Needles, mask_header, mask_text, needles, unreadable
from tests.fixtures.each import each

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


def feed(forms, chunks):
    masker = Masker(forms)
    return b"".join([*map(masker.feed, chunks), masker.end()])


def shows(value, text):
    """Tell whether a text still has a form of the value after masking."""
    return mask_text(b"x" + text + b"y", needles(value)) != b"x" + b"*" * len(text) + b"y"


@each("value", [KEY, ODD])
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
        .replace("<", "\\u003c")
        .replace(">", "\\u003e")
        .replace("&", "\\u0026")
        .encode(),
    }

    assert [name for name, text in written.items() if shows(value, text)] == []


def test_lower_case_escapes_are_masked():
    assert not shows("a/b+c", b"a%2fb%2bc")
    assert not shows("a/b c", b"a%2fb+c")
    assert not shows("ab/cdé", b"ab\\/cd\\u00E9")
    assert not shows("a<b>cd", b"a\\u003Cb\\u003Ecd")
    assert not shows("it's+1", b"it\\u0027s\\u002b1")


@each("before", [b"", b"a", b"ab", b"abc", b"Bearer ", b"user:"])
@each("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_of_a_base64_text_no_character_that_the_value_decides_is_left(encode, before):
    value = "sk-ÿÿ~~>>??longer"
    text = encode(before + value.encode() + b"!after")
    first, last = -(-len(before) * 8 // 6), (len(before) + len(value.encode())) * 8 // 6

    masked = mask_text(text, needles(value))

    assert masked == text[:first] + b"*" * (last - first) + text[last:]


def test_white_space_around_the_value_is_not_looked_for():
    padded, bare = needles(" \t\r\nsk-12345\n"), needles("sk-12345")
    assert (padded.literals, padded.longest) == (bare.literals, bare.longest)
    assert [one.wanted for one in padded.readings] == [one.wanted for one in bare.readings]
    assert needles(" \n") == Needles()
    assert not needles("")


def test_needles_are_longest_first_and_each_once():
    forms = needles(ODD).literals

    assert [len(form) for form in forms] == sorted((len(form) for form in forms), reverse=True)
    assert len(set(forms)) == len(forms)
    assert ODD.encode() in forms


def test_a_short_value_is_looked_for_only_as_it_is():
    assert needles("ab") == Needles.of(b"ab")
    assert all(len(form) >= 6 for form in needles("abcd").literals if form != b"abcd")


def test_an_occurrence_is_masked_with_as_many_bytes():
    assert mask_text(b"key=sk-12345; other", Needles.of(b"sk-12345")) == b"key=********; other"
    assert mask_text(b"nothing", Needles.of(b"sk-12345")) == b"nothing"
    assert mask_text(b"anything", Needles.of()) == b"anything"


def test_overlapping_occurrences_are_masked_whole():
    assert mask_text(b"xababax", Needles.of(b"aba")) == b"x*****x"
    assert mask_text(b"abcd", Needles.of(b"abc", b"bcd")) == b"****"
    assert mask_text(b"abcdef", Needles.of(b"abcdef", b"bcd")) == b"******"


def test_a_piece_that_ends_in_a_line_end_goes_out_at_once():
    masker = Masker(needles("sk-12345"))

    assert masker.feed(b"data: {}\n\n") == b"data: {}\n\n"
    assert masker.feed(b"data: sk-12345\n\n") == b"data: ********\n\n"
    assert masker.end() == b""


def test_text_that_ends_like_a_key_is_held_until_it_cannot_be_one():
    masker = Masker(Needles.of(b"sk-12345"))

    assert masker.feed(b"data: sk-1234") == b"data: "
    assert masker.feed(b"6\n\n") == b"sk-12346\n\n"
    assert masker.feed(b"data: another") == b"data: "
    assert masker.feed(b" sk-123") == b"another "
    assert masker.feed(b"45\n\n") == b"********\n\n"
    assert masker.feed(b"data: a-longer-one") == b"data: a-lon"
    assert masker.end() == b"ger-one"


def test_a_start_of_a_form_is_found_behind_one_that_went_on_otherwise():
    masker = Masker(Needles.of(b"ababcdefgh"))

    assert masker.feed(b"ab ababxabab") == b"ab "
    assert masker.feed(b"cdefgh") == b"ababx*"
    assert masker.end() == b"*********"


KEYS = (
    b"ab cd",
    b'ab"cd',
    b"ab'cd",
    b"ab`cd",
    b"ab<cd",
    b"ab>cd",
    b"ab{cd",
    b"ab}cd",
    b"ab[cd",
    b"ab]cd",
    b"ab,cd",
    "ab\u00e9cd".encode(),
    b"ab\x7fcd",
)


@each("key", [b"sk-12345", b"a/b+c=:d", b"a\\b|c~d%20", b"!#$&*-.?@^_"])
@each("last", [*b" \"'`()[]{}<>,;\n\t\x7f\x80\xff"])
def test_behind_a_key_of_plain_characters_nothing_waits_that_ends_in_another(key, last):
    text = key[:3] + bytes([last])

    assert Masker(Needles.of(key)).feed(text) == text


@each("key", KEYS)
def test_for_a_key_with_other_characters_whatever_is_no_control_character_waits(key):
    masker = Masker(Needles.of(key, b"abcdefghi"))

    assert masker.feed(b"\x1f, {<xyz") == b"\x1f"
    assert masker.feed(b"0123") == b", {"
    assert masker.feed(b"\n") == b"<xyz0123\n"


def test_for_a_key_with_a_control_character_as_much_waits_always():
    masker = Masker(Needles.of(b"ab\ncd"))

    assert masker.feed(b"x\n\n") == b""
    assert masker.feed(b"\n\n\x00") == b"x\n"
    assert masker.feed(b"ab\nc") == b"\n\n\n\x00"
    assert masker.feed(b"d") == b"*"
    assert masker.end() == b"****"


def test_after_the_end_a_new_text_begins():
    masker = Masker(Needles.of(b"abcdef"))

    assert masker.feed(b"abc") == b""
    assert masker.end() == b"abc"
    assert masker.feed(b"def ") == b"def "


def test_a_masked_part_that_may_begin_another_occurrence_waits_masked():
    masker = Masker(Needles.of(b"xyab", b"abcde"))

    assert masker.feed(b":xyab") == b":"
    assert masker.feed(b" ") == b"**** "
    assert masker.feed(b"xyab") == b""
    assert masker.feed(b"cde ") == b"******* "


@settings(max_examples=500)
@given(small, ab, st.lists(st.integers(0, 40), max_size=8))
def test_the_chunks_make_no_difference(forms, text, cuts):
    wanted = Needles.of(*forms)
    assert feed(wanted, in_chunks(text, cuts)) == mask_text(text, wanted) == oracle(text, forms)


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
def test_the_held_length_does_not_depend_on_parts_of_the_secret(kind, shape, cuts, data):
    value, letters = kind
    forms = needles(value)
    secret, other = b"", b""
    for of_value, size in shape:
        if not of_value:
            secret, other = secret + b"\n" * size, other + b"\n" * size
            continue
        form = data.draw(st.sampled_from(forms.literals))
        at = data.draw(st.integers(0, len(form) - 1))
        part = form[at : at + size] if "\n" in value else form.replace(b"\n", b"x")[at : at + size]
        secret += part
        # Of the same kind byte by byte: what could be a line of base64 is held back before its end, whatever it says.
        plain, odd = (
            data.draw(st.lists(st.sampled_from([*some]), min_size=len(part), max_size=len(part)))
            for some in (filter(is_base64, letters.encode()), filterfalse(is_base64, letters.encode()))
        )
        other += bytes(plain[at] if is_base64(byte) else odd[at] for at, byte in enumerate(part))

    assert [len(secret), *lengths(forms, secret, cuts)] == [len(other), *lengths(forms, other, cuts)]


def is_base64(byte):
    return byte < 128 and (chr(byte).isalnum() or chr(byte) in "+/-_")


def lengths(forms, text, cuts):
    """Return how many bytes come back at once for each chunk."""
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


@each(
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

    masked = mask_text(Weighed(text), Needles.of(form))

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

    wanted = Needles.of(*forms)
    assert feed(wanted, in_chunks(text, cuts)) == mask_text(text, wanted) == oracle(text, forms)


@each("unit", ["\"\\/<>&'", "k\u00e9y ", "\x01", '{"a": "sk-1/2+3"}\n', "abc~d"])
def test_the_forms_of_a_large_value_take_little_room_and_are_the_common_ones(unit):
    value = (unit * 65_536).encode()[:65_500].decode(errors="ignore").strip()
    raw = value.encode()
    forms = needles(value)

    assert sum(map(len, forms.literals)) < 20 * len(raw)
    assert forms.readings == ()
    for text in (
        raw,
        base64.b64encode(raw),
        base64.urlsafe_b64encode(b"a" + raw),
        base64.b64encode(b"ab" + raw + b"c"),
        quote(value, safe="").encode(),
        json.dumps(value, ensure_ascii=False)[1:-1].encode(),
    ):
        assert b"*" * (len(text) - 8) in mask_text(text, forms)


def test_a_value_with_hundreds_of_different_special_characters_is_looked_for_in_its_common_forms():
    value = "".join(map(chr, range(0x4E00, 0x4E00 + MAX_SPECIAL + 1)))

    assert needles(value).readings == ()
    assert len(needles(value[1:]).readings) == 4
    assert [
        form for form in (value, quote(value), base64.b64encode(value.encode()).decode()) if shows(value, form.encode())
    ] == []


def test_all_forms_of_a_value_of_4_kib_are_looked_for():
    value = ("<k/" * 1366)[:4096]

    assert not shows(value, value.encode().hex().encode())
    assert sum(map(len, needles(value).literals)) < 2**20


@each(
    "written",
    [
        "a&amp;b&lt;c&gt;d&quot;e&#39;f",
        "a&amp;b&lt;c&gt;d&quot;e&apos;f",
        "a&amp;b&lt;c&gt;d&#34;e&#39;f",
        "a&#38;b&#60;c&#62;d&#34;e&#39;f",
        "a&amp;b&lt;c&gt;d&quot;e&#x27;f",
        "a&amp;b&lt;c&gt;d&quot;e&#039;f",
        "a&amp;b&lt;c&gt;d\"e'f",
    ],
)
def test_html_entities_are_masked(written):
    assert html.unescape(written) == "a&b<c>d\"e'f"
    assert not shows("a&b<c>d\"e'f", written.encode())


@each("value", ["dXNlcjpwYTpzc3dvcmQ=", "dXNlcjpwYTpzc3dvcmQ", "Basic dXNlcjpwYTpzc3dvcmQ="])
def test_the_decoded_text_of_a_base64_secret_is_masked(value):
    assert not shows(value, b"user:pa:ssword")
    assert not shows(value, b"pa:ssword")
    assert shows(value, b"user")


def test_the_user_and_password_of_a_base64url_value_are_masked():
    value = base64.urlsafe_b64encode("u:>>>???\u00ff\u00ff".encode()).decode()

    assert "_" in value
    assert not shows(value, ">>>???\u00ff\u00ff".encode())


@each(
    ("inside", "shown"),
    [
        (b"user:short", b"short"),
        (b"abcde", b"abcde"),
        (b"\xff\xfe:password", b"password"),
        (b"a\x00:secret", b"secret"),
    ],
)
def test_values_that_are_too_short_or_no_text_are_not_masked(inside, shown):
    assert shows(base64.b64encode(inside).decode(), shown)


@each(
    ("name", "value"),
    [
        (b"Content-Length", b"12"),
        (b"transfer-encoding", b"Chunked"),
        (b"Connection", b"Upgrade"),
        (b"connection", b"close"),
        (b"Upgrade", b"websocket"),
        (b"DATE", b"Tue, 12 Mar 2024 12:12:12 GMT"),
    ],
)
@each("form", [b"12", b"Con", b"e"])
def test_framing_and_date_headers_are_not_masked(name, value, form):
    assert mask_header(name, value, Needles.of(form)) == (name, value)


@each(
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
    assert mask_header(name, value, Needles.of(b"12")) == masked


@each(
    "charset",
    [
        "utf-16",
        "UTF-16LE",
        '"utf-16be"',
        "'utf16'",
        "utf-32",
        "UTF_32",
        "ucs-2",
        "iso-10646-ucs-4",
        "csUnicode",
        "unicode",
        "utf-7",
        "unicode-1-1-utf-7",
        "csUTF16",
        "ibm037",
        "cp500",
        "IBM1047",
        "cp1140",
        "x-utf-16le-bom",
    ],
)
def test_a_body_in_which_a_letter_is_not_its_byte_is_unreadable(charset):
    assert unreadable(f"text/plain; format=flowed;charset={charset}")
    assert unreadable(f"text/plain; Charset = {charset}; x=y")


@each(
    "content_type",
    [
        None,
        "",
        "text/plain",
        "text/utf-16",
        "application/json; charset=utf-8",
        "text/html;charset=UTF8",
        "text/html; charset=iso-8859-1",
        "text/html; charset=windows-1252",
        "text/html; charset=cp1252",
        "text/html; charset=shift_jis",
        "text/html; charset=gb18030",
        "text/html; charset=us-ascii",
        "text/html; charset=ibm437",
        "text/html; charset=cp866",
        "text/html; charset=unicode-1-1-utf-8",
        "text/html; charset=koi8-r",
        "text/html; charset=big5",
    ],
)
def test_a_body_in_which_ascii_is_ascii_is_readable(content_type):
    assert not unreadable(content_type)


@given(values, st.binary(max_size=20), st.binary(max_size=20), st.data())
def test_any_form_of_any_value_is_masked_in_any_chunks(value, before, after, data):
    forms = needles(value)
    text = before + data.draw(st.sampled_from(forms.literals)) + after
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=10))

    masked = feed(forms, in_chunks(text, cuts))

    assert masked == mask_text(text, forms)
    assert all(shown in (byte, STAR[0]) for shown, byte in zip(masked, oracle(text, forms.literals), strict=True))


@given(values)
def test_output_of_standard_encoders_is_masked(value):
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


def table(spelled, **more):
    """An encoder by its library's table: characters that it writes otherwise, and how."""
    return lambda text: "".join(more.get(letter) or spelled(letter) for letter in text)


def escape(letters, form):
    """The same where each of these characters is written in one form."""
    return table(lambda letter: form.format(ord(letter)) if letter in letters else letter)


def minimal_json(text):
    return json.dumps(text, ensure_ascii=False)[1:-1]


def left_alone(marks):
    return lambda text: quote(text, safe=marks)


BASIC = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
# Libraries that are not here are written after their tables; those of JavaScript are tried in tests/judges.
ENCODERS = {
    "urllib quote": quote,
    "urllib quote_plus": quote_plus,
    "urllib quote all": left_alone(""),
    "encodeURI": left_alone("!'()*;/?:@&=+$,#"),
    "Go url.PathEscape": left_alone("$&+=:@"),
    "Spring path segment": left_alone("!$&'()*+,;=:@"),
    "Spring path": left_alone("!$&'()*+,;=:@/"),
    "Java URLEncoder": lambda text: quote_plus(text, safe="*").replace("~", "%7E"),
    "Go url.QueryEscape": quote_plus,
    ".NET Uri.EscapeDataString": left_alone(""),
    "WebUtility.UrlEncode": lambda text: re.sub("%..", lambda one: one[0].lower(), quote_plus(text, safe="!()*")),
    "json": lambda text: json.dumps(text)[1:-1],
    "msgspec": lambda text: msgspec.json.encode(text).decode()[1:-1],
    "ujson": lambda text: ujson.dumps(text)[1:-1],
    "ujson for HTML": lambda text: ujson.dumps(text, encode_html_chars=True)[1:-1],
    "jinja2 tojson": lambda text: str(jinja2.utils.htmlsafe_json_dumps(text))[1:-1],
    "Gson": lambda text: "".join(f"\\u{ord(one):04x}" if one in "<>&='" else minimal_json(one) for one in text),
    "Go json": lambda text: "".join(f"\\u{ord(one):04x}" if one in "<>&" else minimal_json(one) for one in text),
    "System.Text.Json": lambda text: "".join(
        f"\\u{ord(one):04X}" if one in "<>&'\"+`" or one > "~" else minimal_json(one) for one in text
    ),
    "PHP json_encode": lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    "PHP JSON_HEX": lambda text: "".join(
        f"\\u{ord(one):04X}" if one in "<>&'\"" else minimal_json(one) for one in text
    ),
    "Django escapejs": escape("\\'\"<>&=-;`", "\\u{:04X}"),
    "Go template.JSEscape": table(
        lambda one: f"\\u{ord(one):04X}" if one in "<>&=" else {"'": "\\'", '"': '\\"', "\\": "\\\\"}.get(one, one)
    ),
    "OWASP for JavaScript": escape("'\"<>&/\\-", "\\x{:02x}"),
    "Java escapeEcmaScript": table(lambda one: "\\" + one if one in "'\"/\\" else one),
    "html.escape": html.escape,
    "markupsafe": lambda text: str(markupsafe.escape(text)),
    "saxutils": saxutils.escape,
    "jinja2 e": lambda text: jinja2.Environment(autoescape=True).from_string("{{ text }}").render(text=text),
    "jinja2 urlencode": lambda text: jinja2.Environment().from_string("{{ text | urlencode }}").render(text=text),
    "Go html/template": table(lambda one: {**BASIC, "'": "&#39;", '"': "&#34;", "+": "&#43;"}.get(one, one)),
    "Mustache.js": table(
        lambda one: {**BASIC, "'": "&#39;", '"': "&quot;", "/": "&#x2F;", "`": "&#x60;", "=": "&#x3D;"}.get(one, one)
    ),
    "Handlebars": table(
        lambda one: {**BASIC, "'": "&#x27;", '"': "&quot;", "`": "&#x60;", "=": "&#x3D;"}.get(one, one)
    ),
    "ASP.NET HtmlEncoder": table(
        lambda one: {**BASIC, '"': "&quot;"}.get(one) or (f"&#x{ord(one):X};" if one in "'+`" or one > "~" else one)
    ),
    "PHP htmlspecialchars": table(lambda one: {**BASIC, "'": "&#039;", '"': "&quot;"}.get(one, one)),
    "PHP htmlentities": table(
        lambda one: {**BASIC, "'": "&#039;", '"': "&quot;", "\u00e4": "&auml;", "\u00f6": "&ouml;"}.get(one, one)
    ),
    "OWASP ESAPI": escape("'\"<>&+/=~\\%?#!*()[]{}|@:;^$`", "&#x{:x};"),
    "numeric": escape("'\"<>&+/=~\\%?#", "&#{};"),
    "numeric with zeros": escape("'\"<>&+/=~", "&#{:04d};"),
    "hexadecimal with zeros": escape("'\"<>&+/=~", "&#X{:04X};"),
    "all HTML names": table(
        lambda one: {**BASIC, "+": "&plus;", "=": "&equals;", "/": "&sol;", "%": "&percnt;", "'": "&apos;"}.get(
            one, one
        )
    ),
    "xmlcharrefreplace": lambda text: html.escape(text).encode("ascii", "xmlcharrefreplace").decode(),
    "mixed escapes": lambda text: "".join(
        f"%{ord(one):02{'xX'[at % 2]}}" if one in "+/=&<" and at % 3 else one for at, one in enumerate(text)
    ),
}
TRIED = [
    "ab+cd/ef==",
    KEY,
    'pass word&<tag>\'s "quoted"=`x`',
    "p\u00e4ss=w\u00f6rd/1+2",
    "a;b,c:d?e#f@g!h$i(j)k*l[m]n{o}p|q^r\\s%t",
]


@each("name", ENCODERS)
def test_encoded_secrets_are_masked_whole_and_in_pieces(name):
    shown = []
    for value in TRIED:
        text = ENCODERS[name](value).encode()
        around = b'{"a": "' + text + b'"}\n<p>' + text + b"</p>"
        whole = mask_text(around, needles(value))
        if whole != around.replace(text, b"*" * len(text)) or in_ones(value, around) != whole:
            shown.append((value, text, whole))

    assert shown == []


def in_ones(value, text):
    return feed(needles(value), [text[at : at + 1] for at in range(len(text))])


@each("text", [b"ab%2Bcd\\u002Fef&#61;=", b"ab\\\\u002bcd/ef==", b"ab%252Bcd/ef==", b"ab+cd/ef=%3"])
def test_only_what_is_escaped_once_and_alike_all_through_is_a_form(text):
    assert mask_text(text, needles("ab+cd/ef==")) == text


@each("value", ["back\\slash+n", "\\n\\t+\\\\end", "100%25+%zz", "&amp;&lt;+&;"])
def test_a_value_that_looks_escaped_itself_is_masked(value):
    written = [value, quote(value, safe=""), quote_plus(value), json.dumps(value)[1:-1], html.escape(value)]
    written += [json.dumps(value)[1:-1].replace("+", "\\u002b"), html.escape(value).replace("+", "&#43;")]

    assert [text for text in written if shows(value, text.encode())] == []
    assert [text for text in written if mask_text(text.encode(), needles(value)) != in_ones(value, text.encode())] == []


SPELLINGS = {
    "percent": lambda one: [quote(one, safe=""), quote(one, safe="").lower(), *{"%": [], " ": " +"}.get(one, one)],
    "json": lambda one: [json.dumps(one)[1:-1], f"\\u{ord(one):04X}", f"\\x{ord(one):02x}", *["\\/"] * (one == "/")],
    "html": lambda one: [f"&#{ord(one)};", f"&#x{ord(one):X};", f"&#x{ord(one):04x};", html.escape(one)],
}
odd_values = st.text(st.sampled_from("ab1+/=&<>'\"% \\;#~\u00e4"), min_size=6, max_size=24).filter(
    lambda text: text == text.strip()
)


@settings(max_examples=300)
@given(odd_values, st.sampled_from([*SPELLINGS]), st.binary(max_size=12), cuts_drawn, st.data())
def test_whichever_of_its_characters_are_escaped_a_value_is_masked_in_any_chunks(value, family, around, cuts, data):
    written = [
        one if one.isalnum() and one.isascii() else data.draw(st.sampled_from(SPELLINGS[family](one))) for one in value
    ]
    text = "".join(written).encode()
    forms = needles(value)

    masked = feed(forms, in_chunks(around + b"\n" + text + b"\n" + around, cuts))

    assert masked == mask_text(around + b"\n" + text + b"\n" + around, forms)
    assert masked[len(around) + 1 :][: len(text)] == b"*" * len(text)


@each("value", [KEY, "sk-plain-0123456789abcdefghijklmnop" * 3, "ab+cd/ef=="])
@each("size", [60, 64, 76])
@each("end", ["\n", "\r\n", "\\n", "\\r\\n"])
def test_base64_in_lines_is_masked_whole_and_in_pieces(value, size, end):
    for before in (b"x" * 7, b"x" * 50, b"user:" * 40, b"y" * 113):
        line = base64.b64encode(before + value.encode() + b"\xff" * 70).decode()
        text = end.join(line[at : at + size] for at in range(0, len(line), size)).encode()
        whole = mask_text(text, needles(value))

        # Without the ends of the lines: what is left decides nothing that the value says.
        marks = [at for at in range(len(text)) if (at % (size + len(end))) < size]
        left = base64.b64decode(bytes(whole[at] for at in marks).replace(b"*", b"A") + b"==")
        assert not any(value.encode()[at : at + 4] in left for at in range(len(value) - 3))
        assert whole.count(b"*") >= len(value) * 4 // 3 - 2
        assert in_ones(value, text) == whole


@each("piece", ["a" * 59 + "\n", "word " * 20 + "\n", "data: {}\n\n", "a" * 200 + ",\n", "a" * 200 + "\n\n"])
def test_a_line_that_is_none_of_base64_leaves_at_once(piece):
    masker = Masker(needles("sk-12345"))

    assert masker.feed(piece.encode()) == piece.encode()


def test_a_line_that_may_be_one_of_base64_waits_whatever_it_says():
    lines = [b"A" * 76 + b"\n", base64.encodebytes(b"x" * 40 + b"sk-12345" + b"x" * 9)]

    assert {len(Masker(needles("sk-12345")).feed(line)) for line in lines} == {4}


WORST = [
    b"&",
    b"&#",
    b"&#0",
    b"&#x",
    b"\\",
    b"\\u",
    b"\\u0",
    b"%",
    b"%2",
    b"%u",
    b"+",
    b"%2B",
    b"&#43;",
    b"\\u002b",
    b"\n",
    b"A" * 60 + b"\n",
    b"A" * 61 + b"\\r\\n",
    b"ab+cd%2Fef",
    b"ab+cd/ef=",
    b"0123456789abcde",
    b"0123456789abcdef%2B",
]


COMPARISONS = 5


@each("unit", WORST)
def test_the_time_grows_with_the_text(unit):
    def least(size, forms):
        text = (unit * (size // len(unit) + 1))[:size]
        return min(timeit.repeat(lambda: mask_text(text, forms), timer=time.thread_time, number=1, repeat=3))

    for value in ("ab+cd/ef==", "3D" + "=" * 4000, "a b" * 1000):
        # Eight times the text: what is quadratic takes sixty-four times as long, however often one looks.
        assert any(
            least(2**17, needles(value)) < 40 * max(least(2**14, needles(value)), 0.0005) for _ in range(COMPARISONS)
        )
