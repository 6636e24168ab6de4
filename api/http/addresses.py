"""The origin of a request: the address in front of our own proxies, and the network that counts as one client."""

import functools
import ipaddress
import re
from collections.abc import Iterable, Sequence
from typing import Final

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
# A client with one IPv6 address usually controls the whole /64 network that its provider assigned.
_CLIENT_BITS: Final = 64
# More proxies than this are not ours; every one of them costs a reading.
MAX_HOPS: Final = 32
# The same few ask again and again. Kept are addresses only: text that is none raises.
_parsed = functools.lru_cache(maxsize=4096)(ipaddress.ip_address)
_WITH_PORT = re.compile(r"(?:\[([^\[\]]*)\]|([0-9.]+))(?::[0-9]{1,5})?\Z")


def client_of(peer: str, forwarded: Iterable[str], trusted: Sequence[Network]) -> str:
    """The client's address, given the peer's and all lines of X-Forwarded-For in their order.

    Each proxy appends the address that it was asked from, in the last line or in one of its own; so the first from the
    right that is not one of our own proxies is the client's, and what stands left of it is anybody's word. The peer's
    address where it is not trusted, where everybody is, and where what a proxy wrote is no address.
    """
    here = read(peer)
    if here is None or not _is_one(here, trusted):
        return str(here or peer)
    for part in reversed(",".join(forwarded).rsplit(",", MAX_HOPS)[-MAX_HOPS:]):
        found = read(part)
        if found is None:
            break
        if not _is_one(found, trusted):
            return str(found)
    return str(here)


def counted_as(address: str) -> str:
    """The name under which an address shares a limit: itself, or the network of an IPv6 address."""
    found = read(address)
    if not isinstance(found, ipaddress.IPv6Address):
        return str(found or address)
    return str(ipaddress.IPv6Network((int(found), _CLIENT_BITS), strict=False))


def read(text: str) -> Address | None:
    """An address with or without port and brackets, in its one spelling; None where it is none.

    An IPv4 address within IPv6 (::ffff:192.0.2.1) is the IPv4 address.
    """
    text = text.strip()
    found = _WITH_PORT.match(text)
    try:
        address = _parsed((found[1] or found[2] or "") if found else text)
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, ipaddress.IPv6Address) else address


def _is_one(address: Address, networks: Sequence[Network]) -> bool:
    return any(address in network for network in networks)
