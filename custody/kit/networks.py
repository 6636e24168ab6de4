"""Networks, as a variable of the environment names them."""

from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network

from custody.kit.environment import BadSetting


def read(source: Mapping[str, str], name: str) -> list[IPv4Network | IPv6Network]:
    """Read networks with commas between them; an address is a network of one."""
    found = []
    for part in filter(None, (part.strip() for part in source.get(name, "").split(","))):
        try:
            found.append(ip_network(part))
        except ValueError:
            raise BadSetting(name, f"{part!r} is not a network such as 10.0.0.0/8 or 2001:db8::/32") from None
    return found
