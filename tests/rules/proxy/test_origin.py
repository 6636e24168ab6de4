"""References of an upstream in the gateway form: its own place, and other hosts; its cookies go to that place."""

from urllib.parse import urljoin, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.credentials.spelling import Misspelled, normal_path
from custody.credentials.target import parse_target
from proxy_addon.origin import MAX_LINKS, Origin, confine, cookie, origin_of, reference
from tests.fixtures.each import each

PATH = "/v1/chat/x?a=b"


def origin(path=PATH, prefix="/up", host="api.example.com", names=((b"Host", b"proxy.corp:8080"),)):
    return origin_of(prefix, parse_target(host, path), list(names))


def refer(text, where=None):
    found = reference(text.encode("latin-1"), where or origin())
    return None if found is None else found.decode()


@each(
    ("said", "becomes"),
    [
        ("/v1/next", "/up/v1/next"),
        ("/", "/up/"),
        ("/a?b=/c/../d#e", "/up/a?b=/c/../d#e"),
        ("next", "/up/v1/chat/next"),
        ("./next", "/up/v1/chat/next"),
        ("../next", "/up/v1/next"),
        ("../../next/", "/up/next/"),
        ("..", "/up/v1/"),
        (".", "/up/v1/chat/"),
        ("?page=2", "/up/v1/chat/x?page=2"),
        ("?", "/up/v1/chat/x?"),
        ("#end", "/up/v1/chat/x?a=b#end"),
        ("", "/up/v1/chat/x?a=b"),
        ("/up/x", "/up/up/x"),
        ("/a/../b", "/up/b"),
        ("/a b/\xc3\xa9", "/up/a%20b/%C3%A9"),
        ("/a%2fb//c", "/up/a%2fb//c"),
        ("/a/..//up2", "/up//up2"),
        # RFC 3986, 5.4.2: above the root is the root.
        ("../../../up2/x", "/up/up2/x"),
        ("/../up2/x", "/up/up2/x"),
        ("/v1/../../up2/x", "/up/up2/x"),
        ("../../..", "/up/"),
        ("/..//up2", "/up//up2"),
        ("https://api.example.com/v1", "/up/v1"),
        ("https://API.example.com:443/v1?q", "/up/v1?q"),
        ("http://api.example.com/v1", "/up/v1"),
        ("http://api.example.com:80", "/up/"),
        ("//api.example.com?q", "/up/?q"),
        ("HTTPS://api.example.com#x", "/up/#x"),
    ],
)
def test_a_reference_to_the_upstreams_own_host_lies_beneath_its_prefix(said, becomes):
    assert refer(said) == becomes


def test_an_alias_alone_is_a_folder():
    where = origin("/")

    assert (refer("next", where), refer("?a", where)) == ("/up/next", "/up/?a")


@each(
    "said",
    [
        "https://other.example/x?y=z",
        "http://other.example",
        "https://other.example:8443/a//b/../c#d",
        "https://api.example.com:8443/",
        "https://codeload.example.com/%zz?\\",
    ],
)
def test_a_reference_to_another_host_stays(said):
    assert refer(said) == said


def test_a_reference_to_another_host_without_a_scheme_gets_the_upstreams():
    assert refer("//cdn.example/x") == "https://cdn.example/x"


@each(
    "said",
    [
        # The proxy by its names.
        "http://proxy.corp:8080/up2/x",
        "https://proxy.corp/up2/x",
        "//PROXY.corp/up2",
        "http://proxy.corp:1/",
        "http://localhost:8080/up2/x",
        "//localhost/",
        "http://a.localhost/",
        "http://127.0.0.1:8080/up2/x",
        "//127.0.0.1:8080/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://[::1]:8080/",
        "http://0.0.0.0:8080/",
        "http://10.0.0.7/",
        "http://localhost.:8080/",
        "http://user@localhost/",
        "https://api.example.com@localhost/",
        "http://%6cocalhost/",
        "http://\xef\xbd\x8cocalhost/",
        # What some readers take for one of these, or for a path.
        "http:/up2/x",
        "http:up2/x",
        "https:/up2/x",
        "http:///up2",
        "///up2/x",
        "////up2",
        "\\\\up2\\x",
        "/\\up2",
        "\\up2",
        "http:\\\\localhost\\up2",
        "https://other.example\\@localhost/",
        "https://other.example:8080\\up2",
        " /up2/x\t",
        "\t/up2/x",
        "/\t/localhost/",
        "ht\ttp://localhost/",
        "\x0c/up2",
        "\n/up2",
        "/up2\x00",
        "\x7f/up2",
        "javascript:alert(1)",
        "ftp://localhost/",
        "x:../../up2",
        "up2:/../../up2",
        "data:,x",
        # Out of the prefix.
        "/%2e%2e/up2",
        "/%2E./up2",
        "..%2f..%2f..%2fup2",
        "/..;/up2",
        "/.%00./up2",
        "/%252e%252e/up2",
        "/..%5cup2",
        "..\\..\\..\\up2",
        "/\xef\xbc\x8e\xef\xbc\x8e/up2",
        "/%EF%BC%8E%EF%BC%8E/up2",
        "//",
        "/%zz",
        "/" + "a" * 20_000,
    ],
)
def test_a_reference_to_the_proxy_or_out_of_the_prefix_is_removed(said):
    assert refer(said) is None


