"""The gateway form: a base address swapped, and the credential put in on the way."""

import msgspec
import pytest

from tests.fixtures.eventually import eventually
from tests.fixtures.proxied import Keyless
from tests.proxy.envelope import refusal

FORM = "application/x-www-form-urlencoded"


def test_an_alias_leads_to_its_host_with_the_credential_in_place_of_the_token(with_route: Keyless) -> None:
    answer = with_route.gateway().get("/v1/models?limit=2&limit=3")

    (heard,) = with_route.upstream.requests()
    assert answer.status_code == 200
    assert (heard.server, heard.method, heard.target) == ("main", "GET", "/v1/models?limit=2&limit=3")
    assert heard.all("authorization") == [f"Bearer {with_route.value}"]
    assert heard.all("host") == [f"localhost:{with_route.upstream.port}"]
    assert heard.all("accept-encoding") == ["identity"]
    assert with_route.token.encode() not in with_route.upstream.raw()


def test_a_host_may_be_named_in_the_path(with_route: Keyless) -> None:
    answer = with_route.gateway(f"proxy/localhost:{with_route.upstream.port}").get("/v1/models?a=b")

    (heard,) = with_route.upstream.requests()
    assert answer.status_code == 200
    assert (heard.target, heard.all("authorization")) == ("/v1/models?a=b", [f"Bearer {with_route.value}"])


@pytest.mark.parametrize("path", ["/up", "/up/", "/up?a=1", "/up/?a=1"])
def test_an_alias_alone_is_the_root_of_its_host(with_route: Keyless, path: str) -> None:
    with with_route.proxy.connect() as wire:
        assert wire.say(with_route.head(path)).hear().status == 200

    (heard,) = with_route.upstream.requests()
    assert heard.target == path.replace("/up", "").replace("?", "/?") if path == "/up?a=1" else "/" + path[4:]


@pytest.mark.parametrize("path", ["/a%20b/%41?x=%2f%2F&&y", "/a;b=c/@:!$&'()*+,=~", "/v1/?", "/%e4%bd%A0"])
def test_path_and_query_go_out_as_they_came(with_route: Keyless, path: str) -> None:
    with with_route.proxy.connect() as wire:
        assert wire.say(with_route.head("/up" + path)).hear().status == 200

    assert [heard.target for heard in with_route.upstream.requests()] == [path]


@pytest.mark.parametrize("form", ["gateway", "absolute", "tunnel"])
def test_escaped_slashes_empty_segments_and_bytes_outside_utf_8_are_data(with_route: Keyless, form: str) -> None:
    paths = [
        "/@acme%2ftools",
        "/contents/a%2Fb",
        "//v1/models",
        "/a//b/",
        "/%E4%F6",
        "/%E2%80%A6/x",
        "/a%252fb",
        "/?q=\xc3\xa4",
    ]
    host = f"localhost:{with_route.upstream.port}"
    with with_route.proxy.connect() as wire:
        if form == "tunnel":
            wire.say(with_route.head(host, "CONNECT").replace(b"\r\nAuth", b"\r\nProxy-Auth")).hear(head_only=True)
            wire.into_tunnel(with_route.proxied.trust(), "localhost")
        before = {"gateway": "/up", "absolute": f"http://{host}", "tunnel": ""}[form]
        for path in paths:
            head = with_route.head(before + path)
            head = head.replace(b"\r\nAuth", b"\r\nProxy-Auth") if form == "absolute" else head
            assert wire.say(head).hear().status == 200

    assert [heard.target for heard in with_route.upstream.requests()] == paths


def test_a_path_that_servers_read_in_two_ways_falls_to_one_route_or_to_none(keyless: Keyless) -> None:
    keyless.route(pathPattern="/public/*")
    client = keyless.gateway()

    assert client.get("/public/a%2Fb").status_code == 200
    assert refusal(client.get("/public%2Fadmin")) == (403, "no_route")
    keyless.route(pathPattern="/public/admin/*", priority=1, injectKey="X-Admin")

    # Until the proxy heard of the second route the first one has it.
    eventually(lambda: client.get("/public/admin%2Fx").status_code == 400)
    heard_before = len(keyless.upstream.requests())
    refused = client.get("/public/admin%2Fx")
    assert refusal(refused) == (400, "malformed_target")
    assert "Write %2F in the route's path" in refused.json()["error"]["message"]
    assert len(keyless.upstream.requests()) == heard_before


