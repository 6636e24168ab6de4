"""Hosts that are IP addresses: dialled where the operator lists them, and nowhere else."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import msgspec
import pytest

from ops import places
from tests.fixtures.deployments import database_apart
from tests.fixtures.proxied import Keyless, Proxied, Proxy, new_keyless
from tests.outside.upstream import Upstream
from tests.proxy.envelope import refusal

SETTING = "SERVICE_PROXY_ALLOW_PRIVATE_HOSTS"
HOST = "127.0.0.1"


@pytest.fixture(scope="module")
def listing(postgres_home: places.Home, worker_id: str, upstream: Upstream) -> Iterator[Proxied]:
    """A deployment whose operator lists one address."""
    running = Proxied(database_apart(postgres_home, f"{worker_id}_listing"), upstream, **{SETTING: HOST})
    try:
        running.start("signer", "identity", "api", "proxy")
        yield running
    finally:
        running.stop()
        shutil.rmtree(running.home)


@pytest.fixture
def by_address(listing: Proxied) -> Iterator[Keyless]:
    """An agent with a route to the upstream by its address."""
    listing.upstream.forget()
    listing.faults()
    with new_keyless(listing) as made:
        made.route(hostPattern=f"{HOST}:{listing.upstream.port}")
        yield made
    assert listing.faults() == []


def get(keyless: Keyless, proxy: Proxy | None = None, server: str = "main") -> httpx.Response:
    return keyless.gateway(f"proxy/{HOST}:{keyless.upstream.ports[server]}", proxy).get("/echo")


def test_a_host_that_is_an_address_is_called_at_the_gateway(by_address: Keyless) -> None:
    assert get(by_address).status_code == 200

    (heard,) = by_address.upstream.requests()
    assert heard.all("host") == [f"{HOST}:{by_address.upstream.port}"]
    assert heard.all("authorization") == [f"Bearer {by_address.value}"]
    # An address is no name to ask for (RFC 6066, 3).
    assert [line["sni"] for line in by_address.upstream.lines("hello")] == [None]


def test_a_host_that_is_an_address_is_called_in_a_tunnel(by_address: Keyless) -> None:
    url = f"https://{HOST}:{by_address.upstream.port}/echo"
    with httpx.Client(
        proxy=by_address.proxy_url(), verify=by_address.proxied.trust(), trust_env=False, timeout=60
    ) as client:
        answer = client.get(url)

    assert answer.status_code == 200
    assert by_address.upstream.requests()[0].all("authorization") == [f"Bearer {by_address.value}"]


def test_the_certificate_must_hold_for_the_address(by_address: Keyless) -> None:
    by_address.route("wrong-name", hostPattern=f"{HOST}:{by_address.upstream.ports['wrong-name']}")

    assert refusal(get(by_address, server="wrong-name")) == (502, "upstream_failed")
    assert by_address.upstream.requests() == []


def test_a_redirect_to_the_address_stays_at_the_gateway(by_address: Keyless) -> None:
    at = f"proxy/{HOST}:{by_address.upstream.port}"
    to = f"https://{HOST}:{by_address.upstream.port}/next"

    answer = by_address.gateway(at).get("/redirect", params={"to": to})

    assert answer.headers["location"].endswith(f"/{at}/next")


@pytest.mark.parametrize("port", [False, True])
def test_a_network_may_be_listed_or_a_port_of_an_address(by_address: Keyless, port: bool) -> None:
    entry = f"{HOST}:{by_address.upstream.port}" if port else "127.0.0.0/8"
    with by_address.proxied.another_proxy(**{SETTING: f"10.0.0.0/8, {entry}"}) as proxy:
        assert get(by_address, proxy).status_code == 200


@pytest.mark.parametrize("entry", ["0.0.0.0/0", "10.0.0.0/8", f"{HOST}:1", "127.0.0.2", "[::1],*"])
def test_an_address_that_is_not_listed_is_blocked(by_address: Keyless, entry: str) -> None:
    with by_address.proxied.another_proxy(**{SETTING: entry}) as proxy:
        assert refusal(get(by_address, proxy)) == (403, "address_blocked")

    assert by_address.upstream.connections() == 0


@pytest.mark.parametrize("entry", ["", "localhost", "*"])
def test_where_no_address_is_listed_a_host_is_a_name(by_address: Keyless, entry: str) -> None:
    with by_address.proxied.another_proxy(**{SETTING: entry}) as proxy:
        answer = get(by_address, proxy)

    assert refusal(answer) == (400, "malformed_target")
    assert "write a name" in answer.json()["error"]["message"]


NEVER = ["169.254.169.254", "169.254.1.1", "fe80::1", "100.100.100.200", "::ffff:127.0.0.1", "0.0.0.0"]
NAMES = {
    "one.upstream.test": [[HOST]],
    "turns.upstream.test": [[HOST], ["10.9.9.9"]],
    "mixed.upstream.test": [[HOST, "10.9.9.9"]],
    **{f"n{number}.upstream.test": [[address]] for number, address in enumerate(NEVER)},
}


def test_a_name_may_lead_to_a_listed_address_and_is_judged_at_each_dial(
    by_address: Keyless, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file: Path = tmp_path_factory.mktemp("names") / "names.json"
    file.write_bytes(msgspec.json.encode(NAMES))
    by_address.route(hostPattern=f"*.upstream.test:{by_address.upstream.port}")
    listed = {SETTING: f"{HOST}, 169.254.0.0/16, fe80::/10, 100.100.100.200, ::ffff:7f00:1, 0.0.0.0"}

    with by_address.proxied.another_proxy("tests.outside.rebinding_proxy", str(file), **listed) as proxy:

        def ask(host: str) -> httpx.Response:
            return by_address.gateway(f"proxy/{host}:{by_address.upstream.port}", proxy).get("/echo")

        assert ask("one.upstream.test").status_code == 200
        assert ask("turns.upstream.test").status_code == 200
        for host in ("turns.upstream.test", "mixed.upstream.test", *(name for name in NAMES if name.startswith("n"))):
            assert refusal(ask(host)) == (403, "address_blocked"), host


def test_a_route_has_no_address_where_the_operator_lists_none(keyless: Keyless) -> None:
    said = {"hostPattern": HOST, "injectAs": "header", "injectKey": "X-Key", "secretId": keyless.secret["id"]}

    answer = keyless.tenant.post("/secrets/routes", json=said)

    assert (answer.status_code, answer.json()["data"]["code"]) == (400, "invalid_route")
    assert "lists none; write a name" in answer.json()["error"]
