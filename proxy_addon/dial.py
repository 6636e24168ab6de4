"""Opening a connection to an upstream: only with a ticket, only to an address that was looked at.

The name is resolved once, every answer is judged, and what is dialled is a judged address, never the name again: a
name that leads elsewhere the second time (rebinding) leads nowhere. The certificate is checked against the name.
"""

import asyncio

from custody.kit.addresses import PRIVATE, refusal
from custody.kit.logs import logger
from custody.kit.resolver import FairResolver, Lookup
from proxy_addon import refuse
from proxy_addon.exchange import Ticket
from proxy_addon.refuse import Refusal

log = logger("proxy")
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_LARGEST_READ = 2**16


class NotDialled(Exception):
    """No connection; `refusal` is what the agent is told."""

    def __init__(self, told: Refusal) -> None:
        self.refusal = told
        super().__init__(told.code)


class Dialler:
    """Dials upstreams for tickets."""

    def __init__(self, lookup: Lookup, seconds: float) -> None:
        self._names = FairResolver(lookup)
        self._seconds = seconds

    async def dial(self, ticket: Ticket) -> Streams:
        """A connection to a vetted address of the ticket's host, or NotDialled."""
        try:
            async with asyncio.timeout(self._seconds):
                addresses = await self._vet(ticket)
                return await self._first(addresses, ticket)
        except TimeoutError:
            raise NotDialled(refuse.UPSTREAM_SLOW) from None

    async def _vet(self, ticket: Ticket) -> list[str]:
        claims = ticket.exchange.claims
        assert claims is not None  # noqa: S101 - nobody else gets a ticket
        try:
            addresses = await self._names.resolve(ticket.host, ticket.port, claims.tid, claims.sub)
        except (OSError, UnicodeError) as problem:
            self._say(ticket, f"the name does not resolve: {problem}")
            raise NotDialled(refuse.UPSTREAM_FAILED) from None
        for address in addresses:
            # One bad answer among good ones is an attack or a mistake; neither is worth a guess.
            if reason := refusal(address, PRIVATE if ticket.private_allowed else frozenset()):
                self._say(ticket, f"{address} is refused: {reason}")
                raise NotDialled(refuse.ADDRESS_BLOCKED)
        return addresses

    async def _first(self, addresses: list[str], ticket: Ticket) -> Streams:
        for address in addresses:
            try:
                reader, writer = await asyncio.open_connection(address, ticket.port, limit=_LARGEST_READ)
            except OSError as problem:
                self._say(ticket, f"{address}: {problem.strerror or problem}")
                continue
            return reader, writer
        raise NotDialled(refuse.UPSTREAM_FAILED)

    @staticmethod
    def _say(ticket: Ticket, reason: str) -> None:
        log.info(
            "an upstream was not reached",
            extra={"request_id": ticket.exchange.request_id, "host": ticket.host, "reason": reason},
        )
