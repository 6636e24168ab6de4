"""Rules for a credential route."""

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from custody.credentials.injection_keys import is_restricted
from custody.credentials.rules import InvalidRoute, ValueNotForHeader, check, value_fits
from custody.credentials.types import RouteFields
from tests.fixtures.each import each

GOOD = RouteFields(host_pattern="api.example.com", inject_as="header", inject_key="Authorization")


def fields(**changes):
    return msgspec.structs.replace(GOOD, **changes)


def check_route(given_, *, allow_broad=False, allow_cookies=False):
    return check(given_, allow_broad=allow_broad, allow_cookies=allow_cookies)


def refusal_of(given_, **flags):
    with pytest.raises(InvalidRoute) as problem:
        check_route(given_, **flags)
    assert problem.value.code == "invalid_route"
    return problem.value


def test_a_good_route_is_stored_as_it_is():
    assert check_route(GOOD) == GOOD


def test_a_route_is_stored_in_one_spelling():
    stored = check_route(fields(host_pattern="*.API.Example.com:8443", path_pattern="/%76%31/a%2a/*", method="post"))

    assert (stored.host_pattern, stored.path_pattern, stored.method) == ("*.api.example.com:8443", "/v1/a%2A/*", "POST")
    assert check_route(stored) == stored


@each(
    ("name", "changes"),
    [
        ("hostPattern", {"host_pattern": ""}),
        ("hostPattern", {"host_pattern": "https://api.example.com"}),
        ("hostPattern", {"host_pattern": "10.0.0.1"}),
        ("pathPattern", {"path_pattern": ""}),
        ("pathPattern", {"path_pattern": "/a/../b"}),
        ("pathPattern", {"path_pattern": "/a?b"}),
        ("method", {"method": "FETCH"}),
        ("method", {"method": ""}),
        ("method", {"method": "CONNECT"}),
        ("injectKey", {"inject_key": ""}),
        ("injectKey", {"inject_key": "X Key"}),
        ("injectKey", {"inject_key": "X-Key:"}),
        ("injectKey", {"inject_key": "X-Key\n"}),
        ("injectKey", {"inject_key": "Host"}),
        ("injectKey", {"inject_key": "Cookie"}),
        ("injectKey", {"inject_as": "query", "inject_key": ""}),
        ("injectKey", {"inject_as": "query", "inject_key": "key\n"}),
        ("injectKey", {"inject_as": "body", "inject_key": "schl\u00fcssel"}),
        ("injectFormat", {"inject_format": "Bearer"}),
        ("injectFormat", {"inject_format": "{value}{value}"}),
        ("injectFormat", {"inject_format": "Bearer {value}\r\nX: 1"}),
        ("injectFormat", {"inject_format": "{value}\n"}),
    ],
)
def test_a_bad_field_is_named_with_what_is_wrong(name, changes):
    problem = refusal_of(fields(**changes))

    assert problem.context["fields"] == [name]
    assert problem.message.startswith(f"{name}: ")


def test_all_bad_fields_are_named_at_once():
    problem = refusal_of(fields(host_pattern="a..b", path_pattern="x", inject_format="none"))

    assert problem.context["fields"] == ["hostPattern", "pathPattern", "injectFormat"]


@each("pattern", ["*", "*.com", "example.*", "*.*", "api-*.com", "local*", "*:8443", "a.b*.com:8443"])
def test_a_broad_host_pattern_needs_the_operators_leave(pattern):
    refusal_of(fields(host_pattern=pattern))

    assert check_route(fields(host_pattern=pattern), allow_broad=True).host_pattern == pattern


@each("pattern", ["localhost", "*.example.com", "a.*.example.com", "a-*.example.com", "*.a.b.c"])
def test_a_narrow_host_pattern_needs_no_leave(pattern):
    assert check_route(fields(host_pattern=pattern)).host_pattern == pattern


def test_a_host_outside_ascii_is_told_how_to_write_it():
    assert "write it in its ASCII form (xn--...)" in refusal_of(fields(host_pattern="b\u00fccher.example")).message


@each("key", ["Cookie", "cookie", "Set-Cookie", "SET-COOKIE"])
def test_cookies_need_the_operators_leave(key):
    refusal_of(fields(inject_key=key))

    assert check_route(fields(inject_key=key), allow_cookies=True).inject_key == key


@each(
    "key",
    [
        "Connection",
        "keep-alive",
        "Proxy-Authenticate",
        "proxy-authorization",
        "Proxy-Connection",
        "TE",
        "Trailer",
        "trailers",
        "Transfer-Encoding",
        "upgrade",
        "CONTENT-LENGTH",
        "Content-Encoding",
        "accept-encoding",
        "Host",
        "Expect",
        "HTTP2-Settings",
        "Sec-WebSocket-Key",
        "sec-websocket-protocol",
        "X-Service-Key",
        "x-service-x",
        ":authority",
    ],
)
def test_headers_that_frame_or_steer_a_request_are_restricted_with_every_leave(key):
    assert is_restricted(key, allow_cookies=True)


@each("key", ["Authorization", "X-Api-Key", "x-goog-api-key", "Private-Token", "X-Servicekey", "Te-X"])
def test_ordinary_headers_are_not_restricted(key):
    assert not is_restricted(key, allow_cookies=False)


@each("inject_as", ["query", "body"])
def test_only_headers_are_restricted(inject_as):
    assert check_route(fields(inject_as=inject_as, inject_key="host")).inject_key == "host"


@each("value", ["a\r\nX: 1", "a\n", "\ra", "a\x00b", "a\x1fb", "a\x7f", "\ta", "a\t"])
def test_a_value_that_would_leave_its_header_does_not_fit_it(value):
    with pytest.raises(ValueNotForHeader) as problem:
        value_fits(GOOD, value)

    assert value not in str(problem.value)
    value_fits(fields(inject_as="query"), value)
    value_fits(fields(inject_as="body"), value)


@each("value", ["sk-123", "a\tb", "p\u00e4ss", "{value}", "a b"])
def test_a_value_of_one_line_fits_a_header(value):
    value_fits(GOOD, value)


@given(
    st.from_regex(r"(\*\.)?[aZ_*-]{1,4}\.[a-zA-Z]{1,3}(:[1-9][0-9]{0,4})?", fullmatch=True),
    st.from_regex(r"(/[aZ*.~-]{1,3}|/%[0-9A-Fa-f]{2}x){0,3}(/|/\*)", fullmatch=True),
    st.sampled_from(["*", "GET", "get", "Patch"]),
)
def test_a_route_is_stored_in_a_spelling_that_is_stored_again_as_itself(host, path, method):
    try:
        stored = check_route(fields(host_pattern=host, path_pattern=path, method=method), allow_broad=True)
    except InvalidRoute:
        assume(False)

    assert check_route(stored, allow_broad=True) == stored
    assert msgspec.convert(msgspec.to_builtins(stored), RouteFields) == stored


@given(*[st.text(max_size=20)] * 5)
def test_whatever_is_sent_is_answered(host, path, method, key, form):
    sent = fields(host_pattern=host, path_pattern=f"/{path}", method=method, inject_key=key, inject_format=form)

    assert set(refusal_of(sent).context["fields"]) <= {
        "hostPattern",
        "pathPattern",
        "method",
        "injectKey",
        "injectFormat",
    }
