"""Credential routes: what they may say, and whose they are."""

import uuid
from collections.abc import Iterator
from typing import Any

import asyncpg
import httpx
import pytest

from ops import places
from tests.fixtures.callers import Agent, Tenant, new_tenant
from tests.fixtures.deployments import database_apart, deploy, partner_of
from tests.fixtures.server import Service
from tests.routes.secrets.makers import HOST, keep_route, keep_secret, route_fields

ROUTES = "/secrets/routes"
# Of a million tokens, in millionths of a dollar.
PRICES = {"form": "openai", "input": 2_500_000, "output": 10_000_000, "cached": 1_250_000, "cacheWrite": None} | {
    "inputAt": "",
    "outputAt": "",
}


def path(route: dict[str, Any]) -> str:
    return f"{ROUTES}/{route['id']}"


def refusal(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["data"]["code"]


def test_a_route_is_made_with_the_defaults_of_the_document(tenant: Tenant) -> None:
    secret = keep_secret(tenant)
    sent = {"secretId": secret["id"], "hostPattern": HOST, "injectAs": "header", "injectKey": "X-Api-Key"}

    answer = tenant.post(ROUTES, json=sent)

    made = answer.json()["data"]
    assert answer.status_code == 201
    assert {name: made[name] for name in made if name not in ("id", "createdAt")} == {
        **sent,
        "pathPattern": "/*",
        "method": "*",
        "injectFormat": "{value}",
        "priority": 0,
        "enabled": True,
        "agents": [],
        "alsoInject": [],
        "keepAuthorization": False,
        "exchange": None,
        "ranges": False,
        "costMicroUsd": 0,
        "maxMicroUsd": 0,
        "usage": None,
    }
    assert str(uuid.UUID(made["id"])) == made["id"]
    assert made["createdAt"].endswith("Z")
    assert tenant.ok("GET", ROUTES) == [made]
    assert tenant.ok("GET", path(made)) == made
    assert refusal(tenant.get(f"{ROUTES}/{uuid.uuid4()}")) == (404, "credential_route_absent")


def test_a_route_keeps_all_that_was_said(tenant: Tenant) -> None:
    sent = route_fields(
        keep_secret(tenant),
        hostPattern="*.api-*.example.com:8443",
        pathPattern="/V1/*/items/*",
        method="POST",
        injectAs="query",
        injectKey="api key",
        injectFormat="k-{value}-k",
        priority=-5,
        enabled=False,
    )

    made = tenant.ok("POST", ROUTES, sent)

    assert {name: made[name] for name in sent} == sent


def test_host_and_method_are_kept_in_one_spelling(tenant: Tenant) -> None:
    made = keep_route(tenant, hostPattern="API.Example.COM", method="get", injectKey="X-API-Key")

    assert (made["hostPattern"], made["method"], made["injectKey"]) == ("api.example.com", "GET", "X-API-Key")
    assert tenant.ok("PUT", path(made), {"hostPattern": "B.Example.com", "method": "post"}) == {
        **made,
        "hostPattern": "b.example.com",
        "method": "POST",
    }


GOOD = [
    {"hostPattern": "localhost"},
    {"hostPattern": "a_b.example.com"},
    {"hostPattern": "xn--bcher-kva.example"},
    {"hostPattern": "*.example.com"},
    {"hostPattern": "api-*.example.com"},
    {"hostPattern": "*.*.example.com"},
    {"hostPattern": "example.com:1"},
    {"hostPattern": "example.com:65535"},
    {"pathPattern": "/"},
    {"pathPattern": "/*"},
    {"pathPattern": "/v1/*"},
    {"pathPattern": "/v1/*/x"},
    {"pathPattern": "/v1/pre*fix"},
    {"pathPattern": "/a%20b"},
    {"pathPattern": "/projects/acme%2Ftools/*"},
    {"pathPattern": "/v1/"},
    *({"method": method} for method in ("*", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "pAtCh")),
    {"injectKey": "x-api-key"},
    {"injectKey": "X!#$%&'*+-.^_`|~9"},
    {"injectKey": "Authorization"},
    {"injectAs": "query", "injectKey": "host"},
    {"injectAs": "body", "injectKey": "content-length"},
    {"injectAs": "body", "injectKey": "cookie"},
    {"injectAs": "query", "injectKey": "a b"},
    {"injectFormat": "{value}"},
    {"injectFormat": "Basic {value}=="},
    {"injectFormat": "{a}{value}{b}"},
    {"priority": 1_000_000},
    {"priority": -1_000_000},
    {"enabled": False},
    {"agents": ["one", "another"]},
    {"injectAs": "basic", "injectFormat": "x-access-token:{value}"},
    {"injectAs": "basic", "injectFormat": "{value}:"},
    {"injectKey": "X-Api-Key", "keepAuthorization": True},
    {"ranges": True},
    {"costMicroUsd": 2_000},
    {"costMicroUsd": 2**63 - 1},
    {"maxMicroUsd": 500_000, "usage": PRICES},
    {"maxMicroUsd": 1, "usage": PRICES | {"form": "pointers", "inputAt": "/usage/in", "outputAt": "/usage/out"}},
]


@pytest.mark.parametrize("changed", GOOD, ids=str)
def test_valid_credential_routes_are_accepted(tenant: Tenant, changed: dict[str, Any]) -> None:
    secret = keep_secret(tenant)

    made = tenant.post(ROUTES, json=route_fields(secret, **changed))
    put = tenant.put(path(keep_route(tenant, secret)), json=changed)

    assert (made.status_code, put.status_code) == (201, 200), made.text + put.text
    assert {name: made.json()["data"][name] for name in changed} == {name: put.json()["data"][name] for name in changed}


BAD: dict[str, tuple[Any, ...]] = {
    "hostPattern": (
        "",
        "*",
        "*.com",
        "*.co*",
        "a.*.com",
        "example.*",
        "*.*",
        "**.example.com",
        "*:443",
        "https://example.com",
        "example.com/",
        "example.com/v1",
        "user@example.com",
        "user:pass@example.com",
        "example.com.",
        ".example.com",
        "a..example.com",
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0x7f.0.0.1",
        "[::1]",
        "::1",
        "[::1]:443",
        "1.2.3.4:443",
        "bücher.example",
        "example.com:0",
        "example.com:65536",
        "example.com:",
        "example.com:http",
        "example.com:0443",
        "example.com:443:443",
        "exa mple.com",
        "example.com\n",
        "example.com\0",
        "example.com?a",
        "example.com#a",
        "a\\b.example.com",
        "%65xample.com",
        "a" * 64 + ".example.com",
        "a." * 127 + "example.com",
        "x" * 261,
        None,
        5,
    ),
    "pathPattern": (
        "",
        "v1",
        "*",
        "/v1?a=b",
        "/v1#a",
        "/v1/../v2",
        "/v1/./v2",
        "/..",
        "/v1//v2",
        "//",
        "/v1%5cv2",
        "/v1\\v2",
        "/%2e%2e/v2",
        "/v1/..;x/v2",
        "/%252e%252e/",
        "/v1/%zz",
        "/v1/%",
        "/v1/%00",
        "/v1/%0a",
        "/v1\n",
        "/a b",
        "/ü",
        "/" + "x" * 1024,
        None,
        5,
    ),
    "method": ("", "FETCH", "CONNECT", "TRACE", "GET,POST", "**", "GET\n", "x" * 21, None, 5),
    "injectAs": ("", "Header", "cookie", "path", "x" * 21, None, 5),
    "injectKey": (
        "",
        "a b",
        "a:b",
        "a\n",
        "a\r\nb",
        "ü",
        "a\0",
        "(x)",
        "a,b",
        "x" * 129,
        None,
        5,
        "Connection",
        "KEEP-ALIVE",
        "proxy-Authenticate",
        "Proxy-Authorization",
        "proxy-connection",
        "tE",
        "Trailer",
        "trailers",
        "Transfer-encoding",
        "UPGRADE",
        "content-LENGTH",
        "Content-Encoding",
        "Accept-Encoding",
        "HoSt",
        "Expect",
        "HTTP2-Settings",
        "Sec-WebSocket-Key",
        "SEC-websocket-Protocol",
        "X-Service-Key",
        "x-SERVICE-anything",
        ":authority",
        ":path",
        "Cookie",
        "cOOKIE",
        "Set-Cookie",
        "SET-COOKIE",
    ),
    "injectFormat": (
        "",
        "Bearer",
        "value",
        "{ value }",
        "{VALUE}",
        "{value}{value}",
        "a\n{value}",
        "{value}\r",
        "{value}\0",
        "ü {value}",
        "x" * 1024 + "{value}",
        None,
        5,
    ),
    "priority": (1.5, "1", True, 1_000_001, -1_000_001, None),
    "enabled": ("true", 1, None),
    "agents": (["one", "one"], "one", None, [f"agent-{number}" for number in range(51)]),
    "keepAuthorization": (True, "true", 1, None),
    "ranges": ("true", 1, None),
    "costMicroUsd": (-1, 2**63, 0.5, "1", True, None),
    "maxMicroUsd": (-1, 2**63, 1),
    "usage": (
        "openai",
        PRICES | {"inputAt": "/usage/in"},
        PRICES | {"form": "pointers"},
        PRICES | {"form": "pointers", "inputAt": "/usage/*", "outputAt": "/*/out"},
    ),
}
TRIED = [({field: value}, field) for field, values in BAD.items() for value in values] + [
    ({"injectAs": way, "injectKey": key}, "injectKey")
    for way in ("query", "body")
    for key in ("", "a\n", "a\0", "ü", "x" * 129)
]
TRIED += [
    ({"usage": PRICES}, "maxMicroUsd"),
    ({"usage": PRICES | {"form": "other"}}, "usage.form"),
    ({"usage": PRICES | {"input": -1}}, "usage.input"),
    ({"usage": PRICES | {"output": None}}, "usage.output"),
    ({"usage": PRICES, "maxMicroUsd": 5, "costMicroUsd": 5}, "costMicroUsd"),
]
TRIED += [({"agents": [name]}, "agents[0]") for name in ("a/b", "", 5)]


@pytest.fixture(scope="module")
def tenant_and_route(service: Service) -> Iterator[tuple[Tenant, dict[str, Any]]]:
    """A tenant with one route, which no refused request changes."""
    with new_tenant(service) as tenant:
        yield tenant, keep_route(tenant)


@pytest.mark.parametrize(("changed", "field"), TRIED, ids=lambda given: repr(given)[:60])
def test_invalid_credential_routes_are_refused(
    tenant_and_route: tuple[Tenant, dict[str, Any]], changed: dict[str, Any], field: str
) -> None:
    tenant, route = tenant_and_route

    answers = [
        tenant.post(ROUTES, json=route_fields({"id": route["secretId"]}, **changed)),
        tenant.put(path(route), json=changed),
    ]

    for answer in answers:
        assert answer.status_code == 400, answer.text
        assert answer.json()["data"]["code"] in ("bad_body", "invalid_route")
        assert answer.json()["data"]["fields"] == [field]
        assert answer.json()["error"].startswith((f"{field}: ", f"{field} must be "))
    assert tenant.ok("GET", ROUTES) == [route]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"hostPattern": "bücher.example"}, "write it in its ASCII form (xn--...)"),
        ({"hostPattern": "https://example.com"}, "without scheme"),
        ({"hostPattern": "10.0.0.1"}, "IP address"),
        ({"hostPattern": "*.com"}, "does not allow"),
        ({"pathPattern": "v1"}, "start with a slash"),
        ({"method": "FETCH"}, "DELETE, GET, HEAD"),
        ({"injectAs": "cookie"}, "header, basic, query, body, json, text, awsSigV4 or none"),
        ({"injectKey": "cOOkie"}, "cOOkie"),
        ({"injectFormat": "Bearer"}, "{value} exactly once"),
    ],
    ids=str,
)
def test_a_refusal_says_what_is_allowed(
    tenant_and_route: tuple[Tenant, dict[str, Any]], changed: dict[str, Any], words: str
) -> None:
    tenant, route = tenant_and_route

    made = tenant.post(ROUTES, json=route_fields({"id": route["secretId"]}, **changed))
    put = tenant.put(path(route), json=changed)

    assert words in made.json()["error"]
    assert words in put.json()["error"]


