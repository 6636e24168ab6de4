"""The table of jobs: name, interval, function. Each is bounded per run and safe beside another scheduler."""

from collections.abc import Awaitable, Callable

import msgspec

from custody.ports import Ports
from custody.sign_on import domains
from scheduler.audit import seal
from scheduler.expiry import expire, retain
from scheduler.notices.notify import Notices
from scheduler.prices.fetch import PriceFetches
from scheduler.sign_on.fetch_keys import KeyFetches
from scheduler.signing import release, resend
from scheduler.tx_tracking import follow
from scheduler.webhooks import publish
from scheduler.webhooks.deliver import Deliveries


class Job(msgspec.Struct, frozen=True):
    """One job; it gives back how many things it did.

    `alone`: of all schedulers on the database at most one runs it at a time. The others claim their work row by row.
    """

    name: str
    every_seconds: float
    run: Callable[[Ports], Awaitable[int]]
    alone: bool = False


# Prices may be old after half a minute at the least.
PRICES_SECONDS = 10.0
JOBS = (
    Job("publish", 0.25, publish.publish, alone=True),
    Job("resend", 1.0, resend.resend),
    Job("follow", 2.0, follow.follow),
    Job("expire", 1.0, expire.expire),
    Job("release", 1.0, release.release),
    Job("retain", 60.0, retain.retain, alone=True),
    Job("domains", 60.0, domains.look),
    Job("seal", 1.0, seal.seal, alone=True),
)


def with_ongoing(
    deliveries: Deliveries, notices: Notices, key_fetches: KeyFetches, price_fetches: PriceFetches
) -> tuple[Job, ...]:
    """Every job: those of the table, and those that have something of their own between their runs."""
    return (
        *JOBS,
        Job("deliver", 0.25, deliveries.deliver),
        Job("notify", 0.25, notices.deliver),
        Job("fetch_keys", 0.5, key_fetches.run),
        Job("fetch_prices", PRICES_SECONDS, price_fetches.run),
    )
