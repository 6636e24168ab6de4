"""No server reads a path that a route covers as one that the route does not cover."""

import random
import re
from collections import Counter
from collections.abc import Iterator
from urllib.parse import unquote

import pytest

from custody.credentials.coverage import covers
from custody.credentials.patterns import compile_path
from custody.credentials.target import MalformedTarget, Target, parse_target
from tests.outside.path_readers import Reader, path_readers

PATTERNS = ("/public/*", "/v1/*/keys", "/v1/*", "/*/keys", "/v1/*/*/keys", "/v1/a*", "/v1/keys", "/public/*/a*/*")
PIECES = (
    "/",
    "/",
    "//",
    "v1",
    "public",
    "keys",
    "a",
    "admin",
    "%2F",
    "%2f",
    "%252F",
    "..",
    "..%2f",
    "%2e%2e",
    "%252e%252e%252f",
    ".",
    ";x",
    "%3B",
    "%20",
    "%C3%A9",
    "%E4",
    "%25",
    "%c0%af",
    "%EF%BC%8F",
)
KNOWN = (
    "/public%2f..%2fadmin",
    "/public/..%2fadmin",
    "/public/%2e%2e%2fadmin",
    "/public/%252e%252e/admin",
    "/public%2Fadmin",
    "//public/admin",
    "//admin/public/a",
    "/v1/a%2Fb/keys",
    "/v1//keys",
    "/v1/a%2F/keys",
    "/v1/a%252Fb/keys",
    "//keys",
    "/v1/%2Fkeys",
    "/v1/a%2Fkeys",
    "/public/a%2Fb",
    "/public//a//b",
)


@pytest.fixture(scope="module")
def readers() -> Iterator[list[Reader]]:
    with path_readers() as running:
        yield running


def targets() -> Iterator[Target]:
    drawn = random.Random(20)
    made = ["/" + "".join(drawn.choices(PIECES, k=drawn.randint(2, 7))) for _ in range(2500)]
    starts = ["/v1/", "/public/", "/v1/a", "//v1/", "/v1%2F"]
    made += [drawn.choice(starts) + "".join(drawn.choices(PIECES, k=drawn.randint(1, 5))) for _ in range(1500)]
    for path in (*KNOWN, *made):
        try:
            yield parse_target("a.com", path)
        except MalformedTarget:
            continue


def is_for(pattern: str, path: str) -> bool:
    """The pattern as a regular expression over a path without escapes."""
    literal, rest = (pattern[:-2], "(/.*)?") if pattern.endswith("/*") else (pattern, "")
    return re.fullmatch(re.escape(literal).replace(r"\*", "[^/]*") + rest, path, re.DOTALL) is not None


def test_no_server_reads_a_covered_path_as_one_outside_of_the_route(readers: list[Reader]) -> None:
    patterns = {pattern: compile_path(pattern) for pattern in PATTERNS}
    covered, led_astray, seen = Counter[str](), Counter[str](), set[str]()
    for target in targets():
        matching = [text for text, pattern in patterns.items() if pattern.matches(target.matched)]
        if not matching or target.path in seen:
            continue
        seen.add(target.path)
        for reader in readers:
            for read in reader.read(target.path):
                for text in matching:
                    inside = is_for(text, read)
                    if covers(patterns[text], target):
                        covered[reader.name] += 1
                        assert inside, f"{reader.name} reads {target.path} as {read}, which {text} does not cover"
                    elif not inside:
                        led_astray[reader.name] += 1

    # Each was asked; and of matching as written alone, each would have been led out of a route.
    assert min(covered[reader.name] for reader in readers) > 100
    assert {reader.name for reader in readers} == set(led_astray), led_astray


def test_the_servers_differ_about_what_is_refused_here(readers: list[Reader]) -> None:
    read = {reader.name: reader.read("/public/..%2fadmin") + reader.read("/a%252fb") for reader in readers}

    assert "/admin" in read["nginx, merged"]
    assert "/public/../admin" in read["werkzeug"]
    assert "/a/b" in read["node"]
    assert unquote("/a%252fb") in read["aiohttp"]