def test_a_query_parameter_takes_the_place_of_the_agents_own(keyless: Keyless) -> None:
    keyless.route(injectAs="query", injectKey="api key", injectFormat="k={value}")
    with keyless.proxy.connect() as wire:
        wire.say(keyless.head("/up/find?a=1&api%20key=mine&api+key=mine&%61pi%20key=mine&b=%20")).hear()

    (heard,) = keyless.upstream.requests()
    path, _, query = heard.target.partition("?")
    pairs = query.split("&")
    assert (path, pairs[:2], len(pairs)) == ("/find", ["a=1", "b=%20"], 3)
    assert pairs[2].startswith("api%20key=k%3Dsk-canary%2F")
    assert heard.all("authorization") == []
    assert keyless.token.encode() not in keyless.upstream.raw()


def test_a_header_takes_the_place_of_the_agents_own_whatever_its_case(keyless: Keyless) -> None:
    keyless.route(injectKey="X-Api-Key", injectFormat="{value}")

    keyless.gateway(**{"x-api-KEY": "mine"}).get("/echo")

    (heard,) = keyless.upstream.requests()
    assert heard.all("x-api-key") == [keyless.value]
    assert heard.all("authorization") == []


def test_a_field_of_a_json_body_takes_the_place_of_the_agents_own(keyless: Keyless) -> None:
    keyless.route(injectAs="body", injectKey="key", injectFormat="{value}")

    answer = keyless.gateway().post(
        "/count", content=b'{"a": 1.50, "key": "mine", "b": [1e400]}', headers={"Content-Type": "application/json"}
    )

    (heard,) = keyless.upstream.requests()
    assert answer.status_code == 200
    assert msgspec.json.decode(heard.body.replace("1e400", "0")) == {"a": 1.5, "key": keyless.value, "b": [0]}
    assert '"a":1.50' in heard.body.replace(" ", "")
    assert int(heard.all("content-length")[0]) == heard.size
    assert heard.all("authorization") == []


def test_a_body_of_eight_mebibytes_takes_the_credential(keyless: Keyless) -> None:
    keyless.route(injectAs="body", injectKey="key", injectFormat="{value}")
    body = b'{"picture": "' + b"A" * (8 * 2**20 - 15) + b'"}'
    assert len(body) == 8 * 2**20

    answer = keyless.gateway().post("/count", content=body, headers={"Content-Type": "application/json"})

    assert answer.json()["size"] > len(body)


def test_a_field_of_a_form_takes_the_place_of_the_agents_own(keyless: Keyless) -> None:
    keyless.route(injectAs="body", injectKey="key", injectFormat="{value}")

    keyless.gateway().post("/count", content=b"a=1&key=mine&b=2", headers={"Content-Type": FORM})

    (heard,) = keyless.upstream.requests()
    assert heard.body.startswith("a=1&b=2&key=sk-canary%2F")


def test_a_chunked_body_gets_its_field_and_a_length(keyless: Keyless) -> None:
    keyless.route(injectAs="body", injectKey="key", injectFormat="{value}")

    keyless.gateway().post("/count", content=iter([b'{"a"', b": 1}"]), headers={"Content-Type": "application/json"})

    (heard,) = keyless.upstream.requests()
    assert msgspec.json.decode(heard.body) == {"a": 1, "key": keyless.value}
    assert heard.all("transfer-encoding") == []


