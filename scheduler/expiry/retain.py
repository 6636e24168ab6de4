"""Delete what nobody needs any more. Decision 0027.

What goes when stands in the table `retention`. A batch is one short transaction that leaves rows which somebody holds,
so nobody waits for it; a run is bounded, and the next one goes on.
"""

import time

import asyncpg

from custody.kit.db import DatabaseAway
from custody.kit.logs import logger
from custody.ports import Ports
from scheduler.expiry import store

log = logger(__name__)
BATCH = 500
# Of one line in one run: more than the busiest minute writes. The others have their turn, and a minute later there is
# another run.
BATCHES = 200
RUN_SECONDS = 30.0
# The one line that is not in the table: the orders stay, what they would have signed goes.
_REJECTED = "bytes of rejected orders"


class NotAllDeleted(Exception):
    """Some lines could not be obeyed; the log says which."""


async def retain(ports: Ports) -> int:
    """Delete what is old, line by line; gives back how many rows went, or lost what made them large."""
    lines = await store.lines(ports.pool)
    until = time.monotonic() + RUN_SECONDS
    gone, failed = {}, []
    for what in (_REJECTED, *lines):
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
        if what == _REJECTED:
            batch = await store.empty_rejected(ports.pool, BATCH)
        else:
            batch = await store.delete(ports.pool, what, BATCH)
        gone += batch
        if batch < BATCH:
            break
    return gone
