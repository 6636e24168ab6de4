"""Killing what runs while clients sign, and looking for what was lost. Promises P2, P3 and P9."""

import asyncio
import statistics
from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import msgspec

from tests.fixtures.callers import Tenant, rule
from tests.fixtures.deployments import KillablePostgres, owner_of
from tests.fixtures.server import Service
from tests.promises.load import Load, load_on, lost_or_doubled, replayed_differently
from tests.promises.oracle import violations

BETWEEN = 25


class Survived(msgspec.Struct, frozen=True):
    """The result of a series of deaths."""

    what: str
    acknowledged: int
    lost_or_doubled: list[str]
    replayed_differently: list[str]
    violations: list[str]
    seconds: list[float]
    on_the_way: Counter[str]

    @property
    def problems(self) -> list[str]:
        """Everything that should not be."""
        return [*self.lost_or_doubled, *self.replayed_differently, *self.violations]

    def __str__(self) -> str:
        return (
            f"{self.what} {len(self.seconds)} times: {self.acknowledged} acknowledged, {len(self.problems)} problems, "
            f"silent for p50 {statistics.median(self.seconds):.2f} s, max {max(self.seconds):.2f} s, "
            f"clients met {dict(self.on_the_way)}"
        )


def kill(service: Service, tenant: Tenant, name: str, rounds: int, say: Callable[[str], None]) -> Survived:
    """kill -9 of one process, again and again, under load; it is started again as a supervisor would."""

    def once() -> None:
        service.kill(name)
        service.start(name)

    return _survive(f"{name} killed", service, tenant, rounds, once, say)


def postgres_stopped(
    postgres: KillablePostgres, service: Service, tenant: Tenant, rounds: int, say: Callable[[str], None]
) -> Survived:
    """Postgres stopped without a goodbye, again and again; nobody touches our processes."""

    def once() -> None:
        postgres.stop_immediately()
        postgres.start_again()

    return _survive("postgres stopped", service, tenant, rounds, once, say)


def _survive(
    what: str, service: Service, tenant: Tenant, rounds: int, once: Callable[[], None], say: Callable[[str], None]
) -> Survived:
    agents = [tenant.agent(rule("spending-limit", maxPerDay="1000000000")) for _ in range(4)]
    seconds = []
    with load_on(agents) as load:
        for number in range(rounds):
            began = len(load.times)
            once()
            load.wait_for(BETWEEN)
            seconds.append(max(later - earlier for earlier, later in pairwise(load.times[began - 1 :])))
            say(f"{what} {number + 1}/{rounds}: {len(load.acknowledged)} acknowledged, silent for {seconds[-1]:.2f} s")
    return asyncio.run(_judge(what, service, tenant, load, seconds))


async def _judge(what: str, service: Service, tenant: Tenant, load: Load, seconds: list[float]) -> Survived:
    async with owner_of(service.database) as owner:
        return Survived(
            what,
            len(load.acknowledged),
            await lost_or_doubled(owner, load),
            await replayed_differently(load),
            await violations(owner, [tenant.id]),
            seconds,
            load.on_the_way,
        )