def also(secret: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """Another secret of a route: a header beside the usual one, unless changed."""
    return {"secretId": secret["id"], "injectAs": "header", "injectKey": "X-App-Key", **changed}


def test_a_route_puts_several_secrets_into_one_request(tenant: Tenant) -> None:
    first, second = keep_secret(tenant), keep_secret(tenant)
    further = [also(second), also(second, injectAs="query", injectKey="app", injectFormat="a-{value}")]

    made = keep_route(tenant, first, alsoInject=further)
    changed = tenant.ok("PUT", path(made), {"alsoInject": further[1:], "priority": 3})

    assert made["alsoInject"] == [{"injectFormat": "{value}", **one} for one in further]
    assert changed["alsoInject"] == further[1:]
    assert tenant.ok("GET", path(made)) == changed


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"injectKey": "authorization"}, "two values cannot go to one place"),
        ({"injectAs": "basic", "injectKey": "AUTHORIZATION", "injectFormat": "a:{value}"}, "cannot go to one place"),
        ({"injectKey": "Host"}, "must not set the header Host"),
        ({"injectKey": "Cookie"}, "must not set the header Cookie"),
        ({"injectFormat": "nothing of it"}, "{value} exactly once"),
        ({"injectAs": "basic", "injectFormat": "{value}"}, "a colon between"),
        ({"injectKey": "a b"}, "Not a valid header name"),
    ],
    ids=str,
)
def test_a_further_secret_goes_only_where_the_first_could(
    tenant_and_route: tuple[Tenant, dict[str, Any]], changed: dict[str, Any], words: str
) -> None:
    tenant, route = tenant_and_route
    further = {"alsoInject": [also({"id": route["secretId"]}, **changed)]}

    for answer in (
        tenant.post(ROUTES, json=route_fields({"id": route["secretId"]}, **further)),
        tenant.put(path(route), json={"injectKey": "Authorization", **further}),
    ):
        assert refusal(answer) == (400, "invalid_route")
        assert answer.json()["data"]["fields"] == ["alsoInject"]
        assert words in answer.json()["error"]
    assert tenant.ok("GET", ROUTES) == [route]


