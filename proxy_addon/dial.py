"""Opening a connection to an upstream: only with a ticket, only to an address that was looked at.

The name is resolved once, every answer is judged, and what is dialled is a judged address, never the name again: a
name that leads elsewhere the second time (rebinding) leads nowhere. The certificate is checked against the name.
"""

import asyncio
import os

from custody.credentials.private_hosts import NONE_PRIVATE, PrivateHosts
from custody.credentials.spelling import is_address
from custody.kit.addresses import PRIVATE, refusal
from custody.kit.logs import logger
from custody.kit.resolver import FairResolver, Lookup
from proxy_addon import refuse
from proxy_addon.exchange import Ticket
from proxy_addon.refuse import Refusal

log = logger("proxy")
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_LARGEST_READ = 2**16
# Bytes that are still read of a connection that broke: what an upstream said before it hung up.
MAX_LAST_WORDS = 2**18


class NotDialled(Exception):
    """No connection; `refusal` is what the agent is told."""

    def __init__(self, told: Refusal) -> None:
        self.refusal = told
        super().__init__(told.code)


class LastWordsReader(asyncio.StreamReader):
    """Ends with everything that had come when its connection broke.

    An upstream that refuses an upload from its head alone answers and closes; the next write fails, and would take with
    it the answer that has come already (RFC 9112 9.6).
    """

    transport: asyncio.Transport | None = None

    def set_exception(self, exc: BaseException) -> None:
        """The connection is lost; its socket is still open, and what it holds is read before the end."""
        raw = self.transport.get_extra_info("socket") if self.transport is not None else None
        left = MAX_LAST_WORDS
        try:
            while raw is not None and left > 0 and (data := os.read(raw.fileno(), left)):
                left -= len(data)
                self.feed_data(data)
        except OSError:
            pass
        self.feed_eof()


async def _open(address: str, port: int) -> Streams:
    loop = asyncio.get_running_loop()
    reader = LastWordsReader(limit=_LARGEST_READ, loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    transport, _ = await loop.create_connection(lambda: protocol, address, port)
    reader.transport = transport
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


class Dialler:
    """Dials upstreams for tickets."""

    def __init__(self, lookup: Lookup, seconds: float, private_hosts: PrivateHosts = NONE_PRIVATE) -> None:
        self._names = FairResolver(lookup)
        self._private_hosts = private_hosts
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
        by_address = is_address(ticket.host)
        addresses = [ticket.host.strip("[]")] if by_address else await self._resolve(ticket)
        for address in addresses:
            listed = self._private_hosts.have(address, ticket.port)
            reason: str | None = refusal(address, PRIVATE if listed or ticket.private_allowed else frozenset())
            if by_address and not listed:
                reason = "a host that is an address must be listed"
            # One bad answer among good ones is an attack or a mistake; neither is worth a guess.
            if reason:
                self._say(ticket, f"{address} is refused: {reason}")
                raise NotDialled(refuse.ADDRESS_BLOCKED)
        return addresses

    async def _resolve(self, ticket: Ticket) -> list[str]:
        claims = ticket.exchange.claims
        assert claims is not None  # noqa: S101 - nobody else gets a ticket
        try:
            return await self._names.resolve(ticket.host, ticket.port, claims.tid, claims.sub)
        except (OSError, UnicodeError) as problem:
            self._say(ticket, f"the name does not resolve: {problem}")
            raise NotDialled(refuse.UPSTREAM_FAILED) from None

    async def _first(self, addresses: list[str], ticket: Ticket) -> Streams:
        for address in addresses:
            try:
                reader, writer = await _open(address, ticket.port)
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
