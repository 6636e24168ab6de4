"""Questions are read to their end, in any terminal, before a key counts."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from textual.app import ComposeResult

from console.dialogs.ask import Ask
from console.screens.help import Help
from console.widgets.listing import Listing
from console.widgets.plain_text import PlainText
from tests.console.queues import APPROVE, MANY, ORDINARY, READ_ON, ask, question, queue, read_through, reads_on, state
from tests.console.waiting import SPENDER, item, later, queue_order, queue_unlimited, random_of, several
from tests.fixtures.callers import ADDRESS, Agent, Tenant
from tests.fixtures.consoles import NARROW, driving
from tests.fixtures.server import Service
from tests.outside.odd_api import OddApi, Request, odd_api

pytestmark = pytest.mark.long


@pytest.mark.parametrize("keys", [("a",), ("space", "a")], ids=["shown", "marked"])
async def test_a_long_order_must_be_scrolled_to_its_end_before_approval(
    service: Service, tenant: Tenant, agent: Agent, folder: Path, keys: tuple[str, ...]
) -> None:
    approval = several(agent, *MANY, (SPENDER, 10**30))
    async with queue(service, tenant, folder) as console:
        await ask(console, *keys)
        await console.sees("Approve this?", READ_ON, "▼ more below")
        assert SPENDER not in question(console)

        while await reads_on(console):
            assert APPROVE not in console.text
            await console.press("enter")

        assert SPENDER in question(console)
        assert state(tenant, approval) == "pending"
        await console.press("y")
        await console.sees("Approved by you")


async def test_an_ordinary_payment_takes_one_key_in_a_narrow_terminal(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    paid = queue_order(agent)
    tenant.ok("POST", f"/approvals/{paid}/approve", {"digest": item(tenant, paid)["digest"]})
    queue_order(agent, 4)
    async with queue(service, tenant, folder, size=NARROW) as console:
        await ask(console, "a")
        await console.sees(ADDRESS, "On Local chain", ORDINARY)

        await console.press("enter")

        await console.sees("Approved by you")


async def test_context_that_arrives_while_reading_is_read_from_the_top(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    first = several(agent, (ADDRESS, 1))
    tenant.ok("POST", f"/approvals/{first}/approve", {"digest": item(tenant, first)["digest"]})
    approval = several(agent, *MANY, (SPENDER, 10**30))
    known = asyncio.Event()

    async def slow(api: OddApi, request: Request, writer: asyncio.StreamWriter) -> None:
        await known.wait()
        async for chunk in api.ask(request):
            writer.write(chunk)

    async with odd_api(service.url) as api:
        api.does(slow, "/vault/")
        async with driving(api.url, folder, key=tenant.key) as console:
            await console.sees("waiting", "live", "What it does")
            await console.press("a")
            await console.sees(READ_ON)
            await console.press("enter")

            known.set()
            await console.sees("New information has arrived: read it from the top.", READ_ON)

            # Whom the agent has never paid comes first from now on.
            assert any(SPENDER in page for page in await read_through(console))
            assert state(tenant, approval) == "pending"


async def test_no_key_leaps_over_what_lies_between(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    several(agent, *MANY[:8], (SPENDER, 10**30), *MANY[8:])
    async with queue(service, tenant, folder, size=(52, 20)) as console:
        await ask(console, "a")
        await console.sees(READ_ON)
        await console.press("end")
        await console.pilot.wait_for_scheduled_animations()
        pages = [question(console)]

        while await reads_on(console):
            await console.press("end")
            await console.pilot.wait_for_scheduled_animations()
            await console.press("up", "down")
            await console.pilot.wait_for_scheduled_animations()
            pages.append(question(console))

        assert any(SPENDER[:20] in page for page in pages)


async def test_in_a_terminal_of_another_size_one_reads_from_the_top(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    several(agent, *MANY[:8], (SPENDER, 10**30), *MANY[8:])
    async with queue(service, tenant, folder, size=(52, 20)) as console:
        await ask(console, "a")
        await console.sees(READ_ON)
        await console.press("enter", "enter", "enter")
        assert "It does 13 things" not in question(console)

        await console.pilot.resize_terminal(140, 44)
        await console.sees("It does 13 things", READ_ON)

        assert any(SPENDER in page for page in await read_through(console))


async def test_nothing_lies_over_a_question(service: Service, tenant: Tenant, agent: Agent, folder: Path) -> None:
    queue_order(agent)
    async with queue(service, tenant, folder, size=NARROW) as console:
        console.app.tell("Line before.")
        await console.sees("Line before.")

        await ask(console, "a")
        console.app.tell("Line meanwhile.")
        await console.pilot.pause()

        assert "Line before." not in console.text
        assert "Line meanwhile." not in console.text
        await console.press("escape")
        await console.sees("Line meanwhile.")


class Plain(Ask[str]):
    """A question about nothing."""

    def essentials(self) -> ComposeResult:
        yield PlainText("A plain question.")


async def test_an_answer_that_comes_as_what_lay_over_the_question_goes_closes_it_once(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    queue_order(agent)
    async with queue(service, tenant, folder) as console:
        plain, answered = Plain(), list[str | None]()
        console.app.push_screen(plain, answered.append)
        await console.sees("A plain question.")
        console.app.push_screen(Help())
        await console.sees("Esc closes")

        console.app.pop_screen()
        plain.close("yes")
        await console.sees_no("A plain question.", "Esc closes")
        await console.press("a")

        await console.sees("Approve this?")
        assert answered == ["yes"]


async def test_before_it_can_have_been_read_a_key_decides_nothing(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    approval = queue_order(agent)
    async with queue(service, tenant, folder, pause=60) as console:
        await ask(console, "a")
        await console.sees("Read first…")

        await console.press("enter", "y", "y")
        await console.pilot.click("#confirm")

        assert "Read first…" in console.text
        assert state(tenant, approval) == "pending"


async def test_after_the_pause_a_key_decides(service: Service, tenant: Tenant, agent: Agent, folder: Path) -> None:
    queue_order(agent)
    async with queue(service, tenant, folder, pause=0.1) as console:
        await ask(console, "a")
        await console.sees(APPROVE)

        await console.press("y")

        await console.sees("Approved by you")


async def test_pictures_of_the_questions(
    service: Service, tenant: Tenant, agent: Agent, folder: Path, pictures: Any
) -> None:
    shown = [item(tenant, one) for one in (queue_order(agent, 15 * 10**17), queue_unlimited(agent))]
    async with queue(service, tenant, folder, now=lambda: later(shown[1])) as console:

        async def picture(name: str, *keys: str) -> None:
            await ask(console, *keys)
            assert await console.picture(*random_of(*shown)) == pictures(name=name)
            await console.press("escape")
            await console.sees_no("Cancel (Esc)")

        await console.until(lambda: len(console.one(Listing).rows) == 2, "both")
        await picture("unlimited", "a")
        await picture("payment", "down", "a")
        await picture("deny light", "ctrl+t", "d")
        await picture("batch", "ctrl+t", "home", "space", "space", "d")
        await console.press("home", "space", "space")
        await console.pilot.resize_terminal(*NARROW)
        await picture("deny narrow", "home", "d")
        await picture("unlimited narrow", "a")


async def test_notices_are_held_while_a_question_is_open(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    queue_order(agent)
    async with queue(service, tenant, folder) as console:
        await ask(console, "a")
        # As if the question stood for longer than anything that is told in passing.
        console.app.NOTIFICATION_TIMEOUT = 0.05
        for number in range(7):
            console.app.tell(f"Told meanwhile, {number}.", "warning")
            console.app.tell("Told again and again.", "warning")
        await console.pilot.pause(0.1)
        console.app.NOTIFICATION_TIMEOUT = 5
        await console.press("escape")

        await console.sees("Told again and again.", *(f"Told meanwhile, {number}." for number in (3, 4, 5, 6)))
        assert "Told meanwhile, 2." not in console.text
        assert console.text.count("Told again and again.") == 1
