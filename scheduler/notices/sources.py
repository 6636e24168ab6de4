"""The events that each notice comes from."""

from typing import Final, NamedTuple

from custody.notices.types import NoticeName


class Source(NamedTuple):
    """An event and the notice that it becomes; `loud`: quiet hours do not hold it."""

    event: str
    notice: NoticeName
    loud: bool


SOURCES: Final = (
    Source("tx.pending", "waiting", loud=False),
    Source("tx.pending", "expiring", loud=True),
    Source("intent.created", "waiting", loud=False),
    Source("intent.created", "expiring", loud=True),
    Source("agent.frozen", "frozen", loud=True),
    Source("agent.unfrozen", "frozen", loud=True),
    Source("tenant.frozen", "frozen", loud=True),
    Source("tenant.unfrozen", "frozen", loud=True),
    Source("breaker.tripped", "frozen", loud=True),
    Source("spend.threshold", "budget", loud=False),
    Source("policies.changed", "rules", loud=False),
)
