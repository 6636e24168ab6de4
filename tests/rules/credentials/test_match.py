"""Matching of requests with routes."""

import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from custody.credentials import coverage
from custody.credentials.match import RouteTable
from custody.credentials.patterns import compile_path
from custody.credentials.target import MalformedTarget, parse_target
from custody.credentials.types import CredentialRoute, RouteFields
from tests.fixtures.each import each

HOSTS = ["a.com", "x.a.com", "*.a.com", "*.x.a.com", "x*.a.com", "*", "*.com", "a.com:8443", "*.a.com:8443", "*.*.com"]
PATHS = ["/*", "/", "/v1", "/v1/*", "/v1/a", "/v1/a/*", "/v*/a", "/v*/*", "/*/a/*", "/v1/"]

drawn_routes = st.lists(
    st.tuples(
        st.sampled_from(HOSTS),
        st.sampled_from(PATHS),
        st.sampled_from(["*", "GET", "POST"]),
        st.integers(-1, 1),
        st.booleans(),
        st.sampled_from([(), ("agent",), ("other",), ("other", "agent")]),
    ),
    max_size=12,
)
drawn_targets = st.builds(
    parse_target,
    st.sampled_from(["a.com", "x.a.com", "y.a.com", "z.x.a.com", "b.com", "a.com:8443", "x.a.com:8443", "com"]),
    st.sampled_from(["/", "/v1", "/v1/", "/v1/a", "/v1/a/b", "/v2/a", "/b", "/v1/b"]),
)

# Stars anywhere, over few letters: many patterns share their texts, and many match.
labels = st.text("ab*", min_size=1, max_size=4).filter(lambda label: "**" not in label)
globs = st.tuples(
    st.lists(labels, min_size=1, max_size=4).map(".".join),
    st.lists(labels, max_size=4).map(lambda parts: "/" + "/".join(parts)),
    st.sampled_from(["*", "GET"]),
    st.integers(-1, 1),
    st.booleans(),
    st.sampled_from([(), ("agent",), ("other",)]),
)
names = st.text("ab", min_size=1, max_size=5)
glob_targets = st.builds(
    parse_target,
    st.lists(names, min_size=1, max_size=5).map(".".join),
    st.lists(names, max_size=5).map(lambda parts: "/" + "/".join(parts)),
)


def route(position, host="a.com", path="/*", method="*", priority=0, enabled=True, *, agents=()):
    return CredentialRoute(
        id=f"00000000-0000-0000-0000-{position:012}",
        secret_id="00000000-0000-0000-0000-000000000000",
        fields=RouteFields(
            host_pattern=host,
            path_pattern=path,
            method=method,
            inject_as="header",
            inject_key="X-Key",
            priority=priority,
            enabled=enabled,
            agents=agents,
        ),
    )


def find(routes, host="a.com", path="/v1/a", method="GET"):
    match = RouteTable(routes).find(parse_target(host, path), method, "agent")
    return routes.index(match) if match else None


def reasons(routes, host="a.com", path="/v1/a", method="GET"):
    explained = RouteTable(routes).explain(parse_target(host, path), method, "agent")
    return [(routes.index(considered), reason) for considered, reason in explained]


def test_the_highest_priority_wins():
    assert find([route(0), route(1, priority=5), route(2, priority=-1)]) == 1


def test_of_equal_priority_the_first_given_wins():
    assert find([route(0, "*.com"), route(1), route(2, path="/v1/a")]) == 0
    assert find([route(0, path="/v1/a"), route(1), route(2, "*.com")]) == 0
    assert find([route(0, "b.com"), route(1, path="/v*/a"), route(2, path="/v1/a")]) == 1


def test_a_disabled_route_is_skipped():
    assert find([route(0, enabled=False), route(1)]) == 1
    assert find([route(0, enabled=False)]) is None


