"""The record of every request, and its counters."""

import uuid
from collections.abc import Iterator

import pytest

from custody.kit.instants import read_instant
from tests.fixtures.deployments import owner_of
from tests.fixtures.eventually import eventually
from tests.fixtures.proxied import Keyless, Proxied, Proxy
from tests.proxy.written import rows


async def test_a_request_leaves_one_row_without_credential_and_query(keyless: Keyless) -> None:
    route, request_id = keyless.route(), uuid.uuid4().hex
    headers = {"X-Request-Id": request_id, "User-Agent": "a robot"}

    keyless.gateway().post("/v1/count?password=hidden", content=b"12345", headers=headers)

    (row,) = await rows(keyless, 1)
    metadata = row.pop("metadata")
    host = f"localhost:{keyless.upstream.port}"
    assert row == {
        "actor_type": "agent",
        "actor_id": keyless.agent.id,
        "action": "proxy.request",
        "resource_type": "upstream",
        "resource_id": host,
        "ip_address": "127.0.0.1",
        "user_agent": "a robot",
        "request_id": request_id,
        "written_by": "custody_proxy",
    }
    assert metadata.pop("milliseconds") >= 0
    assert metadata.pop("responseBytes") > 0
    assert read_instant(metadata.pop("at")) is not None
    assert metadata == {
        "method": "POST",
        "host": host,
        "path": "/v1/count",
        "form": "gateway",
        "status": 200,
        "refused": None,
        "abandoned": False,
        "routeId": route["id"],
        "secretId": keyless.secret["id"],
        "secretVersion": 1,
        "injected": True,
        "requestBytes": 5,
    }


async def test_every_form_and_every_end_leaves_one_row(keyless: Keyless) -> None:
    keyless.route()
    gateway = keyless.gateway()
    gateway.get("/status?code=404")
    keyless.gateway("nothing").get("/")
    gateway.get("/close")
    keyless.forward().get("/echo")
    with keyless.proxy.connect() as wire:
        wire.say(keyless.head("/up/stall?after=body"))
        assert wire.hear_bytes(10)

    found = [row["metadata"] for row in await rows(keyless, 6)]

    told = sorted((one["form"], one["status"], one["refused"] or "", one["abandoned"]) for one in found)
    assert told == [
        ("connect", 200, "", False),
        ("gateway", 200, "", True),
        ("gateway", 403, "unknown_alias", False),
        ("gateway", 404, "", False),
        ("gateway", 502, "upstream_failed", False),
        ("tunnel", 200, "", False),
    ]


async def test_without_a_valid_token_there_is_no_row(keyless: Keyless) -> None:
    client = keyless.gateway()
    client.get("/", headers={"Authorization": "Bearer nonsense"})
    client.get("/nothing")

    assert len(await rows(keyless, 1)) == 1


STRANGE = {
    "a user agent of no alphabet": b"User-Agent: \xff\xfe",
    "a user agent without end": b"User-Agent: " + b"a" * 60_000,
    "a user agent that looks like an escape": b"User-Agent: \\u0000\\ud800",
    "a request id of no alphabet": b"X-Request-Id: \xff\xfe",
    "an empty request id": b"X-Request-Id:",
    "a request id without end": b"X-Request-Id: " + b"a" * 60_000,
    "a request id with quotes": b"X-Request-Id: a'\"\\",
    "two request ids": b"X-Request-Id: a\r\nX-Request-Id: b",
}


@pytest.mark.parametrize("name", STRANGE)
async def test_whatever_an_agent_says_of_itself_its_request_leaves_a_row(with_route: Keyless, name: str) -> None:
    with with_route.proxy.connect() as wire:
        answer = wire.say(with_route.head("/up/echo")[:-2], STRANGE[name], b"\r\n\r\n").hear()

    (row,) = await rows(with_route, 1)
    assert answer.status == 200
    assert answer.all("x-service-request-id") == [row["request_id"]]
    assert len(row["request_id"]) <= 128
    assert len(row["user_agent"] or "") <= 256


async def test_a_method_and_a_path_that_are_no_text_leave_a_row(with_route: Keyless) -> None:
    for head in (with_route.head("/up/echo", "G\xffT"), with_route.head("/up/\xff")):
        with with_route.proxy.connect() as wire:
            assert wire.say(head).hear().status == 400

    assert {row["metadata"]["status"] for row in await rows(with_route, 2)} == {400}


