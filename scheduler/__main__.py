"""Start: connect, put the table of jobs on APScheduler's clock, run until told to stop."""

import asyncio
import logging
import os
import signal
import sys

import uvloop
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from custody.chains import built_in, families
from custody.chains.rpc import Rpc
from custody.kit import db, garbage, logs, outside_urls
from custody.kit.dns_records import DnsRecords
from custody.kit.metrics import serve_metrics
from custody.kit.outside import Fetcher, Outside
from custody.kit.poolers import ForgetfulPooler, refuse_forgetful
from custody.kit.resolver import Lookup, system_lookup
from custody.kit.schema_version import NewerDatabase, refuse_newer
from custody.notifications.mail import Mail
from custody.ports import Ports
from custody.protocol.client import SignerClient
from custody.protocol.workers import Workers
from scheduler import settings
from scheduler.jobs import with_ongoing
from scheduler.notices.notify import Notices
from scheduler.prices.fetch import PriceFetches, way_to
from scheduler.run import Runner
from scheduler.sign_on.fetch_keys import KeyFetches
from scheduler.webhooks.deliver import Deliveries

log = logs.logger("scheduler")
# It warns whenever a run takes longer than its interval, which under load is as it should be.
logging.getLogger("apscheduler").setLevel(logging.ERROR)  # noqa: TID251 - not a logger of ours
DATABASE_SECONDS = 30.0


def outside(given: settings.Settings, lookup: Lookup = system_lookup) -> Outside:
    """The way to the receivers of webhooks."""
    allowed = outside_urls.loopback_allowed(given.public_url)
    return Outside(loopback_allowed=allowed, extra_ca_file=given.webhook_extra_ca_file, lookup=lookup)


async def serve(given: settings.Settings, receivers: Outside) -> None:
    """Run until SIGTERM or SIGINT; what runs then is allowed to end."""
    # Two for each job that runs alone, for one holds its lock; mostly two are enough for all of them.
    pool = await db.open_pool_when_there(given.database_url, size=8, least=2, seconds=DATABASE_SECONDS)
    await refuse_forgetful(given.database_url)
    await refuse_newer(pool)
    workers = Workers(
        SignerClient(str(given.sign_socket), "scheduler"), SignerClient(str(given.identity_socket), "scheduler")
    )
    dns = DnsRecords(given.dns_server)
    ports = Ports(pool=pool, workers=workers, chains=given.chains, rpc=Rpc(), dns=dns)
    deliveries = Deliveries(receivers)
    mail = Mail(given.smtp_url, given.public_url, plain=not given.production) if given.smtp_url else None
    notices = Notices(receivers, mail, given.public_url)
    # No further authority vouches for issuers: that one is for receivers.
    issuers = Outside(loopback_allowed=receivers.loopback_allowed)
    key_fetches = KeyFetches(Fetcher(issuers))
    prices = way_to(given.prices_url, loopback_allowed=receivers.loopback_allowed)
    clockwork = AsyncIOScheduler()
    jobs = with_ongoing(deliveries, notices, key_fetches, PriceFetches(given.prices_url, Fetcher(prices)))
    runner = Runner(ports, jobs)
    for job in jobs:
        clockwork.add_job(
            runner.run, "interval", args=[job], seconds=job.every_seconds, max_instances=1, coalesce=True, id=job.name
        )
    clockwork.start()
    serve_metrics("scheduler", given.metrics_host, given.metrics_port)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    log.info("working", extra={"jobs": [job.name for job in jobs]})
    await stop.wait()
    # Shutting down would cut off what runs, so nothing new begins first, and what runs comes to its end.
    clockwork.pause()
    log.info("stopping")
    await asyncio.gather(deliveries.close(ports), notices.close(ports), key_fetches.close())
    await runner.wait_for_end()
    clockwork.shutdown(wait=False)
    await ports.workers.close()
    await ports.rpc.close()
    await db.close_pool(pool)


def main() -> None:
    """The process."""
    logs.set_up()
    families.hand_in(built_in.LISTED)
    try:
        given = settings.read()
    except ValueError as problem:
        sys.stderr.write(f"{problem}\n")
        sys.exit(os.EX_CONFIG)
    garbage.look_rarely()
    try:
        uvloop.run(serve(given, outside(given)))
    except (NewerDatabase, ForgetfulPooler) as problem:
        sys.exit(f"scheduler: {problem}")


if __name__ == "__main__":
    main()
