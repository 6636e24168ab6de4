"""Addresses that may be dialled when somebody else names where to."""

import ipaddress

from hypothesis import given
from hypothesis import strategies as st

from custody.kit.addresses import LOOPBACK, PRIVATE, refusal
from tests.fixtures.each import each

LEAVES = {"none": frozenset(), "loopback": LOOPBACK, "private": PRIVATE}

GLOBAL = ["1.1.1.1", "8.8.8.8", "151.101.1.1", "2606:4700:4700::1111", "2a00:1450:4001::1", "223.255.255.254"]
# Admitted for hosts that the operator names.
ADMISSIBLE = {
    "127.0.0.1": "loopback",
    "127.255.255.255": "loopback",
    "::1": "loopback",
    "10.0.0.1": "private",
    "172.16.0.1": "private",
    "172.31.255.255": "private",
    "192.168.1.1": "private",
    "fc00::1": "private",
    "fd12:3456::1": "private",
    "100.64.0.1": "cgnat",
    "100.127.255.255": "cgnat",
}
NEVER = {
    "0.0.0.0": "unspecified",
    "::": "unspecified",
    "0.1.2.3": "reserved",
    "169.254.169.254": "metadata",
    "169.254.170.2": "metadata",
    "169.254.170.23": "metadata",
    "fd00:ec2::254": "metadata",
    "100.100.100.200": "metadata",
    "168.63.129.16": "metadata",
    "192.0.0.192": "metadata",
    "fd20:ce::254": "metadata",
    "fe80::a9fe:a9fe%eth0": "metadata",
    "169.254.0.1": "link_local",
    "169.254.255.255": "link_local",
    "fe80::1": "link_local",
    "fe80::1%eth0": "link_local",
    "224.0.0.1": "multicast",
    "239.255.255.255": "multicast",
    "ff02::1": "multicast",
    "ff0e::1": "multicast",
    "::ffff:127.0.0.1": "mapped",
    "::ffff:8.8.8.8": "mapped",
    "::ffff:169.254.169.254": "mapped",
    "::ffff:0:127.0.0.1": "mapped",
    "64:ff9b::7f00:1": "nat64",
    "64:ff9b::808:808": "nat64",
    "64:ff9b:1::1": "nat64",
    "2002:7f00:1::": "6to4",
    "2002:808:808::1": "6to4",
    "192.88.99.1": "6to4",
    "2001::1": "teredo",
    "2001:0:53aa:64c:0:fbff:8080:8080": "teredo",
    "240.0.0.1": "reserved",
    "255.255.255.255": "reserved",
    "192.0.2.1": "reserved",
    "198.51.100.1": "reserved",
    "203.0.113.1": "reserved",
    "198.18.0.1": "reserved",
    "192.0.0.1": "reserved",
    "2001:db8::1": "reserved",
    "2001:20::1": "reserved",
    "3fff::1": "reserved",
    "fec0::1": "reserved",
    "::127.0.0.1": "reserved",
    "100::1": "reserved",
    "4000::1": "reserved",
    "5f00::1": "reserved",
    "64:ff9b:2::1": "reserved",
    "localhost": "reserved",
    "": "reserved",
    "0x7f.1": "reserved",
    "127.1": "reserved",
    "010.0.0.1": "reserved",
}


@each("address", GLOBAL)
@each("leave", LEAVES)
def test_a_global_address_may_be_dialled(address, leave):
    assert refusal(address, LEAVES[leave]) is None


@each("address", ADMISSIBLE)
def test_a_private_address_may_be_dialled_only_with_leave(address):
    assert refusal(address) == ADMISSIBLE[address]
    assert refusal(address, PRIVATE) is None


@each("address", ADMISSIBLE)
def test_leave_for_this_machine_opens_no_network(address):
    said = ADMISSIBLE[address]

    assert refusal(address, LOOPBACK) == (None if said == "loopback" else said)


@each("address", NEVER)
@each("leave", [*LEAVES, "everything"])
def test_no_leave_opens_the_other_addresses(address, leave):
    assert refusal(address, LEAVES.get(leave, frozenset(NEVER.values()))) == NEVER[address]


@given(st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)))
def test_dialled_addresses_are_global_by_the_standard_library_too(address):
    if refusal(str(address)) is None:
        assert address.is_global
        assert not any((address.is_multicast, address.is_private, address.is_reserved, address.is_link_local))


@given(st.ip_addresses(v=4))
def test_an_address_inside_another_is_never_dialled(address):
    packed = int(address)
    carriers = [
        ipaddress.IPv6Address((0xFFFF << 32) | packed),
        ipaddress.IPv6Address((0x64FF9B << 96) | packed),
        ipaddress.IPv6Address((0x2002 << 112) | packed << 80),
        ipaddress.IPv6Address((0x20010000 << 96) | packed),
        ipaddress.IPv6Address(packed),
    ]

    assert all(refusal(str(carrier), PRIVATE) for carrier in carriers if packed != 1)
