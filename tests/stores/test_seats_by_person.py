"""Shares of what tenants have in common go by people: all tenants that one person made have one seat together."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import closing

import pytest

from custody.kit import db
from custody.kit.maker_store import maker_of
from custody.kit.tenant_semaphore import MAX_WAITING, NoneFree, TenantSemaphore, TooManyOfTenant
from tests.fixtures.callers import Tenant, fresh
from tests.fixtures.people import sign_in
from tests.fixtures.server import Service

SEATS = 3


@pytest.fixture
async def pool(service: Service) -> AsyncIterator[db.Pool]:
    """The api's connections."""
    opened = await db.open_pool(service.database.urls["api"], size=4, least=1)
    yield opened
    await opened.close()


@pytest.fixture
def many(service: Service) -> list[str]:
    """Tenants that one person made, one more than there are seats; the first is the person's own."""
    with closing(sign_in(service)) as person:
        made = [fresh() for _ in range(SEATS)]
        for one in made:
            person.ok("POST", "/tenants", {"id": one, "name": "One of many", "apiKeyHash": uuid.uuid4().hex * 2})
        return [person.tenant, *made]


class Holders:
    """Tenants that want a seat, and hold it until the end."""

    def __init__(self, pool: db.Pool, share: Callable[..., TenantSemaphore], *, by_person: bool) -> None:
        self._pool, self.looked = pool, 0
        self.share = share(made_by=self._made_by if by_person else None)
        self.seated: set[str] = set()
        self._end, self._changed = asyncio.Event(), asyncio.Condition()

    async def _made_by(self, pool: db.Pool, tenant: str) -> str | None:
        maker = await maker_of(pool, tenant)
        async with self._changed:
            self.looked += 1
            self._changed.notify_all()
        return maker

    async def hold(self, tenant: str) -> None:
        """Take a seat and keep it."""
        async with self.share.turn(self._pool, tenant):
            async with self._changed:
                self.seated.add(tenant)
                self._changed.notify_all()
            await self._end.wait()

    async def until(self, so: Callable[[], bool]) -> None:
        """Wait until something is so of them."""
        async with asyncio.timeout(60), self._changed:
            await self._changed.wait_for(so)

    def end(self) -> None:
        """Let all of them go."""
        self._end.set()


async def test_tenants_of_one_person_leave_the_seats_to_others(
    pool: db.Pool, many: list[str], tenant: Tenant, other_tenant: Tenant
) -> None:
    holders = Holders(pool, lambda made_by: TenantSemaphore(seats=SEATS, made_by=made_by), by_person=True)
    async with asyncio.TaskGroup() as tasks:
        for one in many:
            tasks.create_task(holders.hold(one))
        await holders.until(lambda: holders.looked == len(many) and len(holders.seated) == 1)

        for innocent in (tenant, other_tenant):
            tasks.create_task(holders.hold(innocent.id))
        await holders.until(lambda: {tenant.id, other_tenant.id} <= holders.seated)

        assert len(holders.seated & set(many)) == 1
        holders.end()
    assert set(many) <= holders.seated


async def test_without_it_one_person_holds_every_seat(pool: db.Pool, many: list[str], tenant: Tenant) -> None:
    holders = Holders(pool, lambda made_by: TenantSemaphore(0.01, seats=SEATS, made_by=made_by), by_person=False)
    async with asyncio.TaskGroup() as tasks:
        for one in many[:SEATS]:
            tasks.create_task(holders.hold(one))
        await holders.until(lambda: len(holders.seated) == SEATS)

        with pytest.raises(NoneFree):
            await holders.hold(tenant.id)
        holders.end()


async def test_few_of_one_person_wait_and_the_next_is_refused(pool: db.Pool, many: list[str], tenant: Tenant) -> None:
    holders = Holders(pool, lambda made_by: TenantSemaphore(seats=SEATS, made_by=made_by), by_person=True)
    async with asyncio.TaskGroup() as tasks:
        for number in range(MAX_WAITING + 1):
            tasks.create_task(holders.hold(many[number % len(many)]))
        await holders.until(lambda: holders.looked == MAX_WAITING + 1 and len(holders.seated) == 1)

        with pytest.raises(TooManyOfTenant):
            await holders.hold(many[1])
        tasks.create_task(holders.hold(tenant.id))
        await holders.until(lambda: tenant.id in holders.seated)
        holders.end()