def test_a_further_secret_must_be_there_and_fit(tenant: Tenant, other_tenant: Tenant) -> None:
    secret, foreign = keep_secret(tenant), keep_secret(other_tenant)
    lined, colon = keep_secret(tenant, "a\nb"), keep_secret(tenant, "a:b")
    route = keep_route(tenant, secret)

    def codes(further: dict[str, Any]) -> list[str]:
        made = tenant.post(ROUTES, json=route_fields(secret, alsoInject=[further]))
        put = tenant.put(path(route), json={"alsoInject": [further]})
        return [answer.json()["data"]["code"] for answer in (made, put)]

    assert codes(also(foreign)) == ["secret_absent"] * 2
    assert codes(also(lined)) == ["value_not_for_header"] * 2
    assert codes(also(colon, injectAs="basic", injectFormat="{value}:x")) == ["value_not_for_user"] * 2
    assert tenant.post(ROUTES, json=route_fields(secret, alsoInject=[also(secret)] * 5)).status_code == 400
    assert tenant.ok("GET", ROUTES) == [route]


def test_a_route_has_a_secret_exactly_where_it_injects_one(tenant: Tenant) -> None:
    secret = keep_secret(tenant)
    free, kept = tenant.ok("POST", ROUTES, {"hostPattern": HOST, "injectAs": "none"}), keep_route(tenant, secret)

    refused = [
        tenant.post(ROUTES, json={"hostPattern": HOST, "injectAs": "header", "injectKey": "X-Key"}),
        tenant.post(ROUTES, json={"hostPattern": HOST, "injectAs": "none", "secretId": secret["id"]}),
        tenant.post(ROUTES, json={"hostPattern": HOST, "injectAs": "none", "injectKey": "X-Key"}),
        tenant.post(ROUTES, json={"hostPattern": HOST, "injectAs": "none", "alsoInject": [also(secret)]}),
        tenant.post(ROUTES, json=route_fields(secret, alsoInject=[also(secret, injectAs="none", injectKey="")])),
        tenant.put(path(free), json={"injectAs": "header", "injectKey": "X-Key"}),
        tenant.put(path(kept), json={"injectAs": "none", "injectKey": "", "injectFormat": "{value}"}),
    ]

    assert [refusal(answer) for answer in refused] == [(400, "invalid_route")] * 7
    assert tenant.ok("GET", ROUTES) == [kept, free]
    asked = {"agentId": tenant.agent().id, "method": "GET", "url": f"https://{HOST}/"}
    assert tenant.ok("POST", f"{ROUTES}/explain", asked)["matched"] == free


