"""Callers whose orders take the signer's loop long wait for the next time; others do not."""

import asyncio
from collections.abc import Callable

import pytest

from signer.cpu_throttle import AGENT_SHARE, BURST_SECONDS, TENANT_SHARE, CpuThrottle


class Hours:
    """Time that passes only where somebody waits or works."""

    def __init__(self) -> None:
        self.now = 0.0
        self.spent = 0.0

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)

    def work(self, seconds: float) -> Callable[[], None]:
        def do() -> None:
            self.now += seconds
            self.spent += seconds

        return do


@pytest.fixture
def hours() -> Hours:
    return Hours()


@pytest.fixture
def throttle(hours: Hours) -> CpuThrottle:
    return CpuThrottle(lambda: hours.now, lambda: hours.spent, hours.sleep)


async def test_an_agent_gets_its_share_of_the_loop_and_no_more(hours: Hours, throttle: CpuThrottle) -> None:
    for _ in range(1_000):
        await throttle.run("tenant", "agent", hours.work(0.005))

    assert hours.spent == pytest.approx(5)
    assert hours.spent / (hours.now + BURST_SECONDS) == pytest.approx(AGENT_SHARE, rel=0.02)


async def test_sixteen_agents_of_one_tenant_have_its_share_together(hours: Hours, throttle: CpuThrottle) -> None:
    async def one(agent: str) -> None:
        for _ in range(60):
            await throttle.run("tenant", agent, hours.work(0.005))

    await asyncio.gather(*(one(f"agent {number}") for number in range(16)))

    assert hours.spent / (hours.now + BURST_SECONDS) <= TENANT_SHARE * 1.02


async def test_others_do_not_wait_nor_does_who_reads_little(hours: Hours, throttle: CpuThrottle) -> None:
    for _ in range(100):
        await throttle.run("tenant", "agent", hours.work(0.05))
    before = hours.now

    for _ in range(1_000):
        await throttle.run("other", "agent", hours.work(0.0001))

    assert hours.now - before == pytest.approx(0.1)


async def test_refused_messages_count_as_well(hours: Hours, throttle: CpuThrottle) -> None:
    def refuse() -> None:
        hours.work(1)()
        raise ValueError

    with pytest.raises(ValueError):
        await throttle.run("tenant", "agent", refuse)
    await throttle.run("tenant", "agent", hours.work(0))

    assert hours.now == pytest.approx(1 / AGENT_SHARE + 1 - BURST_SECONDS - 0, rel=0.15)
