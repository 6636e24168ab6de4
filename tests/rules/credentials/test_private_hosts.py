"""Hosts and addresses that the operator lets be private."""

import pytest

from custody.credentials import private_hosts
from custody.credentials.rules import InvalidRoute, check
from custody.credentials.spelling import Misspelled, is_address, read_host
from custody.credentials.types import RouteFields
from custody.kit.environment import BadSetting
from signer import settings
from tests.fixtures.each import each


def read_list(text):
    return private_hosts.read({private_hosts.NAME: text})


def signer_settings(text):
    return settings.read({private_hosts.NAME: text, "SERVICE_DATABASE_URL_SIGNER": "postgresql://s:s@localhost/c"})


def test_an_operator_names_hosts_by_pattern():
    found = read_list("localhost, *.internal,db.example.com:8443,")

    assert found.allow("localhost", 9000)
    assert found.allow("a.b.internal", 443)
    assert not found.allow("internal", 443)
    assert not found.allow("localhost.evil.com", 443)
    assert found.allow("db.example.com", 8443)
    assert not found.allow("db.example.com", 443)
    assert not read_list("").allow("localhost", 443)
    assert read_list("*").allow("anything.example", 443)
    assert not read_list("*").allow("10.0.0.5", 443)
    assert not read_list("*").have("10.0.0.5", 443)


@each(
    ("text", "has", "has_not"),
    [
        ("10.0.0.0/8", [("10.1.2.3", 443), ("10.255.0.1", 1)], [("11.0.0.1", 443), ("fd00::1", 443), ("nonsense", 1)]),
        ("192.168.1.5", [("192.168.1.5", 443), ("192.168.1.5", 8443)], [("192.168.1.6", 443)]),
        ("192.168.1.5:8443", [("192.168.1.5", 8443)], [("192.168.1.5", 443)]),
        ("fd00::/8", [("fd12::1", 443), ("fd12::1%eth0", 443)], [("fe80::1", 443), ("10.0.0.1", 443)]),
        ("fd00::5", [("fd00::5", 1)], [("fd00::6", 1)]),
        ("[fd00::5]:8443", [("fd00::5", 8443)], [("fd00::5", 443)]),
        # This machine is nobody's network.
        ("0.0.0.0/0,::/0", [("10.0.0.1", 1), ("8.8.8.8", 1)], [("127.0.0.1", 1), ("::1", 1), ("127.9.9.9", 1)]),
        ("127.0.0.0/8, ::1", [("127.0.0.1", 1), ("127.9.9.9", 1), ("::1", 1)], [("10.0.0.1", 1)]),
        ("127.0.0.1:8443", [("127.0.0.1", 8443)], [("127.0.0.1", 8444), ("127.0.0.2", 8443)]),
    ],
)
def test_an_operator_names_addresses_and_networks(text, has, has_not):
    found = read_list(text)

    assert found.names == ()
    assert [one for one in has if not found.have(*one)] == []
    assert [one for one in has_not if found.have(*one)] == []


@each("text", ["10.0.0.1/8", "10.0.0.300", "10.0.0", "[fd00::5", "[10.0.0.1]", "10.0.0.1:0", "a b", "127.1"])
def test_an_entry_that_is_neither_is_refused(text):
    with pytest.raises(BadSetting, match=private_hosts.NAME):
        read_list(f"localhost,{text}")


ADDRESSES = ["10.0.0.1", "127.0.0.1", "[::1]", "[fd00::5]", "[2001:db8::1:0]"]
SPELLINGS = [
    *("10.0.0.01", "010.0.0.1", "10.0.0.256", "10.1", "0xa.0.0.1", "[FD00::5]", "[fd00::05]", "[fd00:0::5]", "fd00::5"),
    *("[10.0.0.1]", "[fe80::1%lo]", "[]", "[::1]x", "10.0.0.1:", "10.0.0.1:99999", "[::1]:", "10.0.0.1.", "a@10.0.0.1"),
]


@each("text", ADDRESSES)
def test_an_address_has_one_notation(text):
    assert read_host(text, addresses=True) == (text, None)
    assert read_host(f"{text}:8443", addresses=True) == (text, 8443)
    assert is_address(text)
    with pytest.raises(Misspelled):
        read_host(text)


@each("text", SPELLINGS)
def test_another_notation_is_refused(text):
    with pytest.raises(Misspelled):
        read_host(text, addresses=True)


@each("text", ["localhost", "a.example.com", "1.example.com", "x-1"])
def test_a_name_is_no_address(text):
    assert not is_address(text)


def test_a_route_has_an_address_only_where_the_operator_lists_one():
    said = RouteFields(host_pattern="10.0.0.1:8443", inject_as="header", inject_key="X-Key")

    assert check(said, allow_broad=False, allow_cookies=False, allow_addresses=True) == said
    with pytest.raises(InvalidRoute, match="IP address"):
        check(said, allow_broad=False, allow_cookies=False)


@each("text", ["", "localhost", "*.internal,1.example.com", "db.example.com:8443"])
def test_the_signer_hears_of_no_address_where_none_is_listed(text):
    assert not signer_settings(text).allow_address_routes


@each("text", ["10.0.0.0/8", "localhost, 10.0.0.1:8443", "localhost,fd00::/8", "[fd00::5]:1", "::1"])
def test_the_signer_hears_of_addresses_that_are_listed(text):
    assert signer_settings(text).allow_address_routes
