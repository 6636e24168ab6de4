"""One connection of an agent, as far as admission cares."""

from collections.abc import Callable

# Its tenant and its name there.
Agent = tuple[str, str]


class Peer:
    """The origin of a connection, its owner, and the tunnel it opened; `end` ends it."""

    __slots__ = ("address", "agents", "busy", "end", "requests", "token", "tunnel", "until")

    def __init__(self, address: str, end: Callable[[], None]) -> None:
        self.address = address
        self.end = end
        self.agents: set[Agent] = set()
        # A request is under way on it.
        self.busy = False
        self.requests = 0
        # Set by a CONNECT: whose tunnel it is, and the only host that it leads to.
        self.token: str | None = None
        self.tunnel: tuple[str, int] | None = None
        # When the tunnel's token expires, by the monotonic clock.
        self.until = float("inf")

    def __repr__(self) -> str:
        return f"Peer({self.address})"
