"""Places in a body beside a field: in nested JSON, in each item of an array, in a form of parts, in a text."""

import json
from email.message import Message
from email.parser import BytesParser
from email.policy import HTTP

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.credentials.rules import InvalidRoute, check
from custody.credentials.types import RouteFields
from proxy_addon.inject import Placed
from proxy_addon.into_body import (
    MAX_JSON_PARTS,
    MAX_PART_HEAD,
    MAX_PART_LINES,
    MAX_PARTS,
    MAX_PLACEHOLDERS,
    BadJson,
    BodyUnfit,
    into_body,
)
from tests.fixtures.each import each

JSON, PARTS = "application/json", "multipart/form-data; boundary=line"
SECRET = 'sk-"é&=+ %\\{value}'


def route_to(way, key):
    return RouteFields(host_pattern="api.example.com", inject_as=way, inject_key=key)


def put(content, *, way="json", key="/auth/token", of=JSON, text=SECRET):
    return into_body(of, None, content, Placed(route_to(way, key), text))


@each(
    ("key", "content", "expected"),
    [
        ("/token", b"{}", {"token": SECRET}),
        ("/auth/token", b'{"auth": {"token": "mine", "a": 1}}', {"auth": {"token": SECRET, "a": 1}}),
        ("/auth/token", b'{"b": [1]}', {"b": [1], "auth": {"token": SECRET}}),
        ("/a~1b/c~0d", b'{"a/b": {}}', {"a/b": {"c~d": SECRET}}),
        ("/*/params/key", b'[{"params": {"key": 1}}, {}]', [{"params": {"key": SECRET}}, {"params": {"key": SECRET}}]),
        ("/calls/*/key", b'{"calls": [{"a": 1}]}', {"calls": [{"a": 1, "key": SECRET}]}),
        ("/", b"{}", {"": SECRET}),
        ("/auth/token", b'{"auth": {"token": 1}, "auth": {"b": 2}}', {"auth": {"b": 2, "token": SECRET}}),
        ("/key", b'[{"a": 1}, {"key": 2}]', [{"a": 1, "key": SECRET}, {"key": SECRET}]),
    ],
)
def test_a_place_in_json_takes_the_value(key, content, expected):
    assert json.loads(put(content, key=key)) == expected


def test_json_beside_the_place_stays_as_it_was_written():
    found = put(b'{"a": 1.50, "auth": {"n": 1e400, "s": "\\u0041"}}')

    assert b"1.50" in found
    assert b"1e400" in found
    assert b'"\\u0041"' in found


@each(
    "content", [b'{"auth": []}', b'{"auth": "text"}', b'{"auth": null}', b"[]", b"[1]", b"1", b'"a"', b'[{"auth": 1}]']
)
def test_a_place_that_is_not_there_goes_nowhere(content):
    with pytest.raises(BodyUnfit):
        put(content)


@each("content", [b"", b"{", b'{"auth": {"a"}}', b'{"auth": {}, }', b"\xff{}", b'{"a":' * 100_000])
def test_a_body_that_is_no_json_is_told_so(content):
    with pytest.raises(BadJson):
        put(content)


@each(
    ("key", "words"),
    [
        ("token", "starts with a slash"),
        ("/a/*", "ends with the name"),
        ("/a~2", "~0"),
        ("/a" * 9, "at most 8"),
    ],
)
def test_a_place_that_nobody_could_find_is_refused(key, words):
    with pytest.raises(InvalidRoute) as refused:
        check(route_to("json", key), allow_broad=True, allow_cookies=True)

    assert words in refused.value.message


def test_a_short_placeholder_is_refused():
    with pytest.raises(InvalidRoute):
        check(route_to("text", "__KEY__"), allow_broad=True, allow_cookies=True)


def part(name, value, *lines):
    return b"\r\n".join([b"--line", b'Content-Disposition: form-data; name="' + name + b'"', *lines, b"", value, b""])


def form(*parts):
    return b"".join(parts) + b"--line--\r\n"


def read(content, of=PARTS):
    """Read a form as another program does."""
    head = f"Content-Type: {of}\r\n\r\n".encode()
    message = BytesParser(policy=HTTP).parsebytes(head + content)
    return [(field(one), one.get_payload(decode=True)) for one in message.iter_parts()]


def field(one: Message):
    return one.get_param("name", header="content-disposition")


