"""The target of a request: what is read, and what is refused because two readers could differ."""

from urllib.parse import quote, unquote_to_bytes

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from custody.credentials.target import MalformedTarget, Target, parse_target, parse_url
from custody.kit.errors import Invalid
from tests.fixtures.each import each

HOST = "api.example.com"

REFUSED_HOSTS = [
    "",
    ".",
    "example.com.",
    ".example.com",
    "a..b",
    "a b.com",
    "user@example.com",
    "user:pass@example.com",
    "example.com:",
    "example.com:0",
    "example.com:65536",
    "example.com:044",
    "example.com:+44",
    "example.com:a",
    "example.com:443:443",
    "example.com/",
    "https://example.com",
    "example.com?x",
    "example.com#x",
    "example.com\\x",
    "bücher.example",
    "xn--\u212a.com",
    "ex%61mple.com",
    "%2e",
    "ex*mple.com",
    "*",
    "a\x00.com",
    "a\n",
    "a;b",
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "017700000001",
    "0177.0.0.1",
    "1.2.3",
    "0x",
    "127.0.0.0x1",
    "[::1]",
    "[::1]:443",
    "::1",
    "::ffff:127.0.0.1",
    "example.1",
    "1.2.3.4:8080",
    "a" * 64 + ".com",
    ".".join(["abcdefgh"] * 29),
]

REFUSED_PATHS = {
    "": "slash",
    "v1": "slash",
    "*": "slash",
    "https://example.com/": "slash",
    "/a%5cb": "encoded backslash",
    "/a\\b": "backslash",
    "/a#b": "#",
    "/a/../b": "dot",
    "/a/./b": "dot",
    "/a/..": "dot",
    "/.": "dot",
    "/..": "dot",
    "/a/.": "dot",
    "/a/%2e%2e/b": "dot",
    "/a/%2E./b": "dot",
    "/a/.%2e": "dot",
    "/%2e": "dot",
    "/a/..;x/b": "dot",
    "/a/..;/b": "dot",
    "/a/%2e%2e;x=1": "dot",
    "/a/.;": "dot",
    "/a/..%3bx/b": "dot",
    "/...": "dot",
    "/a/...%2e/b": "dot",
    "/a/..%20/b": "dot",
    "/a/..%20": "dot",
    "/a/%20../b": "dot",
    "/a/.%20.": "dot",
    "/a/..%20;x/b": "dot",
    "/a/..%20.;x/b": "dot",
    "/a/%20/b": "dot",
    "/a/..%09/b": "control",
    "/a/.. ;x/b": "space",
    "/a/..%253b/b": "dot",
    "/a/..%253Bx/b": "dot",
    "/a/..%25253b": "dot",
    "/a/..%25%33%62/b": "dot",
    "/a/..%2520/b": "dot",
    "/a/..%2509/b": "dot",
    "/a/..%2500/b": "dot",
    "/a/..%3fx/b": "dot",
    "/a/..%2523": "dot",
    "/a/%252e%252e/b": "dot",
    "/a/%25252e": "dot",
    "/a/.%25%32%65/b": "dot",
    "/a/..%2fb": "dot",
    "/a%2f..%2Fb": "dot",
    "/a%2f..": "dot",
    "/a%2f%2e/b": "dot",
    "/a%252f..%252fb": "dot",
    "/a%252f%252e%252e": "dot",
    "/a//../b": "dot",
    "//..": "dot",
    "/a/.%ff./b": "dot",
    "/a/%c0.%c0./b": "dot",
    "/a%c0%2fb": "UTF-8",
    "/a%255Cb": "backslash",
    "/a%": "hexadecimal",
    "/a%2": "hexadecimal",
    "/a%zz": "hexadecimal",
    "/a%u002f": "hexadecimal",
    "/%%32e": "hexa",
    "/a%00": "control",
    "/a%0d%0aX: 1": "control",
    "/a%0D%0A": "control",
    "/a%7f": "control",
    "/a%1F": "control",
    "/a\x00": "control",
    "/a\r\n": "control",
    "/a\n": "control",
    "/a\x7f": "control",
    "/a b": "space",
    "/\u00e9": "ASCII",
    "/a%c0%ae": "UTF-8",
    "/a%c0%af": "UTF-8",
    "/%e0%80%ae": "UTF-8",
    "/" + "a" * 16384: "16 KiB",
}

segments = st.lists(
    st.text("abz09-._~!$&'()*+,=:@%|{}", min_size=1, max_size=8).filter(lambda text: text.strip(".") != ""), max_size=5
)