def test_all_that_is_wrong_is_named_at_once(tenant: Tenant) -> None:
    wrong = {"hostPattern": "*", "pathPattern": "v1", "injectKey": "Host", "injectFormat": "x"}

    answer = tenant.post(ROUTES, json=route_fields(keep_secret(tenant), **wrong))

    assert refusal(answer) == (400, "invalid_route")
    assert set(answer.json()["data"]["fields"]) == set(wrong)


@pytest.mark.parametrize("missing", ["secretId", "hostPattern", "injectAs", "injectKey"])
def test_a_missing_field_is_named(tenant: Tenant, missing: str) -> None:
    sent = route_fields(keep_secret(tenant))
    del sent[missing]

    assert tenant.post(ROUTES, json=sent).json()["data"]["fields"] == [missing]


CHANGES: dict[str, Any] = {
    "hostPattern": "b.example.com",
    "pathPattern": "/v2/*",
    "method": "POST",
    "injectAs": "query",
    "injectKey": "key",
    "injectFormat": "x{value}",
    "priority": 7,
    "enabled": False,
}


@pytest.mark.parametrize("field", CHANGES)
def test_a_change_leaves_the_rest_as_it_was(tenant: Tenant, field: str) -> None:
    route = keep_route(tenant)

    changed = tenant.ok("PUT", path(route), {field: CHANGES[field]})

    assert changed == {**route, field: CHANGES[field]}
    assert tenant.ok("GET", ROUTES) == [changed]


