"""Putting a credential into a request: what goes in, what goes out, and that nothing else changes."""

import base64
import json
from urllib.parse import parse_qsl, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.credentials.types import RouteFields
from custody.kit.errors import Invalid
from proxy_addon.inject import (
    Placed,
    TooManyPairs,
    format_value,
    holds_token,
    into_headers,
    into_query,
    outgoing_headers,
    returning_headers,
    without_token,
)
from proxy_addon.into_body import BodyUnfit, into_body
from tests.fixtures.each import each

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
SECRET = 'sk-"é&=+ %\\{value}'

scalars = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(scalars, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(scalars, documents, max_size=5)


def route(inject_format="{value}"):
    return RouteFields(
        host_pattern="api.example.com", inject_as="header", inject_key="X-Key", inject_format=inject_format
    )


def body(content, *, of=JSON, encoding=None, key="api_key", text=SECRET):
    said = RouteFields(host_pattern="api.example.com", inject_as="body", inject_key=key)
    return into_body(of, encoding, content, Placed(said, text))


@each(
    ("inject_format", "value", "text"),
    [
        ("{value}", "sk-1", "sk-1"),
        ("Bearer {value}", "sk-1", "Bearer sk-1"),
        ("Bearer {value}", "{value}", "Bearer {value}"),
        ("{x}{value}{}", "{0}%s\\1", "{x}{0}%s\\1{}"),
        ("{{value}}", "a", "{a}"),
    ],
)
def test_the_value_takes_its_place_in_the_format_and_is_not_read(inject_format, value, text):
    assert format_value(route(inject_format), value) == text


@each(
    ("query", "expected"),
    [
        (None, b"key=s"),
        (b"", b"key=s"),
        (b"a=1", b"a=1&key=s"),
        (b"key=old", b"key=s"),
        (b"key", b"key=s"),
        (b"key=1&a=%20+%2f%zz&key=2", b"a=%20+%2f%zz&key=s"),
        (b"k%65y=old&%6B%65%79=x&b", b"b&key=s"),
        (b"&&a&", b"&&a&&key=s"),
        (b"KEY=1&keys=2&=key", b"KEY=1&keys=2&=key&key=s"),
        (b"a=key=1&a=key", b"a=key=1&a=key&key=s"),
        (b"\xff=1&%ff=2", b"\xff=1&%ff=2&key=s"),
    ],
)
def test_the_query_keeps_every_other_pair_byte_for_byte(query, expected):
    assert into_query(query, "key", "s") == expected


@each("query", [b"a+b=1", b"a%20b=1", b"%61+%62=1"])
def test_a_plus_in_a_name_is_a_space(query):
    assert into_query(query, "a b", "s") == b"a%20b=s"


@given(st.lists(st.tuples(scalars, scalars), max_size=5), st.text("key &=+%", min_size=1, max_size=4), scalars)
def test_a_query_parsed_by_others_has_exactly_the_injected_pair_more(pairs, key, text):
    query = "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in pairs).encode()

    parsed = parse_qsl(into_query(query, key, text).decode(), keep_blank_values=True, strict_parsing=True)

    assert parsed == [pair for pair in pairs if pair[0] != key] + [(key, text)]


def test_a_query_of_ten_thousand_pairs_is_the_longest():
    assert into_query(b"&".join([b"a=1"] * 10_000), "key", "s").endswith(b"a=1&key=s")
    with pytest.raises(TooManyPairs) as refused:
        into_query(b"&" * 10_000, "key", "s")

    assert isinstance(refused.value, Invalid)


def test_a_form_of_a_million_ampersands_is_unfit():
    with pytest.raises(BodyUnfit):
        body(b"&" * 2**20, of=FORM)


@each(
    ("query", "expected"),
    [
        (None, None),
        ("", b""),
        ("a=%74&b", b"a=%74&b"),
        ("key=tok.en", b""),
        ("a=%zz&key=xtok.enx&b=tok", b"a=%zz&b=tok"),
        ("a=1&key=%74ok%2Een&tok.en&b", b"a=1&b"),
    ],
)
def test_a_query_loses_the_pairs_that_hold_the_token(query, expected):
    assert without_token(query, "tok.en") == expected


@each("path", ["/tok.en", "/v1/xtok.enx/a", "/v1/%74ok.en", "/%74%6f%6B%2e%65%6e"])
def test_a_path_with_the_token_is_told(path):
    assert holds_token(path, "tok.en")


@each("path", ["/", "/tok/.en", "/TOK.EN", "/%2574ok.en", "/%zz%ff%7", "/v1?x"])
def test_a_path_without_the_token_is_let_be(path):
    assert not holds_token(path, "tok.en")


@given(st.text("tok.en", min_size=1, max_size=9), st.lists(st.booleans(), min_size=9, max_size=9))
def test_a_token_is_told_whichever_of_its_letters_are_escaped(token, escaped):
    written = "".join(
        f"%{ord(letter):02x}" if escape else letter for letter, escape in zip(token, escaped, strict=False)
    )

    assert holds_token(f"/a%20/{written}/b", token)


def test_a_header_replaces_every_one_of_its_name():
    headers = [
        (b"Accept", b"*/*"),
        (b"x-key", b"evil"),
        (b"Host", b"a.com"),
        (b"X-KEY", b"worse"),
        (b"X_Key", b"worst"),
    ]

    assert into_headers(headers, "X-Key", "Bearer é") == [
        (b"Accept", b"*/*"),
        (b"Host", b"a.com"),
        (b"X-Key", "Bearer é".encode()),
    ]


def test_other_values_of_a_json_body_stay_as_they_were_written():
    content = b'{"n": 1.10000000000000000000001e+2 , "s":"\\u00e9\\/", "o":{ "a" :[1, 2 ],"a":2}}'

    changed = body(content, text="s")

    assert changed == (b'{"n":1.10000000000000000000001e+2,"s":"\\u00e9\\/","o":{ "a" :[1, 2 ],"a":2},"api_key":"s"}')


def test_a_field_that_is_there_is_replaced_however_often_and_however_spelled():
    changed = body(b'{"api_key":{"a":1},"b":2,"api\\u005fkey":[3]}', text="s")

    assert json.loads(changed, object_pairs_hook=list) == [("api_key", "s"), ("b", 2)]


def test_a_nested_field_of_the_name_is_not_touched():
    assert body(b'{"a":{"api_key":1}}', text="s") == b'{"a":{"api_key":1},"api_key":"s"}'


# A star alone means each item of an array.
@given(objects, scalars.filter(lambda key: key != "*"), scalars)
def test_a_json_body_parsed_by_others_has_exactly_the_injected_field_more(document, key, text):
    changed = body(json.dumps(document).encode(), key=key, text=text)

    assert json.loads(changed) == document | {key: text}


@given(st.lists(st.tuples(scalars, scalars), max_size=4), scalars)
def test_a_form_parsed_by_others_has_exactly_the_injected_field_more(pairs, text):
    content = "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in pairs).encode()

    parsed = parse_qsl(body(content, of=FORM, text=text).decode(), keep_blank_values=True, strict_parsing=True)

    assert parsed == [pair for pair in pairs if pair[0] != "api_key"] + [("api_key", text)]


@each(
    "of",
    [
        JSON,
        "Application/JSON",
        "application/json; charset=utf-8",
        'application/json;charset="UTF-8"',
        "application/json; charset=utf8; x=y",
        "application/vnd.api+json",
        " application/json ",
    ],
)
def test_json_is_taken_under_each_of_its_names(of):
    assert body(b"{}", of=of, text="s") == b'{"api_key":"s"}'


@each("of", [FORM, "APPLICATION/X-WWW-FORM-URLENCODED; charset=UTF-8"])
def test_a_form_is_taken_under_each_of_its_names(of):
    assert body(b"", of=of, text="s") == b"api_key=s"


@each(
    ("of", "encoding", "content"),
    [
        (None, None, b"{}"),
        ("", None, b"{}"),
        ("text/plain", None, b"{}"),
        ("text/json+json", None, b"{}"),
        ("application/jsonl", None, b"{}"),
        ("multipart/form-data; boundary=x", None, b"--x--"),
        ("application/json; charset=utf-16", None, b"{}"),
        ("application/json; charset=utf-8; charset=utf-16", None, b"{}"),
        (FORM + "; charset=iso-8859-1", None, b""),
        (JSON, "gzip", b"{}"),
        (FORM, "identity, gzip", b""),
        (JSON, None, b"[]"),
        (JSON, None, b"[1]"),
        (JSON, None, b"[{}, []]"),
        ("text/plain", None, b"api_key"),
        ("multipart/form-data; boundary=a", None, b""),
        (JSON, None, b'"text"'),
        (JSON, None, b"null"),
        (JSON, None, b" 12 "),
    ],
)
def test_a_body_without_a_place_for_a_field_is_unfit(of, encoding, content):
    with pytest.raises(BodyUnfit) as unfit:
        body(content, of=of, encoding=encoding)

    assert unfit.value.status == 415


@each(
    "content",
    [
        b"",
        b"{",
        b'{"a":}',
        b'{"a":1}x',
        b'{"a":1,}',
        b"{'a':1}",
        b'\xef\xbb\xbf{"a":1}',
        b'{"a":NaN}',
        b'{"\xff":1}',
        b'{"a":"\xff"}',
        b'{"a":' + b"[" * 500_000,
        b'{"a":' + b"[" * 300_000 + b"]" * 300_000 + b"}",
    ],
)
def test_malformed_json_is_told_apart(content):
    with pytest.raises(Invalid) as malformed:
        body(content)

    assert SECRET not in str(malformed.value)


def test_an_identity_encoding_is_none():
    assert body(b"{}", encoding="Identity", text="s") == b'{"api_key":"s"}'


KEPT = [
    (b"Host", b"api.example.com"),
    (b"ACCEPT", b"*/*"),
    (b"Content-Length", b"3"),
    (b"Cookie", b"a=1"),
    (b"accept", b"text/html"),
    (b"Expect", b"100-continue"),
    (b"Transfer-Encoding", b"chunked"),
]


def outgoing(*more, token="tok.en", websocket=False):
    return outgoing_headers([*more, *KEPT], token=token, websocket=websocket)


@each(
    "name",
    [
        b"Range",
        b"If-Range",
        b"request-range",
        b"Accept-Charset",
        b"X-HTTP-Method-Override",
        b"X-HTTP-Method",
        b"x-method-override",
        b"X-Original-URL",
        b"X-Rewrite-Url",
        b"X_HTTP_Method_Override",
        b"X-Method",
        b"X-Original-Host",
        b"X-Original-URI",
        b"X-Forwarded-Host",
        b"X-Forwarded-Uri",
        b"X-Forwarded-Prefix",
        b"X-Forwarded-For",
        b"x_forwarded_host",
        b"Forwarded",
        b"X-Real-IP",
        b"X-Host",
        b"HTTP2-Settings",
        b"Transfer_Encoding",
        b"Content_Length",
        b"content_LENGTH",
        b"Proxy_Authorization",
        b"X_Service_Key",
        b"Keep_Alive",
        b"HTTP2_Settings",
        b"X_Service-Key",
    ],
)
def test_headers_that_mislead_the_upstream_or_split_an_answer_are_dropped(name):
    assert outgoing((name, b"1")) == KEPT


@each("encode", [base64.b64encode, base64.urlsafe_b64encode])
@each("text", [b"agent:%s", b"%s:", b"%s", b":%s\xff", b"api key:>>%s<<"])
@each("shown", [b"Basic %s", b"%s", b"key=%s; x"])
def test_a_header_with_the_token_in_base64_goes_no_further(encode, text, shown):
    token = "ey~~>.J?~o.k~en"

    assert outgoing((b"X-Api-Key", shown % encode(text % token.encode())), token=token) == KEPT


def test_a_header_with_something_else_in_base64_is_kept():
    header = (b"X-Api-Key", b"Basic " + base64.b64encode(b"agent:tok.other"))

    assert outgoing(header) == [header, *KEPT]
    assert outgoing(header, token="t") == [header for header in [header, *KEPT] if b"t" not in header[1]]


@each(
    "header",
    [
        (b"Authorization", b"Bearer other"),
        (b"AUTHORIZATION", b""),
        (b"Proxy-Authorization", b"Basic x"),
        (b"proxy-connection", b"keep-alive"),
        (b"Proxy-Anything", b"1"),
        (b"X-Service-Key", b"k"),
        (b"x-service-agent-token", b"t"),
        (b"Connection", b"close"),
        (b"Keep-Alive", b"5"),
        (b"TE", b"trailers"),
        (b"Trailer", b"X-Sum"),
        (b"Upgrade", b"h2c"),
        (b"x-api-key", b"tok.en"),
        (b"X-Anything", b"a tok.en b"),
        (b"Cookie", b"session=tok.en"),
    ],
)
def test_hop_by_hop_headers_are_dropped(header):
    assert outgoing(header) == KEPT


def test_headers_named_by_the_connection_header_are_dropped():
    named = [(b"X-One", b"1"), (b"x-two", b"2"), (b"X-Three", b"3")]

    assert outgoing((b"Connection", b"x-one, X-TWO"), (b"connection", b"x-three,,"), *named) == KEPT


def test_a_connection_header_cannot_take_away_where_a_message_ends():
    assert outgoing((b"Connection", b"content-length, Transfer-Encoding, HOST")) == KEPT


def test_without_a_token_nothing_is_looked_for():
    assert outgoing((b"X-A", b"tok.en"), token=None) == [(b"X-A", b"tok.en"), *KEPT]


HANDSHAKE = [
    (b"Connection", b"keep-alive, Upgrade"),
    (b"Upgrade", b"WebSocket"),
    (b"Sec-WebSocket-Key", b"a"),
    (b"Sec-WebSocket-Version", b"13"),
    (b"Sec-WebSocket-Protocol", b"chat"),
    (b"Sec-WebSocket-Extensions", b"permessage-deflate"),
    (b"Authorization", b"Bearer tok.en"),
    (b"Origin", b"x"),
]


def test_a_websocket_handshake_keeps_what_it_needs_and_offers_no_compression():
    assert outgoing_headers(HANDSHAKE, token="tok.en", websocket=True) == [
        (b"Sec-WebSocket-Key", b"a"),
        (b"Sec-WebSocket-Version", b"13"),
        (b"Sec-WebSocket-Protocol", b"chat"),
        (b"Origin", b"x"),
        (b"Connection", b"Upgrade"),
        (b"Upgrade", b"websocket"),
    ]


def test_of_an_answer_only_what_is_for_the_agent_comes_back():
    answer = [
        (b"Content-Type", b"text/html"),
        (b"Alt-Svc", b'h3=":443"'),
        (b"Connection", b"close, X-Hop"),
        (b"X-Hop", b"1"),
        (b"Keep-Alive", b"1"),
        (b"Upgrade", b"h2"),
        (b"Proxy-Authenticate", b"Basic"),
        (b"Trailer", b"a"),
        (b"X-Service-Request-Id", b"1"),
        (b"x_service-Error", b"no_route"),
        (b"X-SERVICE-ANYTHING", b"1"),
        (b"Transfer-Encoding", b"chunked"),
        (b"Content-Length", b"1"),
        (b"Set-Cookie", b"a"),
        (b"set-cookie", b"b"),
        (b"Location", b"https://b.com/"),
        (b"WWW-Authenticate", b"Basic"),
    ]

    assert returning_headers(answer, websocket=False) == [
        (b"Content-Type", b"text/html"),
        (b"Transfer-Encoding", b"chunked"),
        (b"Content-Length", b"1"),
        (b"Set-Cookie", b"a"),
        (b"set-cookie", b"b"),
        (b"Location", b"https://b.com/"),
        (b"WWW-Authenticate", b"Basic"),
    ]


def test_the_answer_to_a_handshake_keeps_what_it_needs():
    answer = [
        (b"upgrade", b"websocket"),
        (b"connection", b"upgrade"),
        (b"Sec-WebSocket-Accept", b"a"),
        (b"Sec-WebSocket-Extensions", b"permessage-deflate"),
        (b"alt-svc", b"clear"),
    ]

    assert returning_headers(answer, websocket=True) == [
        (b"Sec-WebSocket-Accept", b"a"),
        (b"Connection", b"Upgrade"),
        (b"Upgrade", b"websocket"),
    ]
