"""Callers, by the token that they show: asked of the service, and kept for a second."""

import hashlib
import time
from dataclasses import dataclass, field

import anyio

from mcp_server.outcomes import error, unknown
from mcp_server.settings import Settings
from mcp_server.vault import Answer, NoAnswer, Vault, new_client, whose

# A revoked token is found out a second later; the service itself refuses it at once.
KEPT_SECONDS = 1.0
# Tokens that are kept at once: those of this second.
MAX_KEPT = 1000
# Calls that one agent may have open at once, most of them waits for a person.
MAX_OPEN = 64


@dataclass
class _Kept:
    until: float
    found: Answer


@dataclass
class Callers:
    """Those who show tokens."""

    settings: Settings
    _kept: dict[bytes, _Kept] = field(default_factory=dict, repr=False)
    _open: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Open no connection yet."""
        self._client = new_client()

    async def close(self) -> None:
        """Close the connections to the service."""
        with anyio.CancelScope(shield=True):
            await self._client.aclose()

    async def find(self, token: str) -> Answer:
        """Ask whose it is: `data` of a success is the agent. Raises NoAnswer."""
        # The token itself is kept nowhere but in the request that shows it.
        name, now = hashlib.sha256(token.encode()).digest(), time.monotonic()
        kept = self._kept.get(name)
        if kept is not None and now < kept.until:
            return kept.found
        found = await whose(self._client, self.settings.url, token)
        self._kept = {one: held for one, held in self._kept.items() if now < held.until}
        if found.done and len(self._kept) < MAX_KEPT:
            self._kept[name] = _Kept(now + KEPT_SECONDS, found)
        return found

    async def vault(self, token: str) -> Vault:
        """The way to the service of the one who has this token. Raises ToolError."""
        try:
            found = await self.find(token)
        except NoAnswer as problem:
            raise unknown(problem, reading=True) from None
        if not found.done:
            raise error(found, reading=True)
        return Vault(self._client, self.settings.url, self.settings.proxy_url, token, found.data)

    def enter(self, agent: str) -> bool:
        """Count one more call of an agent; False if it has too many open."""
        if self._open.get(agent, 0) >= MAX_OPEN:
            return False
        self._open[agent] = self._open.get(agent, 0) + 1
        return True

    def leave(self, agent: str) -> None:
        """Count one less."""
        self._open[agent] -= 1
        if not self._open[agent]:
            del self._open[agent]
