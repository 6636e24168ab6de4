"""Opening a connection to an upstream: only with a ticket, only to an address that was looked at. Decisions 8.

The name is resolved once, every answer is judged, and what is dialled is a judged address, never the name again: a
name that leads elsewhere the second time (rebinding) leads nowhere. The certificate is checked against the name.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from weakref import WeakValueDictionary

from custody.kit.addresses import refusal
from custody.kit.logs import logger
from proxy_addon import refuse
from proxy_addon.exchange import Ticket
from proxy_addon.refuse import Refusal

log = logger("proxy")
# Name and port to addresses, in the order in which they should be tried. Raises OSError.
Lookup = Callable[[str, int], Awaitable[list[str]]]
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_LARGEST_READ = 2**16
# Threads of their own, because a name that resolves slowly holds one; and few at once for one agent.
_RESOLVERS = ThreadPoolExecutor(max_workers=64, thread_name_prefix="resolver")
_LOOKUPS_OF_AGENT = 4


class NotDialled(Exception):
    """No connection; `refusal` is what the agent is told."""

    def __init__(self, told: Refusal) -> None:
        self.refusal = told
        super().__init__(told.code)


async def system_lookup(host: str, port: int) -> list[str]:
    """What the system's resolver says."""
    found = await asyncio.get_running_loop().run_in_executor(_RESOLVERS, _resolve, host, port)
    return list(dict.fromkeys(found))


def _resolve(host: str, port: int) -> list[str]:
    return [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def _looked(looking: "asyncio.Future[list[str]]", turn: asyncio.Semaphore) -> None:
    turn.release()
    if not looking.cancelled():
        looking.exception()  # whoever still waits has it too


class Dialler:
    """Dials upstreams for tickets."""

    def __init__(self, lookup: Lookup, seconds: float) -> None:
        self._lookup = lookup
        self._seconds = seconds
        self._turns: WeakValueDictionary[tuple[str, str], asyncio.Semaphore] = WeakValueDictionary()

    async def dial(self, ticket: Ticket) -> Streams:
        """A connection to a vetted address of the ticket's host, or NotDialled."""
        try:
            async with asyncio.timeout(self._seconds):
                addresses = await self._vetted(ticket)
                return await self._first(addresses, ticket)
        except TimeoutError:
            raise NotDialled(refuse.UPSTREAM_SLOW) from None

    async def _vetted(self, ticket: Ticket) -> list[str]:
        claims = ticket.exchange.claims
        assert claims is not None  # noqa: S101 - nobody else gets a ticket
        turn = self._turns.setdefault((claims.tid, claims.sub), asyncio.Semaphore(_LOOKUPS_OF_AGENT))
        await turn.acquire()
        looking = asyncio.ensure_future(self._lookup(ticket.host, ticket.port))
        looking.add_done_callback(lambda ended: _looked(ended, turn))
        try:
            # Shielded: who gives up leaves a thread behind, and has no turn again before that has ended.
            addresses = await asyncio.shield(looking)
        except (OSError, UnicodeError) as problem:
            self._say(ticket, f"the name does not resolve: {problem}")
            raise NotDialled(refuse.UPSTREAM_FAILED) from None
        for address in addresses:
            # One bad answer among good ones is an attack or a mistake; neither is worth a guess.
            if reason := refusal(address, private_allowed=ticket.private_allowed):
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
