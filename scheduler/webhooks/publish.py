"""From the outbox to numbered events and to deliveries of them. Promise P8, decision 0026.

Run alone: one publisher at a time is what lets a reader of events trust that nothing comes below the number it has.
"""

from prometheus_client import Counter

from custody.notices.names import DEFAULTS
from custody.ports import Ports
from custody.webhooks import store
from scheduler.notices.sources import SOURCES

PER_STATEMENT = 500
MOST_STATEMENTS = 20
# Events that one message may tell of; more are counted.
NOTICE_EVENTS = 5000
NOTICE_ATTEMPTS = 5
_TOLD = (*(list(column) for column in zip(*SOURCES, strict=True)), list(DEFAULTS), NOTICE_EVENTS, NOTICE_ATTEMPTS)
PUBLISHED = Counter("custody_events_published_total", "Events that got their number and their deliveries")


async def publish(ports: Ports) -> int:
    """Publish what waits, the oldest first; gives back how many."""
    published = 0
    for _ in range(MOST_STATEMENTS):
        taken = await store.publish(ports.pool, PER_STATEMENT, *_TOLD)
        PUBLISHED.inc(taken)
        published += taken
        if taken < PER_STATEMENT:
            break
    return published