@each(
    ("text", "host", "port"),
    [
        ("api.example.com", "api.example.com", 443),
        ("API.Example.COM", "api.example.com", 443),
        ("localhost", "localhost", 443),
        ("localhost:9000", "localhost", 9000),
        ("a_b.internal:65535", "a_b.internal", 65535),
        ("xn--bcher-kva.example:1", "xn--bcher-kva.example", 1),
        ("1.2.3.example", "1.2.3.example", 443),
        ("0x7f.com", "0x7f.com", 443),
        ("a" * 63 + ".com", "a" * 63 + ".com", 443),
    ],
)
def test_a_host_is_read_in_lower_case_with_its_port(text, host, port):
    target = parse_target(text, "/")

    assert (target.host, target.port) == (host, port)


@each("text", REFUSED_HOSTS)
def test_a_host_that_is_no_plain_name_is_refused(text):
    with pytest.raises(MalformedTarget) as refused:
        parse_target(text, "/")

    assert refused.value.code == "malformed_target"
    assert isinstance(refused.value, Invalid)


@each("path", REFUSED_PATHS)
def test_a_path_that_two_programs_could_read_differently_is_refused(path):
    with pytest.raises(MalformedTarget) as refused:
        parse_target(HOST, path)

    assert REFUSED_PATHS[path] in refused.value.message


@each(
    ("raw", "matched"),
    [
        ("/", "/"),
        ("/v1/", "/v1/"),
        ("/v1/chat", "/v1/chat"),
        ("/%61%2D%5f%7e", "/a-_~"),
        ("/a%2eb", "/a.b"),
        ("/a%20b%c3%a9", "/a%20b%C3%A9"),
        ("/a%2a", "/a%2A"),
        ("/a%253D", "/a%253D"),
        ("/a;v=1/b", "/a;v=1/b"),
        ("/v1...v2", "/v1...v2"),
        ("/..foo/foo../.a.", "/..foo/foo../.a."),
        ("/..%20foo/..%20foo%20..", "/..%20foo/..%20foo%20.."),
        ("/a%20.%20b/%20b", "/a%20.%20b/%20b"),
        ("/v1..%3bx/%23general/%253D", "/v1..%3Bx/%23general/%253D"),
        ("/.well-known/x", "/.well-known/x"),
        ("/v1/x:delete", "/v1/x:delete"),
        ("/@acme%2ftools", "/@acme%2Ftools"),
        ("/contents/src%2Findex.ts", "/contents/src%2Findex.ts"),
        ("/a%252fb%252eb", "/a%252fb%252eb"),
        ("//v1/models//", "//v1/models//"),
        ("/a/;x/b", "/a/;x/b"),
        ("/%E4%F6/VOIL%C0.txt", "/%E4%F6/VOIL%C0.txt"),
        ("/%e2%80%a6/x", "/%E2%80%A6/x"),
    ],
)
def test_a_path_goes_out_as_it_came_and_is_matched_in_one_spelling(raw, matched):
    target = parse_target(HOST, raw)

    assert (target.path, target.matched, target.query) == (raw, matched, None)


@each(
    "text",
    [
        "\uff0e\uff0e",
        "\uff0e",
        ".\uff0e",
        "\u2024\u2024",
        "\u2025",
        "\ufe52\ufe52",
        "\u3002\u3002",
        "\uff61.",
        "\uff0e\uff0e;x",
        "\uff0e\uff0e\uff1bx",
        "..\uff1bx",
        "\uff0e\uff0e\uff1fx",
        "a\uff0fb",
        "a\uff3cb",
        "a\ufe68b",
        "a\u2215b",
        "a\u2044b",
        "a\u2216b",
        "\u2100",
        "\uff052e\uff052e",
        "\uff05\uff12\uff45\uff05\uff12\uff45",
        "x\uff05\uff12f",
    ],
)
def test_letters_whose_compatible_form_leads_elsewhere_are_refused(text):
    for path in (f"/v1/{quote(text)}/x", f"/v1/{quote(text)}"):
        with pytest.raises(MalformedTarget, match="some servers read as"):
            parse_target(HOST, path)


@each(
    "text",
    [
        "100\uff05",
        "\u4f60\u597d\uff1f\u771f\u7684\u3002",
        "\u00bd",
        "a\uff0eb",
        "\uff4c\uff4f",
        "wiki\u2026and",
        "e\u0301",
    ],
)
def test_other_letters_with_a_compatible_form_go_out_as_they_came(text):
    path = f"/v1/{quote(text)}/x"

    assert parse_target(HOST, path).path == path