@each(
    "names",
    [
        ((b"host", b"Proxy.Corp."),),
        ((b"HOST", b"10.0.0.5:8080"), (b"X-Forwarded-Host", b"a.corp, proxy.corp:443")),
    ],
)
def test_the_proxys_names_are_those_that_the_request_was_sent_to(names):
    where = origin(names=names)

    assert refer("https://proxy.corp/up2/x", where) is None
    assert refer("https://other.corp/up2/x", where) == "https://other.corp/up2/x"


def test_beneath_a_host_named_in_the_path_it_is_the_same():
    where = origin("/v1/x", "/proxy/localhost:8443", "localhost:8443")

    assert refer("/v1/y", where) == "/proxy/localhost:8443/v1/y"
    assert refer("https://localhost:8443/v1/y", where) == "/proxy/localhost:8443/v1/y"
    assert refer("https://localhost:8444/v1/y", where) is None


pieces = st.sampled_from(
    [
        "/",
        "//",
        "..",
        ".",
        "up2",
        "x",
        "\\",
        "%2e",
        "%2f",
        "%5c",
        ";",
        ":",
        "http:",
        "https:",
        "@",
        "?",
        "#",
        " ",
        "\t",
        "v1",
        "localhost",
        "127.0.0.1",
        "proxy.corp:8080",
        "api.example.com",
        "\xef\xbc\x8e",
        "%EF%BC%8E",
        "%ef%bc%8f",
    ]
)


@given(st.lists(pieces, max_size=8).map("".join))
def test_whatever_an_upstream_says_no_client_lands_beneath_another_prefix(said):
    for absolute in (False, True):
        found = reference(said.encode("latin-1"), origin(), absolute=absolute)
        if found is None:
            return
        url = urlsplit(urljoin("http://proxy.corp:8080/up/v1/chat/x", found.decode()))

        if url.hostname == "proxy.corp":
            assert url.path.startswith("/up/")
            assert normal_path(url.path)
            assert not absolute or found.startswith(b"http://proxy.corp:8080/up/")
        else:
            assert url.hostname not in ("localhost", "127.0.0.1")
            assert found.startswith((b"http://", b"https://", b"HTTP"))


def keep(*headers, where=None, status=302):
    return confine(list(headers), where or origin(), lambda text: text, status)


SITE = b"http://proxy.corp:8080"


@each("name", [b"content-LOCATION", b"Operation-Location", b"Azure-AsyncOperation", b"X-Status-Url"])
def test_headers_that_hold_a_reference_are_rewritten_or_removed(name):
    assert keep((b"A", b"/x"), (name, b"/x")) == ([(b"A", b"/x"), (name, SITE + b"/up/x")], [])
    assert keep((name, b"//localhost/x"), (b"A", b"b")) == ([(b"A", b"b")], [name.lower().decode()])


@each(("status", "site"), [(301, b""), (308, b""), (200, SITE), (201, SITE), (202, SITE)])
def test_a_location_is_relative_where_clients_resolve_it(status, site):
    assert keep((b"Location", b"x"), status=status) == ([(b"Location", site + b"/up/v1/chat/x")], [])


@each("said", [b"Berlin", b"", b"FRA53-C1", b"ftp:x", b"see https://api.example.com/"])
def test_a_header_that_is_only_named_like_a_reference_stays(said):
    assert keep((b"X-Edge-Location", said), (b"X-Edge-Location", said))[1] == []
    assert keep((b"X-Edge-Location", said))[0] == [(b"X-Edge-Location", said)]


@each(
    ("said", "stays"),
    [
        (b'Bearer realm="https://auth.example/token",service="api.example.com"', True),
        (b'Basic realm="a // b"', True),
        (b"Negotiate", True),
        (b'Bearer realm="http://proxy.corp:8080/up2/x"', False),
        (b'Bearer realm="https://auth.example/", resource_metadata="//LOCALHOST/up2"', False),
        (b"Bearer realm=http://127.0.0.1:8080/up2", False),
    ],
)
def test_a_challenge_leads_to_no_other_upstream(said, stays):
    assert keep((b"WWW-Authenticate", said)) == (
        ([(b"WWW-Authenticate", said)], []) if stays else ([], ["www-authenticate"])
    )


