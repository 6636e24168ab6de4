"""The addresses of processes' metrics, without what serves them: health checks and the operator's command ask."""

from collections.abc import Mapping
from ipaddress import ip_address

from custody.kit import environment as read

HOST = "SERVICE_METRICS_HOST"


def host(environment: Mapping[str, str]) -> str:
    """The address that every listener of metrics binds: loopback, unless the operator names another of the machine."""
    value = read.text(environment, HOST, "127.0.0.1")
    try:
        # Never a name: what it leads to may change, and metrics have no credential.
        return str(ip_address(value))
    except ValueError:
        complaint = f"must be an IP address of this machine such as 127.0.0.1, ::1 or 0.0.0.0, not {value!r}"
        raise read.BadSetting(HOST, complaint) from None


def local_url(listening: str, port: int) -> str:
    """Build the URL by which this machine reaches what listens there."""
    found = "127.0.0.1" if listening in {"0.0.0.0", "::"} else listening  # noqa: S104 - compared, not bound
    return f"http://{f'[{found}]' if ':' in found else found}:{port}"