def test_a_change_may_name_everything_or_nothing(tenant: Tenant) -> None:
    route = keep_route(tenant)

    assert tenant.ok("PUT", path(route), {}) == route
    assert tenant.ok("PUT", path(route)) == route
    assert tenant.ok("PUT", path(route), CHANGES) == {**route, **CHANGES}


def test_a_change_must_fit_what_it_leaves(tenant: Tenant) -> None:
    route = keep_route(tenant, injectAs="query", injectKey="host")

    answer = tenant.put(path(route), json={"injectAs": "header"})

    assert (refusal(answer), answer.json()["data"]["fields"]) == ((400, "invalid_route"), ["injectKey"])
    assert tenant.ok("PUT", path(route), {"injectAs": "header", "injectKey": "X-Key"})["injectAs"] == "header"


@pytest.mark.parametrize("other", ["own", "unknown", None, 5])
def test_a_route_keeps_its_secret(tenant: Tenant, other: Any) -> None:
    route = keep_route(tenant)
    secret_id = {"own": route["secretId"], "unknown": str(uuid.uuid4())}.get(other, other)

    answer = tenant.put(path(route), json={"secretId": secret_id, "priority": 1})

    assert (refusal(answer), answer.json()["data"]["fields"]) == ((400, "secret_of_route_fixed"), ["secretId"])
    assert "new route" in answer.json()["error"]
    assert tenant.ok("GET", ROUTES) == [route]


