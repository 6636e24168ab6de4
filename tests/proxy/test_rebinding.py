"""Names may lead to judged addresses alone: only those are dialled."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import msgspec
import pytest

from tests.fixtures.eventually import eventually
from tests.fixtures.proxied import Keyless, Proxied, Proxy
from tests.fixtures.wire import Wire
from tests.proxy.envelope import refusal

BLOCKED = [
    "127.0.0.1",
    "127.8.9.1",
    "0.0.0.0",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "169.254.169.254",
    "169.254.1.1",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "192.0.2.1",
    "198.18.0.1",
    "203.0.113.9",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:10.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::808:808",
    "64:ff9b:1::1",
    "2002:7f00:1::",
    "2002:808:808::",
    "2001::1",
    "2001:db8::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%lo",
    "fec0::1",
    "ff02::1",
    "nonsense",
    "",
]
# Refused even where the operator lets a host be private.
NEVER = [
    "169.254.169.254",
    "100.100.100.200",
    "fd00:ec2::254",
    "168.63.129.16",
    "169.254.1.1",
    "fe80::1",
    "224.0.0.1",
    "0.0.0.0",
    "::ffff:127.0.0.1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
]
MIXED = [["93.184.215.14", "127.0.0.1"], ["127.0.0.1", "93.184.215.14"]]
NAMES: dict[str, list[list[str]]] = {
    **{f"b{number}.blocked.test": [[address]] for number, address in enumerate(BLOCKED)},
    **{f"n{number}.upstream.test": [[address]] for number, address in enumerate(NEVER)},
    **{f"m{number}.blocked.test": [addresses] for number, addresses in enumerate(MIXED)},
    "mixed.upstream.test": [["127.0.0.1", "169.254.169.254"]],
    # The judged answer leads to the upstream; a second lookup leads elsewhere.
    "turns.upstream.test": [["127.0.0.1"], ["169.254.169.254"]],
    "second.upstream.test": [["::1", "127.0.0.1"]],
    "one.upstream.test": [["127.0.0.1"]],
    "other.upstream.test": [["127.0.0.1"]],
    "nothing.upstream.test": [[]],
    **{f"h{number}.upstream.test": [["127.0.0.1"]] for number in range(20)},
}


@pytest.fixture(scope="module")
def rebound(proxy_world: Proxied, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """A proxy whose resolver is ours."""
    file: Path = tmp_path_factory.mktemp("names") / "names.json"
    file.write_bytes(msgspec.json.encode(NAMES))
    allowed = {"SERVICE_PROXY_ALLOW_PRIVATE_HOSTS": "*.upstream.test", "SERVICE_PROXY_CONNECT_SECONDS": "2"}
    with proxy_world.another_proxy("tests.outside.rebinding_proxy", str(file), **allowed) as proxy:
        yield proxy


@pytest.fixture
def anywhere(keyless: Keyless) -> Keyless:
    """An agent whose routes lead to every name of these tests."""
    keyless.route(hostPattern=f"*.upstream.test:{keyless.upstream.port}")
    keyless.route(hostPattern=f"*.blocked.test:{keyless.upstream.port}")
    return keyless


def get(keyless: Keyless, proxy: Proxy, host: str) -> httpx.Response:
    return keyless.gateway(f"proxy/{host}:{keyless.upstream.port}", proxy).get("/echo")


def test_a_name_that_leads_inside_is_blocked(anywhere: Keyless, rebound: Proxy) -> None:
    found = {address: refusal(get(anywhere, rebound, f"b{n}.blocked.test")) for n, address in enumerate(BLOCKED)}

    assert found == dict.fromkeys(BLOCKED, (403, "address_blocked"))
    assert anywhere.upstream.connections() == 0


def test_some_addresses_are_blocked_even_where_private_ones_are_allowed(anywhere: Keyless, rebound: Proxy) -> None:
    found = {address: refusal(get(anywhere, rebound, f"n{n}.upstream.test")) for n, address in enumerate(NEVER)}

    assert found == dict.fromkeys(NEVER, (403, "address_blocked"))
    assert anywhere.upstream.connections() == 0


@pytest.mark.parametrize("host", ["m0.blocked.test", "m1.blocked.test", "mixed.upstream.test"])
def test_one_bad_answer_among_good_ones_is_blocked(anywhere: Keyless, rebound: Proxy, host: str) -> None:
    assert refusal(get(anywhere, rebound, host)) == (403, "address_blocked")
    assert anywhere.upstream.connections() == 0


def test_the_address_that_was_judged_is_dialled_and_the_name_not_asked_again(anywhere: Keyless, rebound: Proxy) -> None:
    first, second = (get(anywhere, rebound, "turns.upstream.test") for _ in range(2))

    assert first.status_code == 200
    assert refusal(second) == (403, "address_blocked")
    (heard,) = anywhere.upstream.requests()
    assert heard.all("host") == [f"turns.upstream.test:{anywhere.upstream.port}"]
    assert anywhere.upstream.lines("hello")[0]["sni"] == "turns.upstream.test"


def test_the_next_judged_address_is_tried_when_one_does_not_answer(anywhere: Keyless, rebound: Proxy) -> None:
    assert get(anywhere, rebound, "second.upstream.test").status_code == 200


@pytest.mark.parametrize("host", ["nothing.upstream.test", "unknown.upstream.test"])
def test_a_name_that_leads_nowhere_is_a_502(anywhere: Keyless, rebound: Proxy, host: str) -> None:
    assert refusal(get(anywhere, rebound, host)) == (502, "upstream_failed")


def test_two_names_of_one_address_share_no_connection(anywhere: Keyless, rebound: Proxy) -> None:
    names = ("one.upstream.test", "other.upstream.test", "one.upstream.test")
    with rebound.connect() as wire:
        for host in names:
            assert wire.say(anywhere.head(f"/proxy/{host}:{anywhere.upstream.port}/echo")).hear().status == 200

    assert [line["sni"] for line in anywhere.upstream.lines("hello")] == ["one.upstream.test", "other.upstream.test"]


def test_a_connection_to_many_hosts_keeps_few_of_theirs_open(anywhere: Keyless, rebound: Proxy) -> None:
    upstream = anywhere.upstream

    def ask(wire: Wire, host: int) -> int:
        return wire.say(anywhere.head(f"/proxy/h{host}.upstream.test:{upstream.port}/echo")).hear().status

    with rebound.connect() as wire:
        assert {ask(wire, host) for host in range(20)} == {200}
        # At least: what an earlier test had open may close meanwhile.
        eventually(lambda: len(upstream.lines("closed")) >= 12)
        # The last ones were kept.
        assert {ask(wire, host) for host in range(12, 20)} == {200}
        assert len([line for line in upstream.lines("hello") if line["sni"].startswith("h")]) == 20
