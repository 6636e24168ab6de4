"""Names of addresses: the wallets of this tenant's agents, kept for a minute so that moving on does not ask again."""

import asyncio
import time
from typing import Final
from weakref import WeakKeyDictionary

from console.wire.api_client import ApiClient
from console.wire.credentials import Credential
from words.orders.lists import address_key
from words.shapes import Agent
from words.texts.amounts import quote

KEPT_SECONDS: Final = 60.0
_PAGE: Final = 1000
# A tenant with more agents than this waits too long for their names.
MOST_AGENTS: Final = 10_000


class AddressBook:
    """The agents of one tenant, as they were at most a minute ago."""

    def __init__(self) -> None:
        self._agents: dict[str, Agent] = {}
        self._wallets: dict[str, Agent] = {}
        self._read_at = float("-inf")
        self._whose: Credential | None = None
        self._reading = asyncio.Lock()
        self.complete = False

    async def read(self, client: ApiClient) -> None:
        """Read it, unless it was read a moment ago; two who ask at once read once."""
        async with self._reading:
            if self._whose is client.credential and time.monotonic() - self._read_at < KEPT_SECONDS:
                return
            found: list[Agent] = []
            total = 1
            while len(found) < min(total, MOST_AGENTS):
                page = await client.get_page("/agents", Agent, limit=_PAGE, offset=len(found))
                found += page.items
                total = page.total if page.items else len(found)
            self._agents = {agent.id: agent for agent in found}
            self._wallets = {address_key(address): agent for agent in found for address in _wallets(agent)}
            self.complete = total <= len(found)
            self._read_at, self._whose = time.monotonic(), client.credential

    def agent(self, agent_id: str) -> Agent | None:
        """One agent."""
        return self._agents.get(agent_id)

    def agents(self) -> list[Agent]:
        """All of them, as the service lists them."""
        return list(self._agents.values())

    def names(self) -> dict[str, str]:
        """Addresses with whose they are."""
        return {
            address: f"agent {quote(agent.name)} ({agent.id}) of this tenant"
            for address, agent in self._wallets.items()
        }


_books: "WeakKeyDictionary[ApiClient, AddressBook]" = WeakKeyDictionary()


def book_of(client: ApiClient) -> AddressBook:
    """The address book of a client."""
    return _books.setdefault(client, AddressBook())


def _wallets(agent: Agent) -> tuple[str, str]:
    return agent.wallet_addresses.evm, agent.wallet_addresses.solana