UNFIT = {
    "no body": (b"", {}, (415, "body_unfit")),
    "no type": (b"{}", {}, (415, "body_unfit")),
    "another type": (b"{}", {"Content-Type": "text/plain"}, (415, "body_unfit")),
    "another charset": (b"{}", {"Content-Type": "application/json; charset=utf-16"}, (415, "body_unfit")),
    "an array": (b"[1]", {"Content-Type": "application/json"}, (415, "body_unfit")),
    "compressed": (b"{}", {"Content-Type": "application/json", "Content-Encoding": "gzip"}, (415, "body_unfit")),
    "broken JSON": (b'{"a":', {"Content-Type": "application/json"}, (400, "bad_json")),
    "too large": (b'"' + b"a" * 2**23, {"Content-Type": "application/json"}, (413, "body_too_large")),
}


@pytest.mark.parametrize("name", UNFIT)
def test_a_body_that_cannot_take_the_credential_goes_nowhere(keyless: Keyless, name: str) -> None:
    body, headers, wanted = UNFIT[name]
    keyless.route(injectAs="body", injectKey="key")

    answer = keyless.gateway().post("/count", content=body, headers=headers)

    assert refusal(answer) == wanted
    assert keyless.upstream.requests() == []


def test_hop_by_hop_headers_of_the_agent_are_not_forwarded(with_route: Keyless) -> None:
    head = with_route.head(
        "/up/echo",
        "GET",
        "Connection: X-Mine, keep-alive",
        "X-Mine: 1",
        "Keep-Alive: 5",
        "TE: trailers",
        "Proxy-Authorization: Basic abc",
        "Proxy-Connection: close",
        "X-Service-Key: k",
        "X-Service-Anything: k",
        f"X-Api-Key: {with_route.token}",
        f"Api-Key: Token {with_route.token}",
        "Accept-Encoding: gzip",
        "X-Kept: \xe9",
        "X-Kept: 2",
        "Cookie: a=b",
    )
    with with_route.proxy.connect() as wire:
        assert wire.say(head).hear().status == 200

    (heard,) = with_route.upstream.requests()
    names = sorted(name.lower() for name, _ in heard.headers)
    assert names == ["accept-encoding", "authorization", "cookie", "host", "x-kept", "x-kept"]
    assert heard.all("x-kept") == ["\xe9", "2"]
    assert with_route.token.encode() not in with_route.upstream.raw()


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"])
def test_every_method_goes_out_where_the_route_says_so(with_route: Keyless, method: str) -> None:
    answer = with_route.gateway().request(method, "/status?code=202")

    assert answer.status_code == 202
    assert [heard.method for heard in with_route.upstream.requests()] == [method]


def test_the_first_enabled_route_by_priority_decides(keyless: Keyless) -> None:
    keyless.route(priority=5, enabled=False, injectKey="X-Off")
    keyless.route(priority=4, method="POST", injectKey="X-Post")
    keyless.route(priority=3, pathPattern="/v1/*", injectKey="X-Path")
    keyless.route(priority=2, hostPattern=f"other:{keyless.upstream.port}", injectKey="X-Host")
    keyless.route(priority=1, injectKey="X-Last")
    client = keyless.gateway()

    client.get("/echo")
    client.get("/v1/echo")
    client.post("/v1/echo")

    shown = [[name for name, _ in heard.headers if name.startswith("X-")] for heard in keyless.upstream.requests()]
    assert shown == [["X-Last"], ["X-Path"], ["X-Post"]]


def test_a_port_must_be_in_the_route(keyless: Keyless) -> None:
    keyless.route(hostPattern="localhost")

    assert refusal(keyless.gateway().get("/echo")) == (403, "no_route")
    assert keyless.upstream.requests() == []


def test_the_request_id_is_taken_over_or_made(with_route: Keyless) -> None:
    client = with_route.gateway()

    assert client.get("/echo", headers={"X-Request-Id": "mine-1"}).headers["X-Service-Request-Id"] == "mine-1"
    made = client.get("/echo", headers={"X-Request-Id": "not safe"}).headers["X-Service-Request-Id"]
    assert made not in ("", "not safe")


