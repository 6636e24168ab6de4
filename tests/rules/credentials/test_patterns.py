"""Host and path patterns: what they match, and that no pattern makes matching slow."""

import re
import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from custody.credentials.coverage import covers
from custody.credentials.patterns import InvalidPattern, compile_host, compile_path
from custody.credentials.target import parse_target
from tests.fixtures.each import each

labels = st.text("ab*", min_size=1, max_size=6).filter(lambda text: "**" not in text)
host_patterns = st.lists(labels, min_size=1, max_size=4).map(".".join)
hosts = st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=5).map(".".join)
path_patterns = st.tuples(st.lists(labels, min_size=0, max_size=3), st.sampled_from(("", "/", "/*"))).map(
    lambda drawn: ("/" + "/".join(drawn[0]) + drawn[1]).replace("//", "/")
)
paths = st.tuples(st.lists(st.text("ab", min_size=1, max_size=3), max_size=4), st.booleans()).map(
    lambda drawn: ("/" + "/".join(drawn[0]) + ("/" if drawn[1] else "")).replace("//", "/")
)


def host_oracle(pattern, host):
    """The pattern as a regular expression, which is fine for patterns of a test."""
    first, _, rest = pattern.partition(".")
    start, text = (r"([^.]+\.)+", rest) if first == "*" and rest else ("", pattern)
    if pattern == "*":
        return True
    return re.fullmatch(start + re.escape(text).replace(r"\*", "[^.]*"), host) is not None


def path_oracle(pattern, path):
    literal, rest = (pattern[:-2], "(/.*)?") if pattern.endswith("/*") else (pattern, "")
    return re.fullmatch(re.escape(literal).replace(r"\*", "[^/]*") + rest, path) is not None


@each(
    ("pattern", "matching", "other"),
    [
        ("api.example.com", ["api.example.com"], ["example.com", "x.api.example.com", "api.example.com.evil.com"]),
        ("API.Example.com", ["api.example.com"], ["apiaexample.com"]),
        ("*.example.com", ["a.example.com", "a.b.example.com"], ["example.com", "aexample.com", "a.example.comx"]),
        ("api-*.example.com", ["api-1.example.com", "api-.example.com"], ["api-1.x.example.com", "api.example.com"]),
        ("api.*.example.com", ["api.eu.example.com"], ["api.example.com", "api.eu.west.example.com"]),
        ("*.eu-*.example.com", ["a.eu-1.example.com", "a.b.eu-1.example.com"], ["eu-1.example.com"]),
        ("*", ["localhost", "a.b.c"], []),
        ("*.com", ["a.com", "b.a.com"], ["com", "a.org"]),
        ("localhost", ["localhost"], ["localhost.evil.com", "a.localhost"]),
        ("*-a*b.example.com", ["x-a1b.example.com", "-ab.example.com"], ["x-b.example.com", "x-a1b.y.example.com"]),
    ],
)
def test_a_host_pattern_matches(pattern, matching, other):
    compiled = compile_host(pattern)

    assert [host for host in matching if not compiled.matches(host, 443)] == []
    assert [host for host in other if compiled.matches(host, 443)] == []


def test_a_host_pattern_is_for_one_port():
    assert compile_host("a.com:8443").matches("a.com", 8443)
    assert not compile_host("a.com:8443").matches("a.com", 443)
    assert not compile_host("a.com").matches("a.com", 8443)
    assert compile_host("*.a.com:8443").matches("x.a.com", 8443)
    assert compile_host("a.com:443").matches("a.com", 443)


@each(
    "pattern",
    [
        "",
        ".",
        "a..b",
        ".a.com",
        "a.com.",
        "https://a.com",
        "a.com/",
        "a.com/v1",
        "u@a.com",
        "a.com:",
        "a.com:0",
        "a.com:65536",
        "a.com:*",
        "127.0.0.01",
        "127.0.0.*",
        "10.*",
        "*.1",
        "0x7f.1",
        "[::0]",
        "::1",
        "2130706433",
        "a**.com",
        "**.a.com",
        "b\u00fccher.de",
        "a b.com",
        "a.com\n",
        "a?.com",
        "[ab].com",
        "a" * 64 + ".com",
    ],
)
def test_an_invalid_host_pattern_is_refused(pattern):
    with pytest.raises(InvalidPattern):
        compile_host(pattern)


