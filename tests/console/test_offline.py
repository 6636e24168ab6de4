"""Screens while the service is away, slow or faulty: what was known, its age, and when it is asked again."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from console.widgets.banner import Banner
from console.widgets.listing import Listing
from console.widgets.search_line import SearchLine
from console.wire.failures import Patience
from tests.console.waiting import cautious, item, queue_order
from tests.fixtures.callers import Tenant
from tests.fixtures.consoles import Driven, driving
from tests.fixtures.server import Service
from tests.outside import odd_api
from tests.outside.odd_api import Deed, OddApi, answers, refuses, succeeds

pytestmark = pytest.mark.long

# Asked again soon, but never given up before there is an answer: a decision may take its time.
SOON = Patience(again=(0.02, 0.02, 0.1))
# For a service that says nothing: what is given up too early is asked again.
HURRY = Patience(silence=0.5, again=SOON.again)
SCREEN = "Custody default"


@asynccontextmanager
async def behind(
    service: Service, tenant: Tenant, folder: Path, *earlier: tuple[Deed, str, str], patience: Patience = SOON
) -> AsyncIterator[tuple[OddApi, Driven]]:
    """A console that asks through an odd API."""
    async with odd_api.odd_api(service.url) as odd:
        for deed in earlier:
            odd.does(*deed)
        async with driving(odd.url, folder, key=tenant.key) as console:
            await console.until(lambda: console.app.current_mode == "approvals", "the queue")
            console.app.client.patience = patience
            yield odd, console


ODD: dict[str, tuple[Deed, str]] = {
    "silent": (odd_api.says_nothing, "did not respond in time."),
    "cut": (odd_api.cuts, "broke off the response"),
    "403": (refuses(403, "This key may not look."), "This key may not look."),
    "429": (refuses(429, "Too many requests.", Retry_After="1"), "Too many requests."),
    "500": (refuses(500, "It failed.", X_Request_Id="req-7"), "It failed. (request req-7)"),
    "502": (answers(502, b"<h1>Bad Gateway</h1>"), "responded with 502: the service behind it is unavailable."),
    "hotel": (answers(200, b"<h1>Welcome, guest</h1>"), "but not like this service"),
    "null": (succeeds(None), "cannot be parsed"),
    "bomb": (answers(200, b"", Content_Encoding="gzip"), "compressed"),
}


async def test_whatever_is_answered_the_queue_stays_and_goes_on_by_itself(
    service: Service, tenant: Tenant, folder: Path
) -> None:
    agent = cautious(tenant)
    keys = [queue_order(agent, value) for value in (1, 2, 3)]
    async with behind(service, tenant, folder, patience=HURRY) as (odd, console):
        await console.sees("3 waiting")
        await console.press("down", "slash", *"payer")
        listing, search = console.one(Listing), console.one(SearchLine)
        at = listing.row
        for name, (deed, words) in ODD.items():
            odd.does(deed, "/approvals")
            console.app.queue_monitor.watch.ring()
            await console.sees(words)

            assert {row.id for row in listing.rows} == set(keys), name
            assert (listing.row, search.value, console.app.focused) == (at, "payer", search), name
            odd.well()
            await console.until(lambda: not console.one(Banner).display, f"the end of {name}")
            # Silence, which one has to wait for, was the first.
            console.app.client.patience = SOON
        await odd.refuse()
        await console.sees("cannot be reached.")
        await odd.listen()
        await console.until(lambda: not console.one(Banner).display, "the end of it")

        assert (search.value, console.app.focused) == ("payer", search)


async def test_an_approval_whose_answer_was_lost_is_retried_and_takes_effect_once(
    service: Service, tenant: Tenant, folder: Path
) -> None:
    key = queue_order(cautious(tenant), 7)
    # Nobody tells the console meanwhile what became of it.
    async with behind(service, tenant, folder, (odd_api.says_nothing, "/events", "GET")) as (odd, console):
        await console.sees("1 waiting")
        odd.does(refuses(503, "Not now."), "/", "GET")
        odd.does(odd_api.loses, "/", "POST")
        await console.press("a")
        await console.sees("Approve this?", "Approve (y)")
        await console.pilot.pause()
        await console.press("y")
        await console.sees("The outcome is unknown:", "it takes effect at most once")
        odd.does(odd_api.passes_on, "/", "POST")
        await console.press("y")
        await console.sees("Approved")

    asked = [one.headers["idempotency-key"] for one in odd.heard if one.method == "POST"]
    assert (len(asked), len(set(asked))) == (2, 1)
    assert item(tenant, key)["status"] == "approved"


async def test_a_reason_typed_while_the_service_is_away_is_kept_until_it_is_back(
    service: Service, tenant: Tenant, folder: Path
) -> None:
    key = queue_order(cautious(tenant), 7)
    async with behind(service, tenant, folder) as (odd, console):
        await console.sees("1 waiting")
        await odd.refuse()
        await console.press("d")
        await console.sees("Deny this?", "cannot be reached")
        await console.write("not ours")
        await console.press("enter")
        await console.sees(f"{odd.url} cannot be reached.", "not ours", "Deny this?")
        await odd.listen()
        await console.press("enter")
        await console.sees_no("Deny this?")

    assert (item(tenant, key)["status"], item(tenant, key)["reason"]) == ("rejected", "not ours")


async def test_a_mistake_in_a_worker_is_said_and_ends_nothing_else(
    service: Service, tenant: Tenant, folder: Path
) -> None:
    queue_order(cautious(tenant))
    async with behind(service, tenant, folder) as (_, console):
        await console.sees("1 waiting")

        async def fail() -> None:
            raise KeyError("a value of somebody's")

        console.app.run_worker(fail)
        await console.sees("Internal error of the console", "test_offline.py:")
        assert "a value of somebody's" not in console.text
        console.app.broken.clear()

        await console.press("2")
        await console.sees("Payer")


async def test_the_return_of_the_service_is_announced_once(service: Service, tenant: Tenant, folder: Path) -> None:
    async with behind(service, tenant, folder) as (odd, console):
        await console.sees("live")
        await console.until(lambda: console.one(Banner).known_at, "the first answer")
        await odd.refuse()
        console.app.queue_monitor.watch.ring()
        await console.sees("cannot be reached.", "The data shown is", "old.")
        await odd.listen()

        await console.sees(f"{odd.url} answers again.")
        assert console.flat.count("answers again") == 1
