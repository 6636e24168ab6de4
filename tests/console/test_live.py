"""The queue lives: what comes, comes within two seconds and moves nothing; what goes, says why."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from console.queue.watch import GLANCE_SECONDS
from console.widgets.listing import Listing
from console.widgets.order_pane import OrderPane
from console.widgets.shown_item import ShownItem
from tests.console.waiting import item, later, queue_order, random_of
from tests.fixtures.callers import Agent, Tenant
from tests.fixtures.consoles import Driven, driving
from tests.fixtures.server import Service
from tests.outside.odd_api import Deed, odd_api, refuses, says_nothing, streams


def ids_in_list(console: Driven) -> list[str]:
    """The ids in the list, from top to bottom."""
    return [row.id for row in console.one(Listing).rows]


async def listening(console: Driven) -> None:
    """Wait until the queue was read and the stream is there."""
    await console.sees("live")
    await console.until(lambda: console.app.queue_monitor.queue.whole, "the queue")


async def test_a_new_item_moves_neither_cursor_nor_focus_nor_pane(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    first, second = queue_order(agent, 1), queue_order(agent, 2)
    async with driving(service.url, folder, key=tenant.key) as console:
        await listening(console)
        await console.press("down", "tab")
        await console.sees("(1 wei)")

        came = queue_order(agent, 3)
        await console.until(lambda: len(ids_in_list(console)) == 3, "the new item")

        assert ids_in_list(console) == [came, second, first]
        assert console.one(Listing).row.id == first
        assert isinstance(console.app.focused, OrderPane)
        assert "(1 wei)" in console.text


async def test_lines_below_the_top_stay_where_they_are(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    for value in range(1, 16):
        queue_order(agent, value)
    async with driving(service.url, folder, key=tenant.key, size=(120, 14)) as console:
        await listening(console)
        await console.press("end")
        await console.sees("(1 wei)")
        before = [line[:48] for line in console.text.splitlines()[3:11]]

        queue_order(agent, 16)
        await console.sees("16 waiting", "1 new above")

        assert [line[:48] for line in console.text.splitlines()[3:11]] == before
        await console.press("home")
        await console.sees_no("new above")


async def test_a_new_item_rings_once_and_is_counted_on_every_screen(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    queue_order(agent)
    async with driving(service.url, folder, key=tenant.key) as console:
        rung: list[bool] = []
        console.app.bell = lambda: rung.append(True)  # type: ignore[method-assign]
        await listening(console)
        assert (console.app.title, rung) == ("(1) Custody", [])
        await console.press("7")
        await console.sees("1 Approvals (1)")

        queue_order(agent)

        await console.sees("1 Approvals (2)")
        assert (console.app.title, rung) == ("(2) Custody", [True])
        assert console.app.current_mode == "audit"


@pytest.mark.parametrize(
    "deed",
    [
        pytest.param(refuses(429, "Too many streams.", Retry_After="900"), marks=pytest.mark.long),
        pytest.param(refuses(403, "Not for you."), marks=pytest.mark.long),
        pytest.param(streams(b": open\nid: 0\n\n"), marks=pytest.mark.long),
    ],
    ids=["429", "403", "deaf"],
)
async def test_without_a_stream_that_tells_it_a_new_item_comes_as_soon(
    service: Service, tenant: Tenant, agent: Agent, folder: Path, deed: Deed
) -> None:
    async with odd_api(service.url) as api:
        api.does(deed, "/events")
        async with driving(api.url, folder, key=tenant.key) as console:
            # From its first glance on, nothing but its own eyes tells it.
            await console.until(lambda: api.at("/approvals?limit=1"), "a glance")

            # One that asks while the item comes, and the next: two of them are the two seconds that are promised.
            glances = len(api.at("/approvals?limit=1"))
            queue_order(agent)
            await console.sees("1 waiting")

            assert len(api.at("/approvals?limit=1")) - glances <= 2
            assert GLANCE_SECONDS * 2 <= 2


@pytest.mark.long
async def test_a_queue_that_hears_nothing_is_not_called_live(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    async with odd_api(service.url) as api, driving(api.url, folder, key=tenant.key) as console:
        await listening(console)
        api.does(says_nothing, "/approvals")

        await console.sees("NOT live: no response")
        api.well()


async def test_with_the_stream_an_item_comes_before_the_next_glance(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    async with odd_api(service.url) as api, driving(api.url, folder, key=tenant.key) as console:
        await listening(console)
        glances = len(api.at("/approvals?limit=1"))

        queue_order(agent)
        await console.sees("1 waiting")

        assert len(api.at("/approvals?limit=1")) - glances <= 1
        assert len(api.at("/events")) == 1


async def test_an_item_decided_by_others_says_so_and_goes_once_the_cursor_moves(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    below, shown = queue_order(agent, 1), queue_order(agent, 2)
    async with driving(service.url, folder, key=tenant.key) as console:
        await listening(console)
        await console.sees("(2 wei)")

        tenant.ok("POST", f"/approvals/{shown}/deny", {"reason": "not ours"})
        await console.sees("Denied by a holder of the tenant key", 'Reason: "not ours".', "1 waiting")

        assert ids_in_list(console) == [shown, below]
        assert console.one(Listing).row.id == shown
        await console.press("down")
        await console.until(lambda: ids_in_list(console) == [below], "the end of it")
        await console.sees("(1 wei)")


async def test_an_item_decided_by_others_elsewhere_in_the_list_just_goes(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    other, shown = queue_order(agent, 1), queue_order(agent, 2)
    async with driving(service.url, folder, key=tenant.key) as console:
        await listening(console)
        await console.sees("(2 wei)")

        tenant.ok("POST", f"/approvals/{other}/approve", {})

        await console.until(lambda: ids_in_list(console) == [shown], "the end of it")
        await console.sees("(2 wei)", "Has waited")


async def test_an_item_that_expires_while_shown_says_so(
    service: Service, tenant: Tenant, agent: Agent, folder: Path, owner: asyncpg.Connection
) -> None:
    approval = queue_order(agent)
    await owner.execute("UPDATE approvals SET expires_at = now() + interval '1 hour' WHERE id = $1", approval)
    clock = [later(item(tenant, approval))]
    async with driving(service.url, folder, key=tenant.key, now=lambda: clock[0]) as console:
        await listening(console)
        await console.sees("expires in 58m")

        clock[0] += timedelta(hours=1)

        await console.sees("Expired at", "0 waiting")
        assert ids_in_list(console) == [approval]


@pytest.mark.long
async def test_a_picture_of_what_was_decided_meanwhile(
    service: Service, tenant: Tenant, agent: Agent, folder: Path, pictures: Any
) -> None:
    approvals = [queue_order(agent, value) for value in (1, 2)]
    shown = [item(tenant, one) for one in approvals]
    async with driving(service.url, folder, key=tenant.key, now=lambda: later(shown[1])) as console:
        await listening(console)
        await console.sees("Has waited")

        tenant.ok("POST", f"/approvals/{approvals[1]}/deny", {"reason": "not ours"})
        await console.sees("Denied by a holder of the tenant key")
        await console.until(lambda: console.one(ShownItem).known, "what is known around it")

        random = random_of(*shown, *(item(tenant, one) for one in approvals))
        assert await console.picture(*random) == pictures