@given(
    st.lists(st.tuples(st.sampled_from(["a", "b", "key"]), st.text('aZ0=&;:"é', max_size=20)), min_size=1, max_size=5)
)
def test_a_form_of_parts_read_by_others_has_exactly_the_injected_part_more(parts):
    parts = [(name, value.encode()) for name, value in parts]

    found = read(put(form(*(part(name.encode(), value) for name, value in parts)), way="body", key="key", of=PARTS))

    assert found == [pair for pair in parts if pair[0] != "key"] + [("key", SECRET.encode())]


def test_a_file_in_a_form_stays_byte_for_byte():
    file = bytes(range(256)) * 4
    sent = form(part(b'file"; filename="a.bin', file, b"Content-Type: application/octet-stream"), part(b"key", b"mine"))

    found = put(sent, way="body", key="key", of=PARTS)

    assert found.startswith(sent[: sent.index(b"--line", 10)])
    assert b"mine" not in found


UNREAD = {
    "no boundary": ("multipart/form-data", form(part(b"a", b"1"))),
    "two boundaries": (PARTS + "; boundary=other", form(part(b"a", b"1"))),
    "a boundary with a character that none has": ('multipart/form-data; boundary="a%b"', form(part(b"a", b"1"))),
    "something before the first part": (PARTS, b"x\r\n" + form(part(b"a", b"1"))),
    "no end": (PARTS, part(b"a", b"1")),
    "something behind the end": (PARTS, form(part(b"a", b"1")) + b"x"),
    "a boundary behind a bare line feed": (PARTS, form(part(b"a", b'1\n--line\nContent-Disposition: x; name="key"'))),
    "no empty line": (PARTS, b'--line\r\nContent-Disposition: form-data; name="a"\r\n--line--'),
    "no name": (PARTS, b"--line\r\nContent-Type: text/plain\r\n\r\n1\r\n--line--"),
    "two names": (PARTS, form(part(b'a"; name="key', b"1"))),
    "two dispositions": (PARTS, form(part(b"a", b"1", b'content-disposition: form-data; name="key"'))),
    "a folded line": (PARTS, form(part(b"a", b"1", b' ; name="key"'))),
    "a name with a backslash": (PARTS, form(part(b'k\\"ey', b"1"))),
    "a name in another spelling": (PARTS, form(part(b"a\"; name*=utf-8''key; x=\"", b"1"))),
    "a head of many lines": (PARTS, form(part(b"a", b"1", *[b"x: y"] * (MAX_PART_LINES + 1)))),
    "a long head": (PARTS, form(part(b"a", b"1", b"x: " + b"y" * MAX_PART_HEAD))),
    "too many parts": (PARTS, form(*[part(b"a", b"1")] * MAX_PARTS)),
}


@each("name", UNREAD)
def test_a_form_of_parts_that_two_may_read_differently_goes_nowhere(name):
    of, content = UNREAD[name]

    with pytest.raises(BodyUnfit):
        put(content, way="body", key="key", of=of)


def test_a_value_that_would_end_its_part_goes_nowhere():
    with pytest.raises(BodyUnfit):
        put(form(part(b"a", b"1")), way="body", key="key", of=PARTS, text="a\r\n--line")


@each("of", [None, "", "text/plain", "TEXT/plain; charset=UTF-8"])
def test_a_placeholder_in_a_text_is_replaced_wherever_it_stands(of):
    assert put(b"login __TOKEN__ __TOKEN__", way="text", key="__TOKEN__", of=of) == f"login {SECRET} {SECRET}".encode()


@each(
    ("of", "content"),
    [
        ("text/plain", b"login"),
        ("text/plain", b"__TOKEN__" * (MAX_PLACEHOLDERS + 1)),
        ("text/html", b"__TOKEN__"),
        ("application/json", b'"__TOKEN__"'),
        ("text/plain; charset=utf-16", b"__TOKEN__"),
    ],
)
def test_a_text_without_a_place_for_the_value_goes_nowhere(of, content):
    with pytest.raises(BodyUnfit):
        put(content, way="text", key="__TOKEN__", of=of)


@each(
    "body",
    [
        b"[" + b"1," * MAX_JSON_PARTS + b"1]",
        b"[" + b"1," * (MAX_JSON_PARTS + 1) + b"1]",
        b"{" + b'"a":1,' * (MAX_JSON_PARTS + 1) + b'"a":1}',
    ],
)
def test_json_of_more_parts_than_a_turn_allows_is_refused(body):
    with pytest.raises(BodyUnfit):
        put(body, way="body", key="key")


@each("body", [b'{"a":"' + b"b, c: " * 10 + b'"}', b'{"a":"' + b"b, " * (MAX_JSON_PARTS + 2) + b'"}'])
def test_a_long_text_in_json_is_no_part(body):
    assert b'"key"' in put(body, way="body", key="key")
