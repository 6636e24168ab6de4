"""The addresses that may be dialled when somebody else names them.

Guarantees: only global unicast addresses, and what the caller admits of loopback and private ones; an address that
carries another one inside (mapped, translated, tunnelled) is refused without looking at what it carries; a metadata
service of a cloud, which gives keys to anyone who asks, is never dialled.
"""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final, Literal

Reason = Literal[
    "loopback",
    "private",
    "link_local",
    "metadata",
    "multicast",
    "reserved",
    "unspecified",
    "cgnat",
    "nat64",
    "6to4",
    "teredo",
    "mapped",
]

# Of AWS (instances, containers, pods), Azure, Google, Alibaba, Oracle, Scaleway, Linode and OpenStack.
_METADATA: Final = frozenset(
    map(
        ip_address,
        (
            "169.254.169.254",
            "169.254.169.253",
            "169.254.170.2",
            "169.254.170.23",
            "169.254.42.42",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "fd00:ec2::254",
            "fd00:ec2::253",
            "fd00:ec2::23",
            "fd20:ce::254",
            "fd00:c1::a9fe:a9fe",
            "fd00:42::42",
            "fd00:a9fe:a9fe::1",
            "fe80::a9fe:a9fe",
        ),
    )
)
# The first that holds an address names it; so the narrow ones stand first.
_REASONS: Final[tuple[tuple[Reason, tuple[str, ...]], ...]] = (
    ("unspecified", ("0.0.0.0/32", "::/128")),
    ("loopback", ("127.0.0.0/8", "::1/128")),
    ("private", ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")),
    ("cgnat", ("100.64.0.0/10",)),
    ("link_local", ("169.254.0.0/16", "fe80::/10")),
    ("multicast", ("224.0.0.0/4", "ff00::/8")),
    ("mapped", ("::ffff:0:0/96", "::ffff:0:0:0/96")),
    ("nat64", ("64:ff9b::/96", "64:ff9b:1::/48")),
    ("6to4", ("2002::/16", "192.88.99.0/24")),
    ("teredo", ("2001::/32",)),
    ("reserved", ("2001::/23", "3fff::/20")),
)
_NETWORKS: Final = [(reason, ip_network(text)) for reason, texts in _REASONS for text in texts]
_GLOBAL_UNICAST: Final = ip_network("2000::/3")
# What a caller may admit: this very machine, or whatever is the operator's own.
LOOPBACK: Final[frozenset[Reason]] = frozenset({"loopback"})
PRIVATE: Final[frozenset[Reason]] = LOOPBACK | {"private", "cgnat"}


def refusal(address: str, admitted: frozenset[Reason] = frozenset()) -> Reason | None:
    """Why an address may not be dialled, or None when it may.

    Of what is not global, only LOOPBACK or PRIVATE can be `admitted`.
    """
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return "reserved"
    if parsed in _METADATA:
        return "metadata"
    reason = _reason(parsed)
    return None if reason in admitted & PRIVATE else reason


def _reason(address: IPv4Address | IPv6Address) -> Reason | None:
    for reason, network in _NETWORKS:
        if address in network:
            return reason
    if not address.is_global or (address.version == 6 and address not in _GLOBAL_UNICAST):
        return "reserved"
    return None
