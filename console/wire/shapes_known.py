"""Names by which the command palette finds things."""

import msgspec


class KnownAgent(msgspec.Struct, frozen=True):
    """An agent's name."""

    id: str
    name: str


class KnownApproval(msgspec.Struct, frozen=True, rename="camel"):
    """An item that waits, and whose it is."""

    id: str
    agent_name: str
