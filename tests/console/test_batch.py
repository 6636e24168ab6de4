"""Several decided at once: each told, and approved only where they pay the same to the same."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from console.dialogs.batch import BatchDecision
from console.widgets.shown_item import ShownItem
from tests.console.queues import READ_ON, ask, odd_queue, queue, read_through, state
from tests.console.waiting import item, later, queue_order
from tests.fixtures.callers import ADDRESS, OTHER_ADDRESS, Agent, Tenant
from tests.fixtures.server import Service
from tests.outside.odd_api import OddApi, Request, passes_on, refuses

pytestmark = pytest.mark.long


async def test_several_are_denied_at_once_and_each_is_told(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    first, second, third, fourth = (queue_order(agent, value) for value in (2, 3, 4, 5))
    async with queue(service, tenant, folder) as console:
        await console.press("space", "space", "space")
        await console.sees("3 marked")
        await ask(console, "d")
        await console.sees("Deny these 3?", "In all 0.000000000000000012 ETH (12 wei)")
        tenant.ok("POST", f"/approvals/{third}/approve", {})

        await console.write("wrong month")
        await console.press("enter")
        await console.sees("2 denied", "1 not: already decided or expired", "Close (Esc)")
        await console.sees("Approved by a holder of the tenant key")

        await console.press("enter")
        await console.sees_no("Deny these 3?")
        await console.sees("1 waiting")
    states = [state(tenant, one) for one in (fourth, third, second, first)]
    assert states == ["rejected", "approved", "rejected", "pending"]
    assert {item(tenant, one)["reason"] for one in (fourth, second)} == {"wrong month"}


async def test_equal_payments_are_approved_at_once_and_unequal_ones_are_not(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    approvals = [queue_order(agent, 2), queue_order(agent, 3), queue_order(agent, 4, OTHER_ADDRESS)]
    async with queue(service, tenant, folder, size=(140, 20)) as console:
        await console.press("space", "space", "space", "a")
        await console.sees("These differ in destination")
        assert not isinstance(console.app.screen, BatchDecision)

        await console.press("home", "space")
        await ask(console, "a")
        await console.sees(
            "Approve these 2?", "In all 0.000000000000000005 ETH (5 wei)", ADDRESS, "! First time", READ_ON
        )
        pages = await read_through(console)
        assert [page.count("This request expires") for page in (pages[0], pages[-1])] == [1, 2]
        assert state(tenant, approvals[0]) == "pending"
        await console.press("y")

        await console.sees("2 approved")
    assert [state(tenant, one) for one in approvals] == ["approved", "approved", "pending"]


async def test_cancelling_a_batch_keeps_the_marks(service: Service, tenant: Tenant, agent: Agent, folder: Path) -> None:
    approvals = [queue_order(agent, value) for value in (2, 3, 4)]
    async with queue(service, tenant, folder) as console:
        await console.press("space", "space")
        await ask(console, "d")
        await console.press("escape")
        await console.sees_no("Deny these 2?")
        await console.sees("2 marked")

        await console.press("down")
        await ask(console, "d")
        await console.press("enter")
        await console.sees("2 denied")
        await console.press("enter")
        await console.sees_no("Deny these 2?", "marked")
    assert [state(tenant, one) for one in approvals] == ["pending", "rejected", "rejected"]


async def test_the_context_of_a_batch_is_kept_current(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    other, _, shown = (queue_order(agent, value) for value in (2, 3, 4))
    clock = [later(item(tenant, shown))]
    async with queue(service, tenant, folder, now=lambda: clock[0]) as console:
        await console.press("space", "space")
        await ask(console, "a")
        await console.sees("Approve these 2?", "! First time")

        tenant.ok("POST", f"/approvals/{other}/approve", {})
        clock[0] += timedelta(minutes=1)

        await console.sees_no("! First time")
        await console.sees("New information has arrived: read it from the top.")


async def test_a_warning_that_comes_while_several_are_decided_is_read_before_the_rest(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    older, newer = (queue_order(agent, value) for value in (3, 4))
    clock, asked_again = [later(item(tenant, newer))], asyncio.Event()

    async def fails_late(api: OddApi, request: Request, writer: asyncio.StreamWriter) -> None:
        await asked_again.wait()
        await refuses(500, "Broken.")(api, request, writer)

    async with odd_queue(service, tenant, folder, now=lambda: clock[0]) as (console, api):

        def looking() -> list[Any]:
            return [one for one in console.app.workers if one.node is console.app.screen and one.group == "around"]

        async def after_the_answers(api: OddApi, request: Request, writer: asyncio.StreamWriter) -> None:
            asked_again.set()
            await console.app.workers.wait_for_complete(looking())
            await passes_on(api, request, writer)

        await console.press("space", "space")
        await ask(console, "a")
        await console.sees("Approve these 2?", "! First time")
        await console.until(lambda: not looking(), "all that is known")
        api.does(fails_late, "/vault/")
        api.does(after_the_answers, f"/approvals/{newer}/approve")
        clock[0] += timedelta(minutes=1)
        await console.until(looking, "that it is asked again")
        await read_through(console)
        await console.press("y")

        await console.sees("1 approved, 1 left", "New information has arrived", "Unavailable right now")
        assert state(tenant, older) == "pending"

        await read_through(console)
        await console.press("y")
        await console.sees("2 approved")
    assert [state(tenant, one) for one in (older, newer)] == ["approved", "approved"]


async def test_a_warning_that_is_known_and_not_shown_yet_is_shown_before_anything_is_decided(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    _, older, newer = (queue_order(agent, value) for value in (2, 3, 4))
    last, answered = f"/vault/{agent.id}/transactions/{item(tenant, older)['txId']}", asyncio.Event()

    async def late(api: OddApi, request: Request, writer: asyncio.StreamWriter) -> None:
        await answered.wait()
        await passes_on(api, request, writer)

    async with odd_queue(service, tenant, folder) as (console, api):
        api.does(late, last)
        await console.press("space", "space")
        await console.until(lambda: console.one(ShownItem).known, "what is known around the third")
        # The pane may have asked, too, on its way down.
        before = len(api.at(last))
        await ask(console, "a")
        # Of the one all is known by now, and still it says that nothing is.
        await console.until(lambda: len(api.at(last)) > before, "the question about the other")
        assert "! First time" not in console.flat
        await read_through(console)
        await console.press("y")

        await console.sees("0 approved, 2 left", "New information has arrived", "! First time")
        assert state(tenant, newer) == "pending"

        answered.set()
        await console.until(lambda: console.flat.count("! First time") == 2, "what is known of the other")
        await read_through(console)
        await console.press("y")
        await console.sees("2 approved")
    assert [state(tenant, one) for one in (older, newer)] == ["approved", "approved"]
