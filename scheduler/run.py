"""Run one job: timed, counted, and never the end of the process."""

import asyncio
import time

from prometheus_client import Counter, Gauge, Histogram

from custody.kit.db import DatabaseAway
from custody.kit.logs import logger
from custody.ports import Ports
from scheduler.jobs import Job

log = logger("scheduler")
RUNS = Counter("custody_job_runs_total", "Runs of a job by how they ended", ["job", "outcome"])
DONE = Counter("custody_job_items_total", "Things a job did", ["job"])
SECONDS = Histogram("custody_job_seconds", "Time of one run", ["job"])
LAST_SUCCESS = Gauge("custody_job_last_success_timestamp_seconds", "When a job last ended well", ["job"])


class Runner:
    """Runs jobs with the ports of this process."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._running: set[asyncio.Future[None]] = set()

    async def run(self, job: Job) -> None:
        """One run; the next one comes whatever became of it."""
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._running.add(ended)
        try:
            with SECONDS.labels(job.name).time():
                done = await job.run(self._ports)
        except DatabaseAway as problem:
            RUNS.labels(job.name, "database_away").inc()
            log.warning("the database is away", extra={"job": job.name, "reason": type(problem).__name__})
        except Exception:  # the edge of the process
            RUNS.labels(job.name, "failed").inc()
            log.exception("job failed", extra={"job": job.name})
        else:
            RUNS.labels(job.name, "done").inc()
            DONE.labels(job.name).inc(done)
            LAST_SUCCESS.labels(job.name).set(time.time())  # noqa: TID251 - a metric in this unit
        finally:
            self._running.discard(ended)
            ended.set_result(None)

    async def ended(self) -> None:
        """Wait for what runs, for a bounded time."""
        if self._running:
            await asyncio.wait(self._running, timeout=20)
