"""One connection of an agent, as far as admission cares."""


class Peer:
    """Where it comes from, whose it is, and the tunnel it opened."""

    __slots__ = ("address", "agents", "requests", "token", "tunnel")

    def __init__(self, address: str) -> None:
        self.address = address
        self.agents: set[tuple[str, str]] = set()
        self.requests = 0
        # Set by a CONNECT: whose tunnel it is, and the only host that it leads to.
        self.token: str | None = None
        self.tunnel: tuple[str, int] | None = None

    def __repr__(self) -> str:
        return f"Peer({self.address})"