@each(
    ("raw", "query"),
    [
        ("/a", None),
        ("/a?", ""),
        ("/a?b=%2f..//%0a%zz", "b=%2f..//%0a%zz"),
        ("/a?b?c", "b?c"),
        ("/?x=100%", "x=100%"),
        ("/?q=\u00e4\u4f60", "q=\u00e4\u4f60"),
    ],
)
def test_the_query_is_kept_apart_and_untouched(raw, query):
    assert parse_target(HOST, raw).query == query


@each("query", ["a b", "a\n", "a\x00", "\u0085", "\udc80", "a#b"])
def test_a_query_that_breaks_the_request_line_is_refused(query):
    with pytest.raises(MalformedTarget, match="query"):
        parse_target(HOST, f"/?{query}")


def test_a_long_query_does_not_count_as_path():
    assert parse_target(HOST, "/a?" + "b" * 20_000).query == "b" * 20_000


@each(
    ("url", "expected"),
    [
        ("https://Api.example.com/v1?a=1", Target("api.example.com", 443, "/v1", "a=1", "/v1")),
        ("HTTPS://api.example.com", Target("api.example.com", 443, "/", None, "/")),
        ("https://api.example.com?a", Target("api.example.com", 443, "/", "a", "/")),
        ("https://api.example.com:80/", Target("api.example.com", 80, "/", None, "/")),
        ("http://api.example.com/", Target("api.example.com", 443, "/", None, "/")),
        ("http://api.example.com:80/", Target("api.example.com", 443, "/", None, "/")),
        ("http://api.example.com:8080/", Target("api.example.com", 8080, "/", None, "/")),
    ],
)
def test_a_url_is_read_like_the_request_it_stands_for(url, expected):
    assert parse_url(url) == expected


@each(
    "url",
    [
        "",
        "api.example.com/v1",
        "ftp://api.example.com/",
        "https:/api.example.com/",
        "https:///v1",
        "//a.com/",
        "https://user@api.example.com/",
        "https://api.example.com\\@evil.com/",
        "https://api.example.com/#x",
        "https://api.example.com#@evil.com/",
        "https://1.1.1.1/",
        "https://[::1]/",
        " https://api.example.com/",
        "https://api.example.com/a b",
        "https://api.example.com/\n",
        "https://api.example.com\n/",
    ],
)
def test_a_url_that_is_not_plain_is_refused(url):
    with pytest.raises(MalformedTarget):
        parse_url(url)


def test_a_refusal_does_not_repeat_what_was_sent():
    with pytest.raises(MalformedTarget) as refused:
        parse_target(HOST, "/hush-hush/../x")

    assert "hush" not in str(refused.value)


@given(segments)
def test_the_spelling_is_its_own_spelling_and_means_the_same(parts):
    path = "/" + "/".join(parts)
    try:
        matched = parse_target(HOST, path).matched
    except MalformedTarget:
        assume(False)

    assert parse_target(HOST, matched).matched == matched
    assert unquote_to_bytes(matched) == unquote_to_bytes(path)


pieces = st.sampled_from(
    [
        "a",
        "b",
        "/",
        ".",
        "..",
        ";",
        "%2e",
        "%2F",
        "%5c",
        "%25",
        "2e",
        "2f",
        "%00",
        "%c3%a9",
        "%C0",
        "%AF",
        "%",
        "\\",
        "~",
        "%20",
        "%3b",
        "3B",
        "20",
    ]
)


@given(st.lists(pieces, max_size=7).map("".join))
def test_an_accepted_path_has_no_dot_segment_and_no_backslash_after_repeated_decoding(text):
    try:
        target = parse_target(HOST, f"/{text}")
    except MalformedTarget:
        return
    decoded = target.path.encode()

    for _ in range(4):
        decoded = unquote_to_bytes(decoded)
        names = [segment.partition(b";")[0] for segment in decoded.split(b"/")[1:]]
        assert b"\\" not in decoded
        assert all(name.strip(b". ") for name in names if name)
        for careless in (decoded.decode(errors="ignore"), decoded.decode("utf-8", "replace")):
            assert all(name not in (".", "..") for name in careless.split("/"))


@given(st.text(st.characters(max_codepoint=0x2FF), max_size=30))
def test_whatever_is_asked_for_is_answered(text):
    for host, path in ((text, "/"), (HOST, text), (HOST, f"/{text}")):
        try:
            target = parse_target(host, path)
        except MalformedTarget:
            continue
        assert parse_target(f"{target.host}:{target.port}", path) == target
