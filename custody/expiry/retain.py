"""Delete what nobody needs any more. Spec 2/8, decision record 0027.

What goes when stands in the table `retention`. A batch is one short transaction that leaves rows which somebody holds,
so nobody waits for it; a run is bounded, and the next one goes on.
"""

import time

import asyncpg

from custody.kit.db import DatabaseAway
from custody.kit.logs import logger
from custody.ports import Ports

log = logger(__name__)
BATCH = 500
# Of one line in one run: more than the busiest minute writes. The others have their turn, and a minute later there is
# another run.
BATCHES = 200
RUN_SECONDS = 30.0


class NotAllDeleted(Exception):
    """Some lines could not be obeyed; the log says which."""


async def retain(ports: Ports) -> int:
    """Delete what is old, line by line; gives back how many rows went."""
    lines = [row["what"] for row in await ports.pool.fetch("SELECT what FROM retention ORDER BY place")]
    until = time.monotonic() + RUN_SECONDS
    gone, failed = {}, []
    for what in lines:
        try:
            gone[what] = await _obey(ports, what, until)
        except DatabaseAway:
            raise
        except asyncpg.PostgresError as problem:
            # One line that fails keeps no other from being obeyed.
            log.error("not deleted", extra={"what": what, "reason": f"{problem.sqlstate} {problem}"})
            failed.append(what)
    if any(gone.values()):
        log.info("deleted what is old", extra={"rows": {what: count for what, count in gone.items() if count}})
    if failed:
        raise NotAllDeleted(", ".join(failed))
    return sum(gone.values())


async def _obey(ports: Ports, what: str, until: float) -> int:
    gone = 0
    for _ in range(BATCHES):
        if time.monotonic() > until:
            break
        batch: int = await ports.pool.fetchval("SELECT retain($1, $2)", what, BATCH)
        gone += batch
        if batch < BATCH:
            break
    return gone