def test_a_route_needs_a_living_secret_of_its_own_tenant(tenant: Tenant, other_tenant: Tenant) -> None:
    theirs, deleted = keep_secret(other_tenant), keep_secret(tenant)
    tenant.ok("DELETE", f"/secrets/{deleted['id']}")

    answers = [
        tenant.post(ROUTES, json=route_fields({"id": one})) for one in (theirs["id"], deleted["id"], str(uuid.uuid4()))
    ]

    assert [refusal(answer) for answer in answers] == [(404, "secret_absent")] * 3
    assert len({answer.text for answer in answers}) == 1
    assert tenant.post(ROUTES, json=route_fields({"id": "x"})).json()["data"]["fields"] == ["secretId"]
    assert tenant.ok("GET", ROUTES) == other_tenant.ok("GET", ROUTES) == []


def test_another_tenants_route_is_absent_and_stays_as_it_is(tenant: Tenant, other_tenant: Tenant) -> None:
    theirs = keep_route(other_tenant)
    for missing in (theirs["id"], str(uuid.uuid4())):
        answers = [tenant.put(f"{ROUTES}/{missing}", json={"priority": 1}), tenant.delete(f"{ROUTES}/{missing}")]

        assert [refusal(answer) for answer in answers] == [(404, "credential_route_absent")] * 2
    assert other_tenant.ok("GET", ROUTES) == [theirs]


def test_a_deleted_route_is_gone(tenant: Tenant) -> None:
    route = keep_route(tenant)

    assert tenant.ok("DELETE", path(route)) == {"deleted": route["id"]}

    answers = [tenant.delete(path(route)), tenant.put(path(route), json={"priority": 1})]
    assert [refusal(answer) for answer in answers] == [(404, "credential_route_absent")] * 2
    assert tenant.ok("GET", ROUTES) == []
    assert tenant.ok("GET", f"/secrets/{route['secretId']}")["version"] == 1


def test_a_deleted_secret_leaves_its_routes_to_be_seen_and_deleted(tenant: Tenant) -> None:
    route = keep_route(tenant)

    tenant.ok("DELETE", f"/secrets/{route['secretId']}")

    assert tenant.ok("GET", ROUTES) == [route]
    assert tenant.ok("DELETE", path(route)) == {"deleted": route["id"]}


def test_routes_are_listed_newest_first_and_paged(tenant: Tenant) -> None:
    secret = keep_secret(tenant)
    ids = [keep_route(tenant, secret, priority=priority)["id"] for priority in (5, 9, 1)]

    answer = tenant.get(f"{ROUTES}?limit=2")

    assert [one["id"] for one in answer.json()["data"]] == ids[:0:-1]
    assert answer.headers["X-Total-Count"] == "3"
    assert answer.headers["Cache-Control"] == "no-store"
    assert [one["id"] for one in tenant.ok("GET", f"{ROUTES}?limit=2&offset=2")] == ids[:1]


def test_an_agent_may_touch_no_route(tenant: Tenant, agent: Agent) -> None:
    route = keep_route(tenant)
    question = {"agentId": agent.id, "method": "GET", "url": f"https://{HOST}/"}

    answers = [
        agent.get(ROUTES),
        agent.post(ROUTES, json=route_fields({"id": route["secretId"]})),
        agent.put(path(route), json={"enabled": False}),
        agent.delete(path(route)),
        agent.post(f"{ROUTES}/explain", json=question),
    ]

    assert {refusal(answer) for answer in answers} == {(403, "wrong_kind")}
    assert tenant.ok("GET", ROUTES) == [route]


