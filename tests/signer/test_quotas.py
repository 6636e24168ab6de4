"""Counters that the signer keeps in memory between two looks at the database."""

import asyncio
from datetime import timedelta

import asyncpg
import pytest

from custody.kit import quotas
from custody.kit.db import open_pool
from custody.kit.errors import CustodyError
from custody.kit.quotas import Limits, Quotas
from signer.quotas import TenantQuotas
from tests.fixtures.callers import Tenant
from tests.fixtures.postgres import Database


async def test_a_reservation_counts_until_it_is_released(database: Database, tenant: Tenant) -> None:
    tenant.ok("POST", "/agents", {"id": "a", "name": "A"})
    pool = await open_pool(database.urls["signer"], size=1)
    figures = TenantQuotas(pool, Limits(everybody=Quotas(agents=2, bytes_per_day=8000)))
    await asyncio.gather(*(figures.know(tenant.id) for _ in range(5)))

    with (
        figures.hold(tenant.id, agents=1),
        pytest.raises(CustodyError, match="2 are there"),
        figures.hold(tenant.id, agents=1),
    ):
        pass
    with figures.hold(tenant.id, agents=1) as held:
        held.keep()
    with pytest.raises(CustodyError), figures.hold(tenant.id, agents=1):
        pass
    # Less always fits; and what was read again is not counted twice.
    with figures.hold(tenant.id, agents=-2) as held:
        held.keep()
    figures.forget(tenant.id)
    await figures.know(tenant.id)
    with figures.hold(tenant.id, agents=1):
        pass
    await pool.close()


async def test_a_day_begins_with_nothing_and_what_is_kept_stays(
    database: Database, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    tenant.ok("POST", "/agents", {"id": "a", "name": "A"})
    await owner.execute("UPDATE agents SET orders = 9, day_orders = 9 WHERE tenant_id = $1", tenant.id)
    pool = await open_pool(database.urls["signer"], size=1)
    days = [quotas.today()]
    figures = TenantQuotas(pool, Limits(everybody=Quotas(orders=10, orders_per_day=9)), lambda: days[-1])
    await figures.know(tenant.id)
    with pytest.raises(CustodyError, match="orders a day"):
        figures.need_room(tenant.id)

    days.append(days[0] + timedelta(days=1))
    figures.need_room(tenant.id)
    with figures.hold(tenant.id, orders=1, orders_per_day=1) as held:
        held.keep()

    with pytest.raises(CustodyError, match="quota of this tenant is 10 orders"):
        figures.need_room(tenant.id)
    await pool.close()