def test_a_route_that_names_agents_is_for_these_alone():
    assert find([route(0, agents=("other",)), route(1)]) == 1
    assert find([route(0, agents=("other", "agent")), route(1)]) == 0
    assert find([route(0), route(1, agents=("agent",))]) == 0
    assert find([route(0), route(1, agents=("agent",), priority=1)]) == 1
    assert not RouteTable([route(0, agents=("other",))]).knows_host("a.com", 443, "agent")


def test_host_port_path_and_method_must_all_match():
    assert find([route(0, "b.com")]) is None
    assert find([route(0, "a.com:8443")]) is None
    assert find([route(0, path="/v2/*")]) is None
    assert find([route(0, method="POST")]) is None
    assert find([route(0, method="POST")], method="POST") == 0
    assert find([route(0, method="GET")], method="get") is None


def test_the_path_is_matched_in_its_one_spelling():
    assert find([route(0, path="/v1/a")], path="/%761/%61") == 0
    assert find([route(0, path="/v1/a")], path="/v1/A") is None


@each("path", ["/admin%2Fa", "//admin/a", "/admin;x/a", "/admin%252Fa", "//x/admin/a"])
def test_no_spelling_of_a_path_leads_past_the_route_that_comes_first(path):
    wide, narrow = route(0), route(1, path="/admin/*", priority=1)

    assert find([wide], path=path) == 0
    with pytest.raises(MalformedTarget, match="several ways"):
        find([wide, narrow], path=path)


def test_a_pattern_with_an_escaped_slash_comes_first_in_every_reading():
    wide, narrow = route(0), route(1, path="/p/acme%2Ftools/*", priority=1)

    assert find([wide, narrow], path="/p/acme%2ftools/x") == 1
    assert find([wide, narrow], path="/p/acme/tools/x") == 0
    with pytest.raises(MalformedTarget):
        find([wide, narrow], path="/p/acme%252Ftools/x")


@each("path", ["/v1/a%2Fb", "/v1//a", "/v1%2Fa", "/v2%2Fa", "//v1/a", "/v1/a;b/c", "/v1/a%2F/keys"])
def test_a_route_is_found_only_if_it_covers_every_reading(path):
    for pattern in ("/*", "/v1/*", "/v1/*/keys", "/v*", "/*/a"):
        target = parse_target("a.com", path)
        covers = coverage.covers(compile_path(pattern), target)
        try:
            assert (find([route(0, path=pattern)], path=path) == 0) == covers
        except MalformedTarget:
            assert not covers
            assert compile_path(pattern).matches(target.matched)


def test_a_star_behind_an_escaped_slash_stays_within_its_segment():
    assert find([route(0, path="/g%2F*")], path="/g%2Fs") == 0
    assert find([route(0, path="/g%2F*")], path="/g%2Fs%2Fp/issues") is None
    assert find([route(0, path="/g%2F*/*")], path="/g%2Fs/issues") == 0


def test_a_route_whose_secret_is_lost_still_takes_the_request():
    table = RouteTable([route(0)])

    assert table.find(parse_target("a.com", "/"), "GET", "agent") is not None


def test_a_host_is_known_while_an_enabled_route_names_it():
    table = RouteTable([route(0, enabled=False), route(1, "b.com:8443"), route(2, "*.c.com"), route(3, "d*.e.com")])

    assert not table.knows_host("a.com", 443, "agent")
    assert table.knows_host("b.com", 8443, "agent")
    assert not table.knows_host("b.com", 443, "agent")
    assert table.knows_host("x.y.c.com", 443, "agent")
    assert not table.knows_host("c.com", 443, "agent")
    assert table.knows_host("d1.e.com", 443, "agent")


def test_a_route_that_cannot_be_read_is_named_and_skipped():
    broken = route(0, host="https://a.com", priority=9)
    table = RouteTable([broken, route(1, path="v1"), route(2)])

    assert table.broken == [broken.id, route(1).id]
    assert table.find(parse_target("a.com", "/"), "GET", "agent") == route(2)
    assert [reason for _, reason in table.explain(parse_target("a.com", "/"), "GET", "agent")] == [
        "broken",
        "broken",
        "matched",
    ]


