"""Reads of one tenant that are under way together, in one statement. docs/operate.md.

A read begins at once unless earlier ones of its tenant are still under way; then it begins with all that came
meanwhile, when one of them ends. Nobody waits for company, and each sees rows as they are after it was asked for.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from custody.kit.tasks import spawn

# One after the other, a read that takes long would hold up all others of its tenant.
AT_ONCE = 2
# Of one statement.
MOST = 16

type _Waiting[Value] = deque[tuple[str, asyncio.Future[Value | None]]]
# Reads the rows with these names of a tenant.
type Read[Value] = Callable[[str, list[str]], Awaitable[Mapping[str, Value]]]


class _Lane[Value](msgspec.Struct):
    """The reads of one tenant that wait, and the number of its statements that are under way."""

    waiting: _Waiting[Value]
    under_way: int = 0


class Gathered[Value]:
    """Reads rows by their names, many of a tenant at once."""

    def __init__(self) -> None:
        self._lanes: dict[str, _Lane[Value]] = {}

    async def get(self, read: Read[Value], tenant: str, name: str) -> Value | None:
        """The row with this name, or None. Raises what reading it alone raises."""
        lane = self._lanes.get(tenant)
        if lane is None:
            lane = self._lanes[tenant] = _Lane(deque())
        found: asyncio.Future[Value | None] = asyncio.get_running_loop().create_future()
        lane.waiting.append((name, found))
        if lane.under_way < AT_ONCE:
            lane.under_way += 1
            # A task of its own: a caller who leaves takes nobody's answer along.
            spawn(self._run(read, tenant, lane), "reads under way together", eager=True)
        return await found

    async def _run(self, read: Read[Value], tenant: str, lane: _Lane[Value]) -> None:
        try:
            while lane.waiting:
                asked = [lane.waiting.popleft() for _ in range(min(MOST, len(lane.waiting)))]
                # Callers who have left meanwhile are not read for.
                if asked := [(name, found) for name, found in asked if not found.done()]:
                    await _answer(read, tenant, asked)
        finally:
            lane.under_way -= 1
            if not lane.under_way:
                del self._lanes[tenant]
                for _, found in lane.waiting:
                    found.cancel()


async def _answer[Value](read: Read[Value], tenant: str, asked: list[tuple[str, asyncio.Future[Value | None]]]) -> None:
    try:
        rows = await read(tenant, list({name: None for name, _ in asked}))
    except asyncio.CancelledError:
        for _, found in asked:
            found.cancel()
        raise
    except TimeoutError as problem:
        # All would wait as long again.
        for _, found in asked:
            _fail(found, problem)
    except Exception as problem:
        if len(asked) == 1:
            _fail(asked[0][1], problem)
            return
        # The failure of one is nobody else's. One after the other, for a tenant has two connections and no more.
        for one in asked:
            await _answer(read, tenant, [one])
    else:
        for name, found in asked:
            if not found.done():
                found.set_result(rows.get(name))


def _fail[Value](found: asyncio.Future[Value | None], problem: Exception) -> None:
    if not found.done():
        found.set_exception(problem)
