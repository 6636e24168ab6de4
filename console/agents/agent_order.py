"""Filter and order the agents of a list. Pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from words.shapes import Agent

ORDERS: Final[Sequence[str]] = ("newest first", "by name", "frozen first", "waiting first")


def search(agents: Sequence[Agent], words: str) -> list[Agent]:
    """Those in which every word stands: in the name, the id, an address, the reason of a freeze, or `frozen` itself."""
    wanted = words.casefold().split()
    return [agent for agent in agents if all(word in _text(agent) for word in wanted)] if wanted else list(agents)


def sort(agents: Sequence[Agent], order: str, waiting: Mapping[str, int]) -> list[Agent]:
    """In one of the orders; what is equal in it stays newest first, as the API lists it."""
    keys: dict[str, Callable[[Agent], Any]] = {
        "by name": lambda agent: (agent.name.casefold(), agent.id),
        "frozen first": lambda agent: agent.frozen_at is None,
        "waiting first": lambda agent: -waiting.get(agent.id, 0),
    }
    return sorted(agents, key=keys[order]) if order in keys else list(agents)


def _text(agent: Agent) -> str:
    parts = [agent.name, agent.id, agent.wallet_addresses.evm, agent.wallet_addresses.solana, agent.platform_id or ""]
    state = ["frozen", agent.frozen_reason or ""] if agent.frozen_at else ["active"]
    return "\n".join([*parts, *state]).casefold()