def test_a_repeated_request_makes_one_route(tenant: Tenant) -> None:
    body, key = route_fields(keep_secret(tenant)), {"Idempotency-Key": str(uuid.uuid4())}

    first, second = tenant.post(ROUTES, json=body, headers=key), tenant.post(ROUTES, json=body, headers=key)

    assert (first.status_code, second.status_code, second.json()) == (201, 201, first.json())
    assert second.headers["Idempotency-Replayed"] == "true"
    assert tenant.ok("GET", ROUTES) == [first.json()["data"]]


@pytest.mark.parametrize("value", ["a\nb", "a\r\n", "a\0", "\x1b[0m", "a\x7f"], ids=repr)
def test_a_value_that_no_header_can_hold_gets_no_header_route(tenant: Tenant, value: str) -> None:
    secret = keep_secret(tenant, value)

    route = keep_route(tenant, secret, injectAs="query", injectKey="key")

    answers = [tenant.post(ROUTES, json=route_fields(secret)), tenant.put(path(route), json={"injectAs": "header"})]
    assert [refusal(answer) for answer in answers] == [(400, "value_not_for_header")] * 2
    assert tenant.ok("GET", ROUTES) == [route]


@pytest.mark.parametrize(("method", "suffix"), [("PUT", ""), ("POST", "/rotate")])
def test_a_secret_in_a_header_gets_no_value_that_a_header_cannot_hold(tenant: Tenant, method: str, suffix: str) -> None:
    route = keep_route(tenant)
    place = f"/secrets/{route['secretId']}"

    answer = tenant.request(method, place + suffix, json={"value": "a\r\nX-Other: b"})

    assert refusal(answer) == (400, "value_not_for_header")
    assert tenant.ok("GET", place)["version"] == 1


async def test_each_act_leaves_its_own_word_in_the_trail(tenant: Tenant, owner: asyncpg.Connection) -> None:
    route = keep_route(tenant)
    tenant.ok("PUT", path(route), {"priority": 1})
    tenant.ok("DELETE", path(route))

    rows = await owner.fetch(
        "SELECT action, written_by FROM audit WHERE tenant_id = $1 AND resource_id = $2 ORDER BY seq",
        tenant.id,
        route["id"],
    )

    assert [row["action"] for row in rows] == [
        "credential_route.created",
        "credential_route.changed",
        "credential_route.deleted",
    ]
    assert {row["written_by"] for row in rows} == {"custody_signer"}


def test_the_operator_may_allow_broad_hosts_and_cookies_and_take_it_back(
    postgres_home: places.Home, worker_id: str
) -> None:
    database = database_apart(postgres_home, f"{worker_id}_allowing")
    allowed = {"SERVICE_ALLOW_BROAD_SECRET_ROUTES": "true", "SERVICE_ALLOW_COOKIE_INJECTION": "true"}
    with deploy(database, **allowed) as generous, new_tenant(generous) as tenant, partner_of(generous) as strict:
        routes = [
            keep_route(tenant, **said)
            for said in ({"hostPattern": "*"}, {"hostPattern": "*.com"}, {"injectKey": "Cookie"})
        ]
        with Tenant(base_url=strict.url, headers={"X-Service-Key": tenant.key}, timeout=30) as later:
            # What was made while it was allowed may be ordered otherwise and switched off, but not said again.
            changed = [later.put(path(route), json={"priority": 1, "enabled": False}) for route in routes]
            refused = [
                later.post(ROUTES, json=route_fields({"id": route["secretId"]}, **said))
                for route, said in zip(routes, ({"hostPattern": "*"}, {"injectKey": "cookie"}), strict=False)
            ]

    assert [answer.status_code for answer in changed] == [200, 200, 200]
    assert [refusal(answer) for answer in refused] == [(400, "invalid_route")] * 2