def test_an_agent_that_waits_for_permission_gets_it(with_route: Keyless) -> None:
    with with_route.proxy.connect() as wire:
        wire.say(with_route.head("/up/count", "POST", "Content-Length: 4", "Expect: 100-continue"))
        assert wire.hear_bytes(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
        answer = wire.say(b"body").hear()

    assert msgspec.json.decode(answer.body)["size"] == 4
    assert with_route.upstream.requests()[0].all("expect") == []


def test_an_agent_that_waits_for_permission_is_refused_before_it_sends(keyless: Keyless) -> None:
    with keyless.proxy.connect() as wire:
        wire.say(keyless.head("/up/count", "POST", "Content-Length: 4", "Expect: 100-continue"))

        assert refusal(wire.hear()) == (403, "no_route")
        assert wire.closed


def test_requests_of_one_agents_connection_share_an_upstream_connection(with_route: Keyless) -> None:
    with with_route.proxy.connect() as wire:
        for _ in range(5):
            assert wire.say(with_route.head("/up/echo")).hear().status == 200
    assert with_route.upstream.connections() == 1

    assert with_route.gateway().get("/echo").status_code == 200
    assert with_route.upstream.connections() == 2


def test_requests_sent_ahead_are_answered_in_order(with_route: Keyless) -> None:
    with with_route.proxy.connect() as wire:
        wire.say(b"".join(with_route.head(f"/up/status?code={200 + number}") for number in range(1, 4)))

        assert [wire.hear().status for _ in range(3)] == [201, 202, 203]


def test_two_agents_on_one_connection_share_none_to_the_upstream(with_route: Keyless) -> None:
    other = with_route.tenant.agent()
    token = str(other.headers["Authorization"]).split()[1]
    with with_route.proxy.connect() as wire:
        for _ in range(2):
            assert wire.say(with_route.head("/up/echo")).hear().status == 200
            assert (
                wire.say(with_route.head("/up/echo").replace(with_route.token.encode(), token.encode())).hear().status
                == 200
            )

    one, two, *more = [heard.connection for heard in with_route.upstream.requests()]
    assert one != two
    assert more == [one, two]


def test_two_routes_on_one_connection_share_none_to_the_upstream(keyless: Keyless) -> None:
    keyless.route(pathPattern="/v1/*")
    keyless.route(pathPattern="/v2/*")
    with keyless.proxy.connect() as wire:
        for path in ("/up/v1/a", "/up/v2/a", "/up/v1/b", "/up/v2/b"):
            assert wire.say(keyless.head(path)).hear().status == 200

    one, two, *more = [heard.connection for heard in keyless.upstream.requests()]
    assert one != two
    assert more == [one, two]


@pytest.mark.parametrize(
    "name",
    [
        "X-HTTP-Method-Override",
        "x-http-method",
        "X_Method_Override",
        "X-Original-URL",
        "x-rewrite-url",
        "X-Method",
        "X-Forwarded-Host",
        "X_Forwarded_Uri",
        "x-forwarded-prefix",
        "Forwarded",
        "Transfer_Encoding",
        "Content_Length",
        "HTTP2-Settings",
    ],
)
def test_headers_that_make_another_request_of_it_stay_here(keyless: Keyless, name: str) -> None:
    keyless.route(method="POST", pathPattern="/echo")
    with keyless.proxy.connect() as wire:
        head = keyless.head("/up/echo", "POST", f"{name}: /delete-me", "Content-Length: 0")
        assert wire.say(head).hear().status == 200

    assert "delete-me" not in str([heard.headers for heard in keyless.upstream.requests()])


@pytest.mark.parametrize("path", ["/up/v1/{token}", "/up/{token}/send?a=b", "/up/v1/%65{rest}", "/up/v1/x{token}x"])
def test_the_agents_own_token_in_the_path_goes_nowhere(with_route: Keyless, path: str) -> None:
    # Some APIs have the key there, so programs put what they take for the key there.
    assert with_route.token.startswith("e")
    with with_route.proxy.connect() as wire:
        head = with_route.head(path.format(token=with_route.token, rest=with_route.token[1:]))
        assert refusal(wire.say(head).hear())[0] == 400

    assert with_route.upstream.requests() == []
