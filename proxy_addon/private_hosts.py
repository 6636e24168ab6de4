"""The hosts that the operator lets have a private address."""

from collections.abc import Sequence

from custody.credentials.patterns import HostPattern


def host_allowed(host: str, patterns: Sequence[HostPattern], *, port: int | None = None) -> bool:
    """Say whether one of the patterns is for this host. A pattern without a port is for every port."""
    return any(
        pattern.matches_name(host) and (not pattern.port_written or pattern.port == port) for pattern in patterns
    )
