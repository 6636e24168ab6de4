"""Every status that the proxy gives itself, with the envelope."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.fixtures.deployments import owner_of
from tests.fixtures.eventually import eventually
from tests.fixtures.proxied import Keyless, Proxied, Proxy, new_keyless
from tests.fixtures.wire import Answer, Wire
from tests.proxy.envelope import refusal

FREEZE = {
    "agent": "UPDATE agents SET frozen_at = now() WHERE tenant_id = $1",
    "tenant": "UPDATE tenants SET frozen_at = now() WHERE id = $1",
}


@pytest.mark.parametrize("shown", ["", "Bearer", "Bearer nonsense", "Basic YTpi", "Bearer a.b.c"])
def test_without_a_valid_token_401(with_route: Keyless, shown: str) -> None:
    client = with_route.gateway()
    del client.headers["Authorization"]

    answer = client.get("/echo", headers={"Authorization": shown} if shown else {})

    assert refusal(answer) == (401, "bad_token")
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert with_route.upstream.connections() == 0


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/up/other", "no_route"),
        ("/nothing/echo", "unknown_alias"),
        ("/", "unknown_alias"),
        ("/proxy", "unknown_alias"),
        ("/proxy/", "unknown_alias"),
        ("/health", "unknown_alias"),
        ("/proxy/api.example.com/echo", "no_route"),
        ("/openai/v1/models", "no_route"),
        ("/UP/echo", "unknown_alias"),
    ],
)
def test_where_no_route_leads_403(keyless: Keyless, path: str, code: str) -> None:
    keyless.route(pathPattern="/echo")
    with keyless.proxy.connect() as wire:
        assert refusal(wire.say(keyless.head(path)).hear()) == (403, code)
        # The connection goes on.
        assert wire.say(keyless.head("/up/echo")).hear().status == 200


def test_a_disabled_route_leads_nowhere(keyless: Keyless) -> None:
    keyless.route(enabled=False)

    assert refusal(keyless.gateway().get("/echo")) == (403, "no_route")


def test_another_tenants_route_leads_nowhere(with_route: Keyless) -> None:
    with new_keyless(with_route.proxied) as other:
        assert refusal(other.gateway().get("/echo")) == (403, "no_route")


def test_a_deleted_secret_is_unavailable(with_route: Keyless) -> None:
    with_route.tenant.ok("DELETE", f"/secrets/{with_route.secret['id']}")

    assert refusal(with_route.gateway().get("/echo")) == (403, "secret_unavailable")


def test_a_secret_is_unavailable_from_the_moment_it_expires(keyless: Keyless) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=4)
    secret = keyless.tenant.ok("POST", "/secrets", {"name": "short", "value": "abcdef", "expiresAt": soon.isoformat()})
    keyless.route(secretId=secret["id"])
    client = keyless.gateway()

    def over() -> bool:
        status, now = client.get("/echo").status_code, datetime.now(UTC)
        # A busy machine may get its first answer after that.
        assert status == 200 or now >= soon
        return now >= soon

    eventually(over)
    # The first one that is asked after that moment, although the proxy knew the value a moment ago.
    assert refusal(client.get("/echo")) == (403, "secret_unavailable")


@pytest.mark.parametrize("what", FREEZE)
async def test_a_frozen_agent_sends_nothing(with_route: Keyless, what: str) -> None:
    async with owner_of(with_route.proxied.database) as owner:
        await owner.execute(FREEZE[what], with_route.tenant.id)

    assert refusal(with_route.gateway().get("/echo")) == (403, "frozen")
    with with_route.proxy.connect() as wire:
        wire.say(
            "GET http://localhost/ HTTP/1.1\r\nHost: a\r\n"
            f"Proxy-Authorization: Bearer {with_route.token}\r\n\r\n".encode()
        )
        assert refusal(wire.hear()) == (403, "frozen")
    assert with_route.upstream.connections() == 0


def test_a_host_at_a_private_address_is_blocked_unless_the_operator_names_it(with_route: Keyless) -> None:
    with with_route.proxied.another_proxy(SERVICE_PROXY_ALLOW_PRIVATE_HOSTS="") as proxy:
        assert refusal(with_route.gateway(proxy=proxy).get("/echo")) == (403, "address_blocked")

    assert with_route.upstream.connections() == 0


MALFORMED = {
    "no http": b"hello\r\n\r\n",
    "a TLS handshake": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "binary": bytes(range(1, 10)) + b"\r\n\r\n",
    "an old protocol": b"GET /up/echo\r\n\r\n",
    "another protocol": b"GET /up/echo HTTP/2.0\r\nHost: a\r\n\r\n",
    "a space in the name": b"GET /up/echo HTTP/1.1\r\nHost : a\r\n\r\n",
    "no colon": b"GET /up/echo HTTP/1.1\r\nHost\r\n\r\n",
    "a folded line": b"GET /up/echo HTTP/1.1\r\nHost: a\r\n b: c\r\n\r\n",
    "a lone return": b"GET /up/echo HTTP/1.1\r\nHost: a\rb: c\r\n\r\n",
    "a zero": b"GET /up/echo HTTP/1.1\r\nHost: a\x00b\r\n\r\n",
    "two lengths": b"POST /up/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "a bad length": b"POST /up/echo HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\na",
    "a negative length": b"POST /up/echo HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
    "length and chunks": (
        b"POST /up/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    ),
    "another coding": b"POST /up/echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n",
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_http_is_400(with_route: Keyless, name: str) -> None:
    raw = MALFORMED[name].replace(
        b"Host: a\r\n", b"Host: a\r\nAuthorization: Bearer %s\r\n" % with_route.token.encode()
    )
    with with_route.proxy.connect() as wire:
        assert refusal(wire.say(raw).hear()) == (400, "malformed_request")
        assert wire.closed

    assert with_route.upstream.requests() == []


@pytest.mark.parametrize(
    "headers", [["X-Big: " + "a" * 65536], [f"X-{number}: {'a' * 1000}" for number in range(70)]], ids=["one", "many"]
)
def test_a_head_that_is_too_long_431(with_route: Keyless, headers: list[str]) -> None:
    with with_route.proxy.connect() as wire:
        assert refusal(wire.say(with_route.head("/up/echo", "GET", *headers)).hear()) == (431, "head_too_large")
        assert wire.closed


def test_a_head_without_end_431(with_route: Keyless) -> None:
    with with_route.proxy.connect() as wire:
        wire.say(b"GET / HTTP/1.1\r\n", *[b"X: " + b"a" * 1000 + b"\r\n"] * 100)
        assert refusal(wire.hear()) == (431, "head_too_large")


@pytest.mark.parametrize(("count", "status"), [(253, 200), (254, 431)])
def test_a_head_of_more_than_256_lines_431(with_route: Keyless, count: int, status: int) -> None:
    # With the first line, the host and the token.
    with with_route.proxy.connect() as wire:
        assert wire.say(with_route.head("/up/echo", "GET", *["A: b"] * count)).hear().status == status


def test_a_head_of_many_empty_headers_431(with_route: Keyless) -> None:
    with with_route.proxy.connect() as wire:
        wire.say(with_route.head("/up/echo", "GET", *["a:"] * 15_000))
        assert refusal(wire.hear()) == (431, "head_too_large")
        assert wire.closed


def test_a_head_of_sixty_kilobytes_passes(with_route: Keyless) -> None:
    with with_route.proxy.connect() as wire:
        assert wire.say(with_route.head("/up/echo", "GET", "X-Big: " + "a" * 60_000)).hear().status == 200


@pytest.mark.parametrize("method", ["TRACE", "get", "A" * 21])
def test_some_methods_are_not_forwarded(with_route: Keyless, method: str) -> None:
    with with_route.proxy.connect() as wire:
        assert refusal(wire.say(with_route.head("/up/echo", method)).hear()) == (400, "method_not_forwarded")


# Some readers take these for a tunnel, whose request has no body; then its body would be the next request.
CONNECTS = {
    "with a length": "Content-Length: {size}\r\n\r\n{next}",
    "with a chunk": "Transfer-Encoding: chunked\r\n\r\n{hex}\r\n{next}\r\n0\r\n\r\n",
    "without a body": "\r\n",
}


@pytest.mark.parametrize("framing", CONNECTS)
@pytest.mark.parametrize("form", ["connect {url}", "Connect {url}", "connect {where}", "connect /up/echo"])
def test_a_tunnel_is_only_asked_for_in_capitals_400(with_route: Keyless, form: str, framing: str) -> None:
    where = f"localhost:{with_route.upstream.port}"
    inner = with_route.head("/up/smuggled").decode()
    tokens = f"Authorization: Bearer {with_route.token}\r\nProxy-Authorization: Bearer {with_route.token}\r\n"
    rest = CONNECTS[framing].format(size=len(inner), hex=f"{len(inner):x}", next=inner)
    with with_route.proxy.connect() as wire:
        wire.say(f"{form.format(url=f'http://{where}/', where=where)} HTTP/1.1\r\nHost: a\r\n{tokens}{rest}".encode())
        assert refusal(wire.hear())[0] == 400
        if framing != "without a body":
            assert wire.closed

    assert with_route.upstream.requests() == []


def test_more_requests_than_the_limit_429(with_route: Keyless) -> None:
    with with_route.proxied.another_proxy(SERVICE_RATE_LIMIT_MAX="3", SERVICE_RATE_LIMIT_WINDOW_SECONDS="600") as proxy:
        client = with_route.gateway(proxy=proxy)
        answers = [client.get("/echo") for _ in range(4)]

    assert [answer.status_code for answer in answers[:3]] == [200] * 3
    assert refusal(answers[3]) == (429, "rate_limited")
    assert int(answers[3].headers["Retry-After"]) > 0


def test_more_connections_than_an_agent_may_have_429(with_route: Keyless) -> None:
    head, wires, good = with_route.head("/up/other", "HEAD"), list[Wire](), list[Answer | None]()
    # Some at once: one after the other, the first have waited too long for their next head on a busy machine.
    for _ in range(4):
        some = [with_route.proxy.connect().say(head) for _ in range(64)]
        good += [wire.hear(head_only=True) for wire in some]
        wires += some
    wires.append(with_route.proxy.connect().say(head))
    last = wires[-1].hear(head_only=True)
    for wire in wires:
        wire.socket.close()

    assert {answer.status if answer else None for answer in good} == {200}
    assert last is not None
    assert last.status == 429
    # A place becomes free with the connection.
    assert eventually(lambda: with_route.gateway().get("/echo").status_code, 200) == 200


def test_a_secret_cannot_be_read_while_the_signer_is_away_503(with_route: Keyless) -> None:
    service = with_route.proxied
    client = with_route.gateway()
    service.kill("signer")
    try:
        answer = client.get("/echo")
    finally:
        service.start("signer")

    assert refusal(answer)[0] == 503
    assert answer.headers["Retry-After"]
    assert client.get("/echo").status_code == 200


def test_cached_routes_keep_working_while_the_signer_is_away(with_route: Keyless) -> None:
    service, client = with_route.proxied, with_route.gateway()
    # More than once: news of the route just made may still be on its way, and drops what is known.
    assert {client.get("/echo").status_code for _ in range(20)} == {200}
    service.kill("signer")
    try:
        answers = [client.get("/echo").status_code for _ in range(5)]
    finally:
        service.start("signer")

    assert answers == [200] * 5


@pytest.fixture
async def broken_standing(proxy_world: Proxied) -> None:
    """Nobody may ask how an agent stands: a fault that nobody foresaw."""
    async with owner_of(proxy_world.database) as owner:
        await owner.execute("REVOKE EXECUTE ON FUNCTION proxy_standing FROM custody_proxy")
        yield
        await owner.execute("GRANT EXECUTE ON FUNCTION proxy_standing TO custody_proxy")
    # A request that is still under way is looked at each second, and meets the same fault.
    proxy_world.faults()


def test_a_fault_of_our_own_500(with_route: Keyless, broken_standing: None) -> None:
    answer = with_route.gateway().get("/echo")

    assert refusal(answer) == (500, "internal")
    assert "permission" not in answer.text
    (fault,) = with_route.proxied.faults()
    assert answer.json()["data"]["requestId"] in fault
    assert with_route.upstream.connections() == 0


async def test_broken_database_connections_are_reopened(with_route: Keyless) -> None:
    client = with_route.gateway()
    assert client.get("/echo").status_code == 200
    async with owner_of(with_route.proxied.database) as owner:
        await owner.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'custody_proxy'"
            " AND datname = current_database()"
        )

    assert eventually(lambda: client.get("/echo").status_code, 200, 3) == 200
    with new_keyless(with_route.proxied) as other:
        other.route()
        assert eventually(lambda: other.gateway().get("/echo").status_code, 200, 3) == 200


def test_an_upstream_that_does_not_answer_504(with_route: Keyless, impatient: Proxy) -> None:
    client = with_route.gateway(proxy=impatient)

    answers = [client.get("/stall"), client.post("/stall", content=b"a" * 1000)]

    assert [refusal(answer) for answer in answers] == [(504, "upstream_timeout")] * 2


def test_an_upstream_that_does_not_finish_its_handshake_504(keyless: Keyless, impatient: Proxy) -> None:
    keyless.route("mute")

    assert refusal(keyless.gateway("mute", impatient).get("/")) == (504, "upstream_timeout")


def test_after_a_revocation_the_token_is_401(with_route: Keyless) -> None:
    client = with_route.gateway()
    assert client.get("/echo").status_code == 200

    with_route.tenant.ok("DELETE", f"/agents/{with_route.agent.id}/tokens")

    assert eventually(lambda: client.get("/echo").status_code, 401, 2) == 401