@each(
    ("pattern", "matching", "other"),
    [
        ("/*", ["/", "/a", "/a/", "/a/b"], []),
        ("/v1/*", ["/v1", "/v1/", "/v1/a", "/v1/a/b/"], ["/", "/v10", "/v", "/V1/a", "/x/v1/a"]),
        ("/v1", ["/v1"], ["/v1/", "/v1/a", "/v", "/v11"]),
        ("/v1/", ["/v1/"], ["/v1", "/v1/a"]),
        ("/", ["/"], ["/a"]),
        ("/v1/*/keys", ["/v1/a/keys"], ["/v1/keys", "/v1/a/b/keys", "/v1/a/keys/", "/v1/a/keysx"]),
        ("/v*/chat", ["/v/chat", "/v12/chat"], ["/v1/x/chat", "/w1/chat"]),
        ("/v*/x/*", ["/v1/x", "/v1/x/", "/v1/x/a/b"], ["/v1/xy", "/v1/y", "/v1"]),
        ("/a*b*c", ["/abc", "/axxbyyc", "/abcbc"], ["/acb", "/ab", "/a/b/c"]),
        ("/*a", ["/a", "/ba"], ["/b", "/a/a"]),
        ("/a*b*b", ["/abb", "/axbxb", "/abbb"], ["/ab", "/aab", "/bab"]),
        ("/ab*ba", ["/abba", "/abxba"], ["/aba", "/ab", "/ba"]),
        ("/%61*", ["/a", "/ab"], ["/b"]),
        ("/a%2a", ["/a%2A"], ["/a*", "/ab"]),
        ("/a%2fb/*", ["/a%2Fb", "/a%2Fb/c"], ["/a/b", "/a/b/c", "/a%252Fb"]),
    ],
)
def test_a_path_pattern_matches(pattern, matching, other):
    compiled = compile_path(pattern)

    assert [path for path in matching if not compiled.matches(path)] == []
    assert [path for path in other if compiled.matches(path)] == []


@each(
    ("pattern", "covered", "other"),
    [
        ("/*", ["/a%2Fb", "//a", "/a//b", "/a;x/b", "/a%252Fb", "///", "/%2F"], []),
        ("/public/*", ["/public/a%2Fb", "/public//a"], ["/public%2Fa", "//public/a", "/public;x/a"]),
        ("/v1/*/keys", ["/v1/a;b/keys"], ["/v1/a%2Fb/keys", "/v1//keys", "/v1/a%252Fb/keys", "/v1/a%2F/keys"]),
        ("/v1/*", ["/v1/a%2Fb", "/v1/a%252Fb", "/v1/a//b"], ["/v1%2Fa", "/v1%252Fa"]),
        ("/v1/*/*/keys", ["/v1/a/b/keys"], ["/v1/a%2Fb/keys"]),
        ("/v1/*%2F*/keys", ["/v1/a%2Fb/keys"], ["/v1/a%2Fb%2Fc/keys", "/v1/a/b/keys", "/v1/ab/keys"]),
        ("/p/acme%2Ftools/*", ["/p/acme%2Ftools/x", "/p/acme%2Ftools/x%2Fy"], ["/p/acme/tools/x", "/p/acme%2Ftoolsx"]),
        ("/*/x", ["/a/x"], ["//x", "//a/x", "/a%2Fx"]),
        ("/a;v=1/*", ["/a;v=1/b"], ["/a/b", "/a;v=2/b"]),
        ("/v1/x*", ["/v1/xy", "/v1/x;y"], ["/v1/x%2Fy", "/v1/x;y%2Fz/q"]),
    ],
)
def test_a_path_pattern_covers_a_path_in_all_its_readings_or_not_at_all(pattern, covered, other):
    compiled = compile_path(pattern)

    assert [path for path in covered if not covers(compiled, parse_target("a.com", path))] == []
    assert [path for path in other if covers(compiled, parse_target("a.com", path))] == []


@each(
    "pattern",
    [
        "",
        "*",
        "v1/*",
        "/v1/**",
        "/a//b",
        "/a/../b",
        "/a/%2e%2e/*",
        "/a?b=1",
        "/a#b",
        "/a%5cb",
        "/a/;b",
        "/a%2f..",
        "/a\\b",
        "/a b",
        "/a%",
    ],
)
def test_an_invalid_path_pattern_is_refused(pattern):
    with pytest.raises(InvalidPattern):
        compile_path(pattern)


@given(host_patterns, hosts)
def test_a_host_pattern_matches_what_it_says(pattern, host):
    assert compile_host(pattern).matches(host, 443) == host_oracle(pattern, host)


@given(path_patterns, paths)
def test_a_path_pattern_matches_what_it_says(pattern, path):
    assume("**" not in pattern)
    assert compile_path(pattern).matches(path) == path_oracle(pattern, path)


@each("path", ["/" + "a" * 16_000 + "b", "/" + "ab" * 8_000 + "/b", "/a" * 8_000])
def test_a_pattern_with_a_thousand_stars_is_matched_at_once(path):
    patterns = [compile_path("/" + "*a" * 1_000), compile_path("/" + "*ab" * 1_000), compile_path("/*a" * 500 + "b")]
    began = time.thread_time()

    matched = [pattern.matches(path) for pattern in patterns for _ in range(10)]

    assert not any(matched)
    assert time.thread_time() - began < 1


def test_a_host_pattern_full_of_stars_is_matched_at_once():
    pattern = compile_host(".".join(["*a" * 31] * 4))
    host = ".".join(["a" * 62 + "b"] + ["a" * 63] * 2 + ["a" * 61])
    began = time.thread_time()

    assert not any(pattern.matches(host, 443) for _ in range(1_000))
    assert time.thread_time() - began < 1
