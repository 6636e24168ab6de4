"""Writes of several agents in one commit, while earlier ones are under way.

Nobody waits for company: a write goes at once while fewer than `UNDER_WAY` statements run, and what arrives meanwhile
goes with the next. A batch is bounded in orders and bytes and never waits for an agent's row. Whatever goes wrong in it
is nobody else's: what it did not write, and all of a batch that failed, is written alone by who asked. That a
connection broke is told to each, and each finds out for itself what became of its own.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Sequence
from typing import Any, Final

import asyncpg
import msgspec

from custody.kit.db import DatabaseAway, Pool
from custody.kit.tasks import spawn
from signer import ledger
from signer.ledger import Write

UNDER_WAY: Final = 2
MAX_ORDERS: Final = 8
MAX_BYTES: Final = 64 * 1024
# A heavier one goes alone, so that no light one waits for its bytes.
MAX_EACH: Final = 16 * 1024
_WRITE_BATCH: Final = "SELECT sign_write_batch($1, $2, $3, $4, $5, $6, $7, $8, $9)"
# Answers that mean: write it alone.
_ALONE: Final = "skipped"


class _Waiting(msgspec.Struct, frozen=True):
    what: Write
    answer: asyncio.Future[str]


class WriteBatches:
    """The writes that are under way, and those that wait for one of them to end."""

    def __init__(self, pool: Pool, counters: Counter[str]) -> None:
        self._pool, self._counters = pool, counters
        self._running = 0
        self._waiting: deque[_Waiting] = deque()

    def __len__(self) -> int:
        """Count those who wait for a statement to end."""
        return len(self._waiting)

    async def write(self, what: Write) -> str:
        """Write an agent's plain orders as `ledger.write` does; DatabaseAway where nobody knows whether that was done.

        They must be judged on facts that were read for them: what meets an earlier request fails its whole batch.
        """
        if what.row.stored_bytes > MAX_EACH:
            return await self.alone(what)
        waiting = _Waiting(what, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        if self._running < UNDER_WAY:
            self._running += 1
            self._begin_next(eager=True)
        result = await waiting.answer
        return await self.alone(what) if result == _ALONE else result

    async def alone(self, what: Write) -> str:
        """The same in a statement of its own."""
        async with self._pool.acquire() as connection:
            return await ledger.write(connection, what)

    def _begin_next(self, *, eager: bool = False) -> None:
        """Begin a statement where one may run: with what waits, or none."""
        if batch := self._next():
            spawn(self._together(batch), "write batch", eager=eager)
        else:
            self._running -= 1

    def _next(self) -> list[_Waiting]:
        batch: list[_Waiting] = []
        orders = stored = 0
        while self._waiting:
            one = self._waiting[0]
            orders, stored = orders + _count(one.what), stored + one.what.row.stored_bytes
            if batch and (orders > MAX_ORDERS or stored > MAX_BYTES):
                break
            self._waiting.popleft()
            if not one.answer.done():  # else its caller is gone
                batch.append(one)
        # In one order, so that two batches never hold what the other waits for.
        return sorted(batch, key=lambda one: (one.what.ref.tenant, one.what.ref.agent))

    async def _together(self, batch: list[_Waiting]) -> None:
        try:
            results = await self._write(batch)
        except BaseException as problem:
            for one in batch:
                _fail(one, problem)
            if not isinstance(problem, DatabaseAway):
                raise
        else:
            for one, result in zip(batch, results, strict=True):
                if not one.answer.done():
                    one.answer.set_result(result)
        finally:
            self._begin_next()

    async def _write(self, batch: list[_Waiting]) -> list[str]:
        try:
            async with self._pool.acquire() as connection:
                results = await _write_all(connection, [one.what for one in batch])
        except asyncpg.DataError:
            # Of this library: one of them can't be encoded, and nothing was sent.
            return [_ALONE] * len(batch)
        except DatabaseAway:
            raise
        except asyncpg.PostgresError:
            # Postgres answered, so nothing was written: each finds out by itself whether it was the reason.
            self._counters["refused_batches"] += 1
            return [_ALONE] * len(batch)
        self._counters["batched_writes"] += 1
        self._counters["batched_orders"] += sum(_count(one.what) for one in batch)
        return results


def _count(what: Write) -> int:
    return len(what.rows) + len(what.calls)


def _fail(one: _Waiting, problem: BaseException) -> None:
    if not one.answer.done():
        one.answer.set_exception(problem)


async def _write_all(connection: Any, batch: Sequence[Write]) -> list[str]:
    """Write plain orders of different agents in one commit; of each the answer of `ledger.write`, or `skipped`.

    `skipped`: somebody holds the agent's row, and nothing of this one was written.
    """
    found = await connection.fetchval(
        _WRITE_BATCH,
        [one.ref.tenant for one in batch],
        [one.ref.agent for one in batch],
        [one.row for one in batch],
        [len(one.rows) for one in batch],
        [act for one in batch for act in one.acts],
        [row for one in batch for row in one.rows],
        [len(one.calls) for one in batch],
        [call for one in batch for call in one.calls],
        [row for place, one in enumerate(batch, start=1) for row in ledger.set_charges(place, one)],
    )
    return [str(result) for result in found]
