"""The client's address, and the name under which it is counted."""

import ipaddress

from hypothesis import assume, given
from hypothesis import strategies as st

from api.http.addresses import client_of, counted_as, read
from tests.fixtures.each import each

PROXIES = [ipaddress.ip_network(network) for network in ("10.0.0.0/8", "fd00::/8")]


@each(
    ("peer", "lines", "client"),
    [
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.7"], "198.51.100.7"),
        ("198.51.100.7", ["203.0.113.1"], "198.51.100.7"),
        # The client's part stands to the left of what our own proxy wrote.
        ("10.0.0.1", ["203.0.113.1, 198.51.100.7"], "198.51.100.7"),
        ("10.0.0.1", ["203.0.113.1", "198.51.100.7"], "198.51.100.7"),
        ("10.0.0.1", ["203.0.113.1", "203.0.113.2, 198.51.100.7", "10.0.0.2"], "198.51.100.7"),
        ("10.0.0.1", ["198.51.100.7, 10.0.0.3", "fd00::2"], "198.51.100.7"),
        ("10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.1"),
        # With ports and brackets, as some proxies write.
        ("10.0.0.1", ["198.51.100.7:4711"], "198.51.100.7"),
        ("10.0.0.1", ["203.0.113.1, [2001:db8::1]:4711"], "2001:db8::1"),
        ("10.0.0.1", ["[2001:db8::1]"], "2001:db8::1"),
        ("10.0.0.1", ["198.51.100.7, 10.0.0.2:80, [fd00::2]:80"], "198.51.100.7"),
        # One spelling.
        ("10.0.0.1", ["2001:DB8:0::0:1"], "2001:db8::1"),
        ("10.0.0.1", ["::ffff:198.51.100.7"], "198.51.100.7"),
        ("::ffff:10.0.0.1", ["198.51.100.7"], "198.51.100.7"),
        ("::ffff:198.51.100.7", [], "198.51.100.7"),
        # No address: what stands left of it is anybody's word.
        ("10.0.0.1", ["203.0.113.1, unknown"], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.1,"], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.1", ""], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.1, _hidden"], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.1, 198.51.100.7:x"], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.1, 198.51.100"], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.1, []:80"], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.1, " + "9" * 5000], "10.0.0.1"),
        ("", ["198.51.100.7"], ""),
    ],
)
def test_the_client_is_whom_the_first_of_our_proxies_saw(peer: str, lines: list[str], client: str) -> None:
    assert client_of(peer, lines, PROXIES) == client


def test_without_trusted_proxies_the_header_is_nothing() -> None:
    assert client_of("10.0.0.1", ["198.51.100.7"], []) == "10.0.0.1"


@given(st.lists(st.text("0123456789.:[], f", max_size=40), max_size=4), st.ip_addresses())
def test_forwarding_headers_written_by_a_client_change_nothing(lines: list[str], seen: object) -> None:
    client = str(read(str(seen)))
    assume(client_of("10.0.0.1", [client], PROXIES) == client)

    assert client_of("10.0.0.1", [*lines, str(seen)], PROXIES) == client


@each(
    ("address", "name"),
    [
        ("198.51.100.7", "198.51.100.7"),
        ("::ffff:198.51.100.7", "198.51.100.7"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::/64"),
        ("", ""),
    ],
)
def test_a_network_of_ipv6_is_one_client(address: str, name: str) -> None:
    assert counted_as(address) == name
