"""The test that the database acknowledges commits now. Promise P9."""

import asyncio
import time
from typing import Final

import asyncpg

from custody.kit import db
from custody.kit.tasks import spawn

_SECONDS: Final = 1.0


class Commits:
    """One commit of nothing at a time: while one waits for a replica, no other does."""

    def __init__(self) -> None:
        self._under_way: asyncio.Task[bool] | None = None
        self._began = 0.0

    async def come_back(self, pool: db.Pool, look: db.Opened) -> bool:
        """Say whether one is acknowledged within a second; the answer holds a second. `look` sees its connection."""
        now = time.monotonic()
        if self._under_way is None or (self._under_way.done() and now - self._began > _SECONDS):
            self._under_way, self._began = spawn(_commit(pool, look), "a commit of nothing"), now
        done, _ = await asyncio.wait({self._under_way}, timeout=_SECONDS)
        return bool(done) and self._under_way.result()


async def _commit(pool: db.Pool, look: db.Opened) -> bool:
    try:
        async with pool.acquire() as connection:
            await look(connection)
            await db.wait_for_replicas(connection)
            return bool(await connection.fetchval("SELECT current_setting('transaction_read_only') = 'off'"))
    except (*db.DatabaseAway, asyncpg.PostgresError):
        return False
