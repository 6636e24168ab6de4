"""Names to addresses, off the event loop, and fairly: who makes names that resolve slowly waits for them alone."""

import asyncio
import socket
import time
from collections import deque
from collections.abc import Callable, Coroutine, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from custody.kit.cache import Cache
from custody.kit.deadlines import is_done_in_time
from custody.kit.fair_slots import Bounds, FairSlots, Who
from custody.kit.tasks import leave_to_caller, spawn

# Name and port to addresses, in the order in which they should be tried. Raises OSError.
Lookup = Callable[[str, int], Coroutine[Any, Any, list[str]]]
MAX_LOOKUPS = 128
# Of one who asks (an agent), of one group (a tenant), and what is kept back for groups that have none under way.
MAX_LOOKUPS_OF_ONE, MAX_LOOKUPS_OF_GROUP, LOOKUPS_KEPT_BACK = 4, 48, 32
# What a name led to is remembered this long, for the case that asking again takes longer than our patience.
REMEMBERED_SECONDS, PATIENCE_SECONDS = 600.0, 1.0
MAX_GROUPS_REMEMBERED, MAX_NAMES_REMEMBERED = 2_000, 64
_ANYBODY = object()
# Threads of their own, because a name that resolves slowly holds one.
_THREADS = ThreadPoolExecutor(max_workers=MAX_LOOKUPS, thread_name_prefix="resolver")


async def system_lookup(host: str, port: int) -> list[str]:
    """Ask the system's resolver."""
    found = await asyncio.get_running_loop().run_in_executor(_THREADS, _resolve, host, port)
    return list(dict.fromkeys(found))


def _resolve(host: str, port: int) -> list[str]:
    return [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


class FairResolver:
    """Resolves names for many who ask, each a few at a time; `clock` says how old is what it remembers."""

    def __init__(
        self, lookup: Lookup, clock: Callable[[], float] = time.monotonic, patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        self._lookup = lookup
        self._patience_seconds = patience_seconds
        self._turns = _Turns()
        self._names = _Names(clock)

    async def resolve(self, host: str, port: int, group: Hashable, asker: Hashable = None) -> list[str]:
        """The addresses of a name: those it has now, or, while nobody tells, those it had a short while ago.

        Raises OSError, or UnicodeError for what is no name. The caller must check the addresses each time.
        """
        looking = spawn(self._look(host, port, (group, asker)), "resolve", on_failure=leave_to_caller)
        try:
            known = self._names.of(group, host)
            if known is not None and not await is_done_in_time(looking, self._patience_seconds):
                return known
            return await looking
        finally:
            looking.cancel()

    async def _look(self, host: str, port: int, who: Who) -> list[str]:
        await self._turns.take(who)
        running = spawn(self._lookup(host, port), "lookup", on_failure=leave_to_caller)
        running.add_done_callback(lambda ended: self._take_answer(ended, host, who))
        # Shielded: who gives up leaves a thread behind, and has no turn again before that has ended.
        return await asyncio.shield(running)

    def _take_answer(self, running: "asyncio.Future[list[str]]", host: str, who: Who) -> None:
        self._turns.give_back(who)
        # Asking for the exception tells the loop that somebody has seen it.
        if not running.cancelled() and running.exception() is None and (found := running.result()):
            self._names.remember(who[0], host, found)


class _Turns:
    """The turns to look, and the line of those who wait; the next one is of the group that has the fewest under way."""

    def __init__(self) -> None:
        self._slots = FairSlots(
            Bounds(MAX_LOOKUPS, MAX_LOOKUPS_OF_ONE, MAX_LOOKUPS_OF_GROUP, reserve=LOOKUPS_KEPT_BACK, few=1)
        )
        self._waiting: dict[Hashable, dict[Who, deque[asyncio.Future[None]]]] = {}

    async def take(self, who: Who) -> None:
        """Come back when it is the caller's turn."""
        if who not in self._waiting.get(who[0], ()) and self._slots.take(who) is None:
            return
        turn = asyncio.get_running_loop().create_future()
        turns = self._waiting.setdefault(who[0], {}).setdefault(who, deque())
        turns.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self.give_back(who)
            elif turn in turns:
                turns.remove(turn)
                self._put_behind(who)
            raise

    def give_back(self, who: Who) -> None:
        """End a turn and pass it on."""
        self._slots.give_back(who)
        while self._next():
            pass

    def _next(self) -> bool:
        for group in sorted(self._waiting, key=self._slots.of_group):
            if self._slots.lacks((group, _ANYBODY)) is not None:
                continue
            for who, turns in self._waiting[group].items():
                if self._slots.take(who) is None:
                    turn = turns.popleft()
                    self._put_behind(who)
                    if turn.cancelled():
                        self._slots.give_back(who)
                    else:
                        turn.set_result(None)
                    return True
        return False

    def _put_behind(self, who: Who) -> None:
        """Make who had a turn the last of its group to have another; forget who waits no more."""
        group = self._waiting[who[0]]
        if turns := group.pop(who):
            group[who] = turns
        elif not group:
            del self._waiting[who[0]]


class _Names:
    """The addresses that names led to lately. Each group remembers for itself, or one could make the others forget."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._groups: Cache[Hashable, Cache[str, list[str]]] = Cache(MAX_GROUPS_REMEMBERED)

    def of(self, group: Hashable, host: str) -> list[str] | None:
        names = self._groups.get(group)
        return None if names is None else names.get(host)

    def remember(self, group: Hashable, host: str, found: list[str]) -> None:
        names = self._groups.get(group)
        if names is None:
            names = Cache(MAX_NAMES_REMEMBERED, REMEMBERED_SECONDS, self._clock)
            self._groups.put(group, names)
        names.put(host, found)