def test_every_route_is_explained_in_the_order_of_asking():
    routes = [
        route(0, enabled=False),
        route(1, "b.com"),
        route(2, "a.com:8443"),
        route(3, path="/v2"),
        route(4, method="POST"),
        route(5),
        route(6, "*.com"),
        route(7, "b.com", priority=3),
        route(8, agents=("other",), priority=2),
    ]

    assert reasons(routes) == [
        (7, "host"),
        (8, "agent"),
        (0, "disabled"),
        (1, "host"),
        (2, "port"),
        (3, "path"),
        (4, "method"),
        (5, "matched"),
        (6, "lower_priority"),
    ]


def holds_what_asking_every_route_finds(drawn, target, method):
    routes = [route(position, *fields, agents=agents) for position, (*fields, agents) in enumerate(drawn)]
    table = RouteTable(routes)
    explained = table.explain(target, method, "agent")
    matching = [considered for considered, reason in explained if reason == "matched"]

    assert [table.find(target, method, "agent")] == (matching or [None])
    assert table.knows_host(target.host, target.port, "agent") == any(
        reason in ("path", "method", "matched", "lower_priority") for _, reason in explained
    )


@settings(max_examples=300)
@given(drawn_routes, drawn_targets, st.sampled_from(["GET", "POST", "PUT"]))
def test_the_index_finds_what_asking_every_route_finds(drawn, target, method):
    holds_what_asking_every_route_finds(drawn, target, method)


@settings(max_examples=500)
@given(st.lists(globs, min_size=1, max_size=30), glob_targets)
def test_the_index_finds_what_asking_every_glob_finds(drawn, target):
    holds_what_asking_every_route_finds(drawn, target, "GET")


@each(
    ("host", "path", "asked"),
    [
        ("api-{}-*.example.com", "/*", ("api-77-x.example.com", "/v1")),
        ("*-{}.example.com", "/*", ("x-77.example.com", "/v1")),
        ("x*-{}-*.example.com", "/*", ("xy-77-z.example.com", "/v1")),
        ("*.a*.t{}.example.com", "/*", ("x.ab.t77.example.com", "/v1")),
        ("a.com", "/v*/t{}/*", ("a.com", "/v1/t77/x/y")),
        ("a.com", "/v1/t{}-*", ("a.com", "/v1/t77-x")),
        ("a.com", "/v1/*-{}", ("a.com", "/v1/x-77")),
        ("a.com", "/v1/x*.{}.*/*", ("a.com", "/v1/xy.77.z")),
    ],
)
def test_of_ten_thousand_globs_a_request_looks_at_few(host, path, asked):
    table = RouteTable([route(number, host.format(number), path.format(number)) for number in range(10_000)])
    target = parse_target(*asked)
    calls = []

    sys.setprofile(lambda _frame, event, _argument: calls.append(event))
    match = table.find(target, "GET", "agent")
    sys.setprofile(None)

    assert match == route(77, host.format(77), path.format(77))
    assert len(calls) < 400


def test_ten_thousand_routes_are_no_slower_than_a_few():
    routes = [route(0, "*.first.com"), route(1, "late.com", priority=-1)]
    routes += [route(position, f"h{position}.example.com") for position in range(2, 3_000)]
    routes += [route(position, f"*.h{position}.example.com") for position in range(3_000, 6_000)]
    routes += [route(position, "late.com", f"/p{position}/*") for position in range(6_000, 8_000)]
    routes += [route(position, "late.com", f"/p{position}") for position in range(8_000, 10_000)]
    table = RouteTable(routes)
    targets = [
        parse_target("late.com", "/none"),
        parse_target("late.com", "/p7000/x/y"),
        parse_target("x.y.none.com", "/"),
        parse_target("a.b.h4000.example.com", "/"),
        parse_target("h2000.example.com", "/"),
    ]

    began = time.thread_time()
    answers = [table.find(target, "GET", "agent") for _ in range(200) for target in targets]

    assert answers[:5] == [routes[1], routes[7_000], None, routes[4_000], routes[2_000]]
    assert (time.thread_time() - began) / len(answers) < 0.000_2
