"""The hosts and addresses that the operator lets be private, as SERVICE_PROXY_ALLOW_PRIVATE_HOSTS names them.

A pattern of names lets a name lead to any private address. An address, or a network, lets whatever leads there: a route
that has the address itself as its host, or any name. This machine is meant only where the network is of it alone.
"""

import re
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final

import msgspec

from custody.credentials.patterns import HostPattern, InvalidPattern, compile_host
from custody.credentials.spelling import Misspelled, is_address, read_host
from custody.kit.environment import BadSetting

NAME: Final = "SERVICE_PROXY_ALLOW_PRIVATE_HOSTS"
# An address alone, with a port, or a network; a name has a letter, and no two colons.
_BY_ADDRESS = re.compile(r"[0-9.]+(?:[/:].*)?|\[.*|[0-9a-fA-F]*:[^.:]*:.*")


class Place(msgspec.Struct, frozen=True):
    """A network, and a port of it, or None for all."""

    network: IPv4Network | IPv6Network
    port: int | None

    def has(self, address: str, port: int) -> bool:
        """Say whether an address is in it; one of this machine only where the network is of nothing else."""
        parsed = ip_address(address.partition("%")[0])
        return (
            parsed in self.network
            and self.port in (None, port)
            and (self.network.is_loopback or not parsed.is_loopback)
        )


class PrivateHosts(msgspec.Struct, frozen=True):
    """Every entry of the list."""

    names: tuple[HostPattern, ...] = ()
    places: tuple[Place, ...] = ()

    def allow(self, host: str, port: int) -> bool:
        """Say whether a name may lead to any private address. A pattern without a port is for every port."""
        return not is_address(host) and any(
            pattern.matches_name(host) and (not pattern.port_written or pattern.port == port) for pattern in self.names
        )

    def have(self, address: str, port: int) -> bool:
        """Say whether an address is listed itself."""
        try:
            return any(place.has(address, port) for place in self.places)
        except ValueError:
            return False


NONE_PRIVATE: Final = PrivateHosts()


def read(source: Mapping[str, str]) -> PrivateHosts:
    """Read the list, with commas between its entries."""
    names: list[HostPattern] = []
    places: list[Place] = []
    for part in filter(None, (part.strip() for part in source.get(NAME, "").split(","))):
        try:
            if _BY_ADDRESS.fullmatch(part):
                places.append(_place(part))
            else:
                names.append(compile_host(part))
        except InvalidPattern as problem:
            raise BadSetting(NAME, f"{part!r}: {problem.message}") from None
        except (Misspelled, ValueError):
            said = f"{part!r} is no address (10.0.0.5, [fd00::5]:8443) and no network (10.0.0.0/8)"
            raise BadSetting(NAME, said) from None
    return PrivateHosts(tuple(names), tuple(places))


def _place(part: str) -> Place:
    try:
        return Place(ip_network(part), None)
    except ValueError:
        host, port = read_host(part, addresses=True)
        return Place(ip_network(host.strip("[]")), port)