async def test_a_row_that_the_database_does_not_take_holds_up_no_other(with_route: Keyless) -> None:
    async with owner_of(with_route.proxied.database) as owner:
        await owner.execute("ALTER TABLE audit ADD CONSTRAINT dull CHECK (user_agent <> 'refused') NOT VALID")
        client = with_route.gateway()
        for name in ("first", "refused", "last"):
            assert client.get("/echo", headers={"User-Agent": name}).status_code == 200
        found = await rows(with_route, 2)
        await owner.execute("ALTER TABLE audit DROP CONSTRAINT dull")

    assert [row["user_agent"] for row in found] == ["first", "last"]
    (fault,) = eventually(with_route.proxied.faults)
    assert "an audit row was not taken" in fault


async def test_no_row_holds_the_credential_or_the_token(keyless: Keyless) -> None:
    keyless.route(injectAs="query", injectKey="key", injectFormat="{value}")
    client = keyless.gateway()
    client.get(f"/echo?key={keyless.token}")
    client.get("/echo", headers={"User-Agent": keyless.value})

    text = str(await rows(keyless, 2))

    assert keyless.token not in text


async def test_a_websocket_leaves_one_row_when_it_ends(with_route: Keyless) -> None:
    with with_route.proxy.connect() as wire:
        key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
        wire.say(with_route.head("/up/ws", "GET", "Connection: Upgrade", "Upgrade: websocket", key))
        assert wire.hear(head_only=True).status == 101
        wire.say(b"\x81\x82\0\0\0\0hi")
        assert wire.hear_bytes(4) == b"\x81\x02hi"

    (row,) = await rows(with_route, 1)
    assert row["metadata"]["status"] == 101
    assert (row["metadata"]["requestBytes"], row["metadata"]["responseBytes"]) == (8, 4)


@pytest.fixture(scope="module")
def apart(proxy_world: Proxied) -> Iterator[Proxy]:
    """A proxy that is asked by nobody else, so that its figures are those of one test.

    The other keeps, up to its time, connections of agents that hung up on an upload which nobody takes.
    """
    with proxy_world.another_proxy() as proxy:
        yield proxy


def connections(proxy: Proxy) -> float:
    """Return the number of agents that are connected."""
    return proxy.metrics()["custody_proxy_connections"]


def settle(proxy: Proxy, *kinds: tuple[int, str]) -> list[float]:
    """Requests that ended so. A request is counted before its connection is over, so none is still to be counted."""
    eventually(lambda: connections(proxy), 0)
    return [proxy.count(*kind) for kind in kinds]


@pytest.mark.parametrize(
    ("path", "status", "reason"),
    [
        ("/up/echo", 200, ""),
        ("/up/status?code=404", 404, ""),
        ("/none/x", 403, "unknown_alias"),
        ("/up/close", 502, "upstream_failed"),
        ("/up/%2e%2e", 400, "malformed_target"),
    ],
)
def test_requests_are_counted_by_status_and_reason(
    with_route: Keyless, apart: Proxy, path: str, status: int, reason: str
) -> None:
    before = settle(apart, (status, reason))
    with apart.connect() as wire:
        assert wire.say(with_route.head(path)).hear().status == status

    assert settle(apart, (status, reason)) == [before[0] + 1]


def test_requests_without_a_token_and_malformed_ones_are_counted(apart: Proxy) -> None:
    kinds = (401, "bad_token"), (400, "malformed_request")
    before = settle(apart, *kinds)
    with apart.connect() as wire:
        wire.say(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").hear()
        wire.say(b"nonsense\r\n\r\n").hear()

    assert settle(apart, *kinds) == [count + 1 for count in before]


def test_figures_name_neither_agent_nor_tenant_nor_host(with_route: Keyless) -> None:
    with_route.gateway().get("/echo")

    said = str(with_route.proxy.metrics())
    assert "custody_proxy_requests_total" in said
    assert not any(name in said for name in (with_route.agent.id, with_route.tenant.id, "localhost", with_route.token))


def test_the_gauge_of_connections_comes_back(with_route: Keyless, apart: Proxy) -> None:
    eventually(lambda: connections(apart), 0)
    with apart.connect() as wire:
        wire.say(with_route.head("/up/echo")).hear()
        assert connections(apart) == 1

    eventually(lambda: connections(apart), 0)
