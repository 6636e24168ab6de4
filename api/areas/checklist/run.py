"""Look through a tenant's security."""

from collections import Counter

from api.areas.checklist import store
from api.areas.checklist.checks import CHECKS
from api.areas.checklist.types import Checklist, Facts, Summary
from custody.kit import clock
from custody.ports import Ports


async def run(ports: Ports, tenant: str) -> Checklist:
    """The whole list as it is now; nothing is changed, and nothing but states, figures and names is told."""
    return sum_up(tenant, await store.facts(ports.pool, tenant, ports.deployment))


def sum_up(tenant: str, facts: Facts) -> Checklist:
    """Sum up the facts."""
    items = [check(facts) for check in CHECKS]
    found = Counter(item.status for item in items)
    summary = Summary(found["pass"], found["warning"], found["fail"])
    return Checklist(tenant, clock.iso(facts.now), summary, items)
