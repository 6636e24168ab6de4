"""Several decided at once: each told, and approved only where they pay the same to the same."""

from datetime import timedelta
from pathlib import Path

import pytest

from console.dialogs.batch import BatchDecision
from tests.console.queues import READ_ON, asked, queue, read_through, state
from tests.console.waiting import item, later, queued
from tests.fixtures.callers import ADDRESS, OTHER_ADDRESS, Agent, Tenant
from tests.fixtures.server import Service

pytestmark = pytest.mark.long


async def test_several_are_denied_at_once_and_each_is_told(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    first, second, third, fourth = (queued(agent, value) for value in (2, 3, 4, 5))
    async with queue(service, tenant, folder) as console:
        await console.press("space", "space", "space")
        await console.sees("3 marked")
        await asked(console, "d")
        await console.sees("Deny these 3?", "In all 0.000000000000000012 ETH (12 wei)")
        tenant.ok("POST", f"/approvals/{third}/approve", {})

        await console.write("wrong month")
        await console.press("enter")
        await console.sees("2 denied", "1 not, because others or the time were faster", "Close (Esc)")
        await console.sees("Approved by the holder of the tenant key")

        await console.press("enter")
        await console.gone("Deny these 3?")
        await console.sees("1 waiting")
    states = [state(tenant, one) for one in (fourth, third, second, first)]
    assert states == ["rejected", "approved", "rejected", "pending"]
    assert {item(tenant, one)["reason"] for one in (fourth, second)} == {"wrong month"}


async def test_equal_payments_are_approved_at_once_and_unequal_ones_are_not(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    approvals = [queued(agent, 2), queued(agent, 3), queued(agent, 4, OTHER_ADDRESS)]
    async with queue(service, tenant, folder, size=(140, 20)) as console:
        await console.press("space", "space", "space", "a")
        await console.sees("do not all pay the same to the same destination")
        assert not isinstance(console.app.screen, BatchDecision)

        await console.press("home", "space")
        await asked(console, "a")
        await console.sees(
            "Approve these 2?", "In all 0.000000000000000005 ETH (5 wei)", ADDRESS, "! First time", READ_ON
        )
        pages = await read_through(console)
        assert [page.count("This request expires") for page in (pages[0], pages[-1])] == [1, 2]
        assert state(tenant, approvals[0]) == "pending"
        await console.press("enter")

        await console.sees("2 approved")
    assert [state(tenant, one) for one in approvals] == ["approved", "approved", "pending"]


async def test_who_steps_back_undecided_keeps_the_marks(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    approvals = [queued(agent, value) for value in (2, 3, 4)]
    async with queue(service, tenant, folder) as console:
        await console.press("space", "space")
        await asked(console, "d")
        await console.press("escape")
        await console.gone("Deny these 2?")
        await console.sees("2 marked")

        await console.press("down")
        await asked(console, "d")
        await console.press("enter")
        await console.sees("2 denied")
        await console.press("enter")
        await console.gone("Deny these 2?", "marked")
    assert [state(tenant, one) for one in approvals] == ["pending", "rejected", "rejected"]


async def test_what_is_known_around_several_does_not_grow_old_either(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    other, _, shown = (queued(agent, value) for value in (2, 3, 4))
    clock = [later(item(tenant, shown))]
    async with queue(service, tenant, folder, now=lambda: clock[0]) as console:
        await console.press("space", "space")
        await asked(console, "a")
        await console.sees("Approve these 2?", "! First time")

        tenant.ok("POST", f"/approvals/{other}/approve", {})
        clock[0] += timedelta(minutes=1)

        await console.gone("! First time")
        await console.sees("More has become known: read it from the top.")
