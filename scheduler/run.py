"""Run one job: alone where it must be, timed, counted, written down, and never the end of the process."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterable

from prometheus_client import Counter, Gauge, Histogram

from custody.kit.db import DatabaseAway
from custody.kit.logs import logger
from custody.kit.tasks import spawn
from custody.ports import Ports
from scheduler.jobs import Job

log = logger("scheduler")
# Not `job`: Prometheus puts the name of its scrape job there, and whoever reads the figure sees that one.
RUNS = Counter("custody_job_runs_total", "Runs of a job by how they ended", ["task", "outcome"])
DONE = Counter("custody_job_items_total", "Things a job did", ["task"])
SECONDS = Histogram("custody_job_seconds", "Time of one run", ["task"])
LAST_SUCCESS = Gauge("custody_job_last_success_timestamp_seconds", "When a job last ended well", ["task"])
# Jobs run several times a second; what they leave in the database for people need not.
_WRITE_DOWN_SECONDS = 5.0
# Held for the whole run and freed with its transaction, so a scheduler that dies leaves no lock behind.
_ALONE = "SELECT pg_try_advisory_xact_lock(hashtextextended('custody-job:' || $1, 0))"


class Runner:
    """Runs jobs with the ports of this process."""

    def __init__(self, ports: Ports, jobs: Iterable[Job] = ()) -> None:
        self._ports = ports
        for job in jobs:
            # One that never ended well must be seen to be late: without this it would have no figure at all.
            LAST_SUCCESS.labels(job.name).set(0)
        self._running: set[asyncio.Task[None]] = set()
        self._written_down: dict[tuple[str, bool], float] = {}

    async def run(self, job: Job) -> None:
        """One run; the next one comes whatever became of it."""
        await spawn(self._run(job), job.name, among=self._running)

    async def _run(self, job: Job) -> None:
        began = time.monotonic()
        try:
            async with self._alone(job) as mine:
                if not mine:
                    RUNS.labels(job.name, "another_scheduler").inc()
                    return
                with SECONDS.labels(job.name).time():
                    done = await job.run(self._ports)
            RUNS.labels(job.name, "done").inc()
            DONE.labels(job.name).inc(done)
            LAST_SUCCESS.labels(job.name).set(time.time())  # noqa: TID251 - a metric in this unit
            await self._write_down(job, good=True, items=done, seconds=time.monotonic() - began)
        except DatabaseAway as problem:
            RUNS.labels(job.name, "database_away").inc()
            log.warning("the database is away", extra={"job": job.name, "reason": type(problem).__name__})
        except Exception:  # the edge of the process
            RUNS.labels(job.name, "failed").inc()
            log.exception("job failed", extra={"job": job.name})
            with contextlib.suppress(*DatabaseAway):
                await self._write_down(job, good=False, items=0, seconds=time.monotonic() - began)

    @contextlib.asynccontextmanager
    async def _alone(self, job: Job) -> AsyncIterator[bool]:
        if not job.alone:
            yield True
            return
        async with self._ports.pool.acquire() as connection, connection.transaction():
            yield await connection.fetchval(_ALONE, job.name)

    async def _write_down(self, job: Job, *, good: bool, items: int, seconds: float) -> None:
        now, key = time.monotonic(), (job.name, good)
        if now - self._written_down.get(key, -_WRITE_DOWN_SECONDS) < _WRITE_DOWN_SECONDS:
            return
        await self._ports.pool.execute("SELECT job_ended($1, $2, $3, $4)", job.name, good, items, int(seconds * 1000))
        self._written_down[key] = now

    async def wait_for_end(self) -> None:
        """Wait for what runs, for a bounded time."""
        if self._running:
            await asyncio.wait(self._running, timeout=20)
