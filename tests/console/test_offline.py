"""What one sees while the service is away, slow or faulty: what was known, how old it is, and that it is asked again."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from console.failures import Patience
from console.widgets.banner import Banner
from console.widgets.listing import Listing
from console.widgets.search_line import SearchLine
from tests.console.waiting import cautious, item, queued
from tests.fixtures.callers import Tenant
from tests.fixtures.consoles import WIDE, Driven, driven
from tests.fixtures.server import Service
from tests.outside import odd_api
from tests.outside.odd_api import Deed, OddApi, answers, refuses, succeeds

HURRY = Patience(connect=1, silence=0.15, answer=0.3, stream_silence=5, again=(0.02, 0.02, 0.1))
SCREEN = "Custody default"


@asynccontextmanager
async def behind(
    service: Service, tenant: Tenant, folder: Path, size: tuple[int, int] = WIDE
) -> AsyncIterator[tuple[OddApi, Driven]]:
    """A console that asks through an odd API, and is in a hurry."""
    async with (
        odd_api.odd_api(service.url) as odd,
        driven(odd.url, folder, key=tenant.key, size=size) as console,
    ):
        await console.until(lambda: console.app.current_mode == "approvals", "the queue")
        console.app.client.patience = HURRY
        yield odd, console


ODD: dict[str, tuple[Deed, str]] = {
    "silent": (odd_api.says_nothing, "did not answer in time."),
    "drips": (odd_api.drips, "did not answer in time."),
    "hangs up": (odd_api.hangs_up, "broke off the answer"),
    "cut": (odd_api.cuts, "broke off the answer"),
    "403": (refuses(403, "This key may not look."), "This key may not look."),
    "404": (refuses(404, "No such thing."), "No such thing."),
    "423": (refuses(423, "The tenant is frozen.", "frozen"), "The tenant is frozen."),
    "429": (refuses(429, "Too many requests.", Retry_After="1"), "Too many requests."),
    "500": (refuses(500, "It failed.", X_Request_Id="req-7"), "It failed. (request req-7)"),
    "502": (answers(502, b"<h1>Bad Gateway</h1>"), "answered 502: the service behind it is away."),
    "hotel": (answers(200, b"<h1>Welcome, guest</h1>"), "something that is not of this service"),
    "null": (succeeds(None), "does not understand"),
    "other kind": (succeeds([{"id": 7}]), "does not understand"),
    "bomb": (answers(200, b"", Content_Encoding="gzip"), "compressed"),
}


async def test_whatever_is_answered_the_queue_stays_and_goes_on_by_itself(
    service: Service, tenant: Tenant, folder: Path
) -> None:
    agent = cautious(tenant)
    keys = [queued(agent, value) for value in (1, 2, 3)]
    async with behind(service, tenant, folder) as (odd, console):
        await console.sees("3 waiting")
        await console.press("down", "slash", *"payer")
        listing, search = console.one(Listing), console.one(SearchLine)
        at = listing.row
        for name, (deed, words) in ODD.items():
            odd.does(deed, "/approvals")
            console.app.lookout.watch.ring()
            await console.sees(words)

            assert {row.id for row in listing.rows} == set(keys), name
            assert (listing.row, search.value, console.app.focused) == (at, "payer", search), name
            odd.well()
            await console.until(lambda: not console.one(Banner).display, f"the end of {name}")
        await odd.refuse()
        await console.sees("cannot be reached.")
        await odd.listen()
        await console.until(lambda: not console.one(Banner).display, "the end of it")

        assert (search.value, console.app.focused) == ("payer", search)
