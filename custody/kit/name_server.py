"""The name server that the operator names, without the library that asks it: the operator's command looks at it too."""

from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from custody.kit.environment import BadSetting, Environment

VARIABLE: Final = "SERVICE_DNS_SERVER"
_PORT = 53


def load(source: Environment) -> tuple[str, int] | None:
    """The name server, written as an address with or without a port; None: the system's."""
    value = source.get(VARIABLE, "").strip()
    if not value:
        return None
    try:
        parts = urlsplit(f"//{value}")
        if parts.hostname is None or parts.netloc != value or "@" in value or parts.port == 0:
            raise ValueError
        return str(ip_address(parts.hostname)), parts.port or _PORT
    except ValueError:
        raise BadSetting(VARIABLE, "must be an address such as 10.0.0.2, 10.0.0.2:5353 or [fd00::2]:53") from None