@each(
    ("names", "public", "site"),
    [
        (((b"Host", b"a.corp"),), "", b"http://a.corp"),
        (((b"Host", b"[::1]:8080"),), "", b"http://[::1]:8080"),
        (((b"Host", b"a.corp"), (b"X-Forwarded-Proto", b"HTTPS")), "", b"https://a.corp"),
        (
            ((b"Host", b"a"), (b"x-forwarded-host", b"b.corp:1, c"), (b"x-forwarded-proto", b"https,http")),
            "",
            b"https://b.corp:1",
        ),
        (((b"Host", b"a.corp"),), "https://gate.corp", b"https://gate.corp"),
        # What is no address of a site: then the reference stays relative, as in a redirect.
        ((), "", b""),
        (((b"Host", b"a/b"),), "", b""),
        (((b"Host", b"a>b"),), "", b""),
        (((b"Host", b"u@a"),), "", b""),
        (((b"Host", b"a"), (b"X-Forwarded-Proto", b"javascript")), "", b""),
    ],
)
def test_the_gateways_address_is_the_operators_or_the_requests(names, public, site):
    where = origin_of("/up", parse_target("api.example.com", PATH), list(names), public)

    assert keep((b"Content-Location", b"/x"), where=where) == ([(b"Content-Location", site + b"/up/x")], [])
    assert not public or keep((b"Content-Location", b"https://gate.corp/up2"), where=where)[0] == []


def test_of_two_locations_neither_is_kept():
    assert keep((b"Location", b"/a"), (b"location", b"/b")) == ([], ["location", "location"])


@each(
    ("said", "becomes"),
    [
        (
            b'</v1?page=2>; rel="next", <https://api.example.com/v1?page=9>; rel=last',
            b'<http://proxy.corp:8080/up/v1?page=2>; rel="next", <http://proxy.corp:8080/up/v1?page=9>; rel=last',
        ),
        (b"<https://docs.example/>;rel=help", b"<https://docs.example/>;rel=help"),
        (b"</a>, <http://localhost/b>", None),
        (b"</a", None),
        (b"/a", None),
        (b'</a>; title="<"', None),
        (b"", None),
        (b"</a>" * (MAX_LINKS + 1), None),
    ],
)
def test_links_are_rewritten_or_removed_as_a_whole(said, becomes):
    assert keep((b"Link", said)) == (([(b"Link", becomes)], []) if becomes is not None else ([], ["link"]))


def test_links_cannot_make_a_head_grow_without_end():
    long = origin("/" + "a" * 16_000 + "/b")

    assert keep((b"Link", b"<x>," * 10), where=long) == ([], ["link"])


@each("name", [b"Refresh", b"Set-Cookie2", b"Clear-Site-Data", b"Strict-Transport-Security", b"Service-Worker-Allowed"])
def test_headers_that_apply_to_a_whole_host_are_removed(name):
    assert keep((name, b"5; url=/x")) == ([], [name.lower().decode()])


def test_rewritten_values_are_masked_again():
    headers = [(b"Location", b"/sec/x/../ret"), (b"X-Other", b"sec/ret")]

    found, _ = confine(headers, origin(), lambda text: text.replace(b"sec/ret", b"*******"), 302)

    assert found == [(b"Location", b"/up/*******"), (b"X-Other", b"sec/ret")]


@each(
    ("said", "becomes"),
    [
        ("a=1", "a=1; Path=/up/v1/chat"),
        ("a=1; Path=/", "a=1; Path=/up/"),
        ("a=1;path=/v1", "a=1; Path=/up/v1"),
        ("a=1; Path=", "a=1; Path=/up/v1/chat"),
        ("a=1; Path=v1", "a=1; Path=/up/v1/chat"),
        ("a=1; Domain=proxy.corp; Path=/; domain=.corp", "a=1; Path=/up/"),
        ("a=1; Path=/up2; Path=/v1", "a=1; Path=/up/v1"),
        ("a=1; PATH =/up2", "a=1; Path=/up/up2"),
        ("a=1; Path=/../up2", "a=1; Path=/up/"),
        ("a=1; Path=/..%2fup2", "a=1; Path=/up/"),
        ('a=1; Path="/up2"', "a=1; Path=/up/v1/chat"),
        ("a=1; Path=/a,b", "a=1; Path=/up/"),
        ("a=1; Path=/a=b", "a=1; Path=/up/"),
        ("a=1; Path=/\xc3\xa9", "a=1; Path=/up/"),
        (
            "sid=x==; Expires=Wed, 21 Oct 2026 07:28:00 GMT; Max-Age=-1; Secure; HttpOnly; SameSite=Lax",
            "sid=x==; Path=/up/v1/chat; Expires=Wed, 21 Oct 2026 07:28:00 GMT; Max-Age=-1; "
            "Secure; HttpOnly; SameSite=Lax",
        ),
        ("__Host-a=1; Path=/; Secure", "__Host-a=1; Path=/up/; Secure"),
        ('a=1; Foo=x, evil=2; Expires=x"; Max-Age=1, b=2; \xa0Path=/', "a=1; Path=/up/v1/chat"),
        ("", "; Path=/up/v1/chat"),
    ],
)
def test_a_cookie_goes_to_its_own_upstream(said, becomes):
    assert cookie(said.encode("latin-1"), origin()).decode("latin-1") == becomes


def test_a_cookie_of_an_alias_alone_goes_to_all_of_it():
    assert cookie(b"a=1", origin("/")) == cookie(b"a=1", origin("/x")) == b"a=1; Path=/up/"


def test_an_origin_says_no_more_than_it_must():
    assert origin() == Origin(
        "/up", parse_target("api.example.com", PATH), frozenset({"proxy.corp", "localhost"}), SITE.decode()
    )
    with pytest.raises(Misspelled):
        normal_path("/..")
