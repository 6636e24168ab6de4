"""Names to addresses, off the event loop, and fairly: who makes names that resolve slowly waits for them alone."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from weakref import WeakValueDictionary

# Name and port to addresses, in the order in which they should be tried. Raises OSError.
Lookup = Callable[[str, int], Awaitable[list[str]]]
# Threads of their own, because a name that resolves slowly holds one; and few at once for one who asks.
_THREADS = ThreadPoolExecutor(max_workers=64, thread_name_prefix="resolver")
_AT_ONCE = 4


async def system_lookup(host: str, port: int) -> list[str]:
    """What the system's resolver says."""
    found = await asyncio.get_running_loop().run_in_executor(_THREADS, _resolve, host, port)
    return list(dict.fromkeys(found))


def _resolve(host: str, port: int) -> list[str]:
    return [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


class FairResolver:
    """Resolves names for many who ask, each a few at a time."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self._turns: WeakValueDictionary[Hashable, asyncio.Semaphore] = WeakValueDictionary()

    async def resolve(self, host: str, port: int, asker: Hashable) -> list[str]:
        """The addresses of a name. Raises OSError, or UnicodeError for what is no name."""
        turn = self._turns.setdefault(asker, asyncio.Semaphore(_AT_ONCE))
        await turn.acquire()
        looking = asyncio.ensure_future(self._lookup(host, port))
        looking.add_done_callback(lambda ended: _looked(ended, turn))
        # Shielded: who gives up leaves a thread behind, and has no turn again before that has ended.
        return await asyncio.shield(looking)


def _looked(looking: "asyncio.Future[list[str]]", turn: asyncio.Semaphore) -> None:
    turn.release()
    if not looking.cancelled():
        looking.exception()  # whoever still waits has it too
