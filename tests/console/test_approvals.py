"""The queue on the screen: what one sees of it, and how one finds one's way."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from console.entry.person import Person
from console.queue import batch
from console.queue.decisions import why_not
from console.queue.queue import Item
from console.widgets.listing import Listing
from console.widgets.shown_item import ShownItem
from tests.console.waiting import TOKEN, cautious, item, later, queue_order, queue_unlimited, random_of
from tests.fixtures.callers import ADDRESS, OTHER_ADDRESS, Tenant
from tests.fixtures.consoles import NARROW, Driven, driving
from tests.fixtures.server import Service
from tests.outside.odd_api import OddApi, Request, answers, hangs_up, odd_api
from words.shapes import Approval, Effect


def rows(console: Driven) -> list[str]:
    return [row.id for row in console.one(Listing).rows]


@asynccontextmanager
async def three(service: Service, tenant: Tenant, folder: Path) -> AsyncIterator[tuple[Driven, list[str]]]:
    """A console over three items of two agents."""
    payer, saver = cautious(tenant, "payer"), cautious(tenant, "saver")
    made = [queue_order(payer, 5 * 10**17), queue_order(saver, 10**18, OTHER_ADDRESS), queue_unlimited(payer)]
    async with driving(service.url, folder, key=tenant.key) as console:
        await console.sees("3 waiting", "live")
        yield console, made


async def test_the_order_can_be_changed_and_the_cursor_stays_on_its_item(
    service: Service, tenant: Tenant, folder: Path
) -> None:
    async with three(service, tenant, folder) as (console, (payment, saving, approval)):
        assert rows(console) == [approval, saving, payment]

        for order, expected in (
            ("oldest first", [payment, saving, approval]),
            ("soonest to expire", [payment, saving, approval]),
            ("largest native amount", [approval, saving, payment]),
            ("by agent", [approval, payment, saving]),
            ("newest first", [approval, saving, payment]),
        ):
            await console.press("s")
            await console.sees(order)
            assert rows(console) == expected
            assert console.one(Listing).row.id == approval
            assert console.one(ShownItem).item.id == approval


@pytest.mark.long
async def test_a_search_narrows_with_every_letter(service: Service, tenant: Tenant, folder: Path) -> None:
    async with three(service, tenant, folder) as (console, (payment, saving, approval)):
        await console.press("slash")
        await console.write("0x2222")
        await console.until(lambda: rows(console) == [saving], "the one that is searched")
        await console.sees("(1,000,000,000,000,000,000 wei)", '1 waiting · with "0x2222"')

        await console.press("enter", "slash", "home", "ctrl+k")
        await console.write("0.5 eth")
        await console.until(lambda: rows(console) == [payment], "what the line says")
        await console.write("z")
        await console.sees("No matching approvals.")
        await console.press("escape")

        await console.until(lambda: rows(console) == [approval, saving, payment], "all of them")
        assert isinstance(console.app.focused, Listing)


@pytest.mark.long
@pytest.mark.long
async def test_the_queue_is_filtered_by_agent_and_by_what_became_of_it(
    service: Service, tenant: Tenant, folder: Path
) -> None:
    async with three(service, tenant, folder) as (console, (payment, saving, approval)):
        tenant.ok("POST", f"/approvals/{payment}/deny", {"reason": "twice"})
        await console.sees("2 waiting")

        await console.press("f")
        await console.sees("Waiting, of Saver (saver)")
        await console.press("end", "enter")
        await console.until(lambda: rows(console) in ([saving], [approval]), "one agent")

        await console.press("f", "home", "down", "down", "enter")
        await console.until(lambda: rows(console) == [payment], "what was denied")
        await console.sees("1 denied", "Denied by a holder of the tenant key", 'Reason: "twice".')
        await console.press("a")
        await console.sees("Nothing is left to decide.")
        await console.press("f", "home", "enter")
        await console.until(lambda: rows(console) == [approval, saving], "the queue")


@pytest.mark.long
async def test_a_click_looks_and_two_open(service: Service, tenant: Tenant, folder: Path) -> None:
    async with three(service, tenant, folder) as (console, (payment, _, __)):
        await console.pilot.click("#items", offset=(5, 3))
        await console.until(lambda: console.one(ShownItem).item.id == payment, "the item under the mouse")

        await console.pilot.click("#items", offset=(5, 3), times=2)

        await console.until(lambda: console.app.focused is console.one(ShownItem).query_one("OrderPane"), "the pane")
        await console.press("escape")
        assert isinstance(console.app.focused, Listing)


async def test_in_a_narrow_terminal_the_keys_fit_and_the_way_back_is_among_them(
    service: Service, tenant: Tenant, folder: Path
) -> None:
    async with three(service, tenant, folder) as (console, _):
        await console.pilot.resize_terminal(*NARROW)
        await console.sees("Search", "q Quit")
        await console.sees_no("Reload")

        await console.press("enter")
        await console.sees("esc Back", "q Quit")
        await console.press("escape")

        await console.sees_no("esc Back")


async def test_marks_are_counted_and_taken_back(service: Service, tenant: Tenant, folder: Path) -> None:
    async with three(service, tenant, folder) as (console, _):
        await console.press("space", "space")
        await console.sees("3 waiting · 2 marked", "●")

        await console.press("up", "space")

        await console.sees("3 waiting · 1 marked")


@pytest.mark.parametrize(
    ("person", "read_only", "sentence"),
    [
        (Person(user="u", role="owner"), False, ""),
        (Person(), False, ""),
        (Person(), True, "This console is read-only."),
        (Person(user="u", role="viewer"), False, "Your role (viewer) sees the queue; owners and admins decide."),
    ],
    ids=["owner", "tenant key", "read-only", "viewer"],
)
def test_a_person_who_may_not_decide_reads_why(person: Person, read_only: bool, sentence: str) -> None:
    assert why_not(person, read_only=read_only) == sentence


def payment(*effects: Effect, to: str = ADDRESS, chain: int = 1) -> Item:
    return Item(
        Approval(
            id="a",
            tx_id="t",
            agent_id="p",
            agent_name="P",
            status="pending",
            requested_at="",
            digest="",
            kind="evm",
            to_address=to,
            chain_id=chain,
            effects=effects,
        )
    )


def ether(to: str = ADDRESS, amount: str = "5") -> Effect:
    return Effect(kind="transfer", asset="evm:native", amount=amount, from_=OTHER_ADDRESS, to=to)


def token(to: str, token_contract: str = TOKEN) -> Effect:
    return Effect(kind="transfer", asset=f"evm:1:{token_contract}", amount="5", to=to)


FEE = Effect(kind="fee", asset="evm:native", amount="3", from_=OTHER_ADDRESS)
MIXED, LOWER = "0x" + "Ab" * 20, "0x" + "ab" * 20
BY_ONE = "Decide them one by one."


@pytest.mark.parametrize(
    ("items", "why"),
    [
        ([payment(ether(), FEE), payment(ether(amount="9"), FEE)], ""),
        ([payment(ether(MIXED), to=MIXED), payment(ether(LOWER), to=LOWER)], ""),
        ([payment(token(ADDRESS), to=TOKEN), payment(token(OTHER_ADDRESS), to=TOKEN)], "differ in destination"),
        (
            [payment(token(ADDRESS), to=TOKEN), payment(token(ADDRESS, SPENDER := "0x" + "4" * 40), to=TOKEN)],
            "differ in destination",
        ),
        ([payment(ether()), payment(ether(), token(ADDRESS))], "differ in destination"),
        ([payment(ether(), ether(OTHER_ADDRESS))] * 2, "pays several destinations at once"),
        ([payment(ether()), payment(ether(), chain=10)], "on different chains"),
        ([payment(ether()), payment()], "effects of some of these are unknown"),
        ([payment(Effect(kind="approval", asset="evm:1:0x3", amount="5", spender=SPENDER))] * 2, "Only payments"),
        ([payment(Effect(kind="unread", to=ADDRESS))] * 2, "Only payments"),
    ],
    ids=[
        "amounts",
        "spellings",
        "recipients",
        "tokens",
        "a second one",
        "several",
        "chains",
        "nothing",
        "approvals",
        "unread",
    ],
)
def test_only_the_same_payment_is_approved_several_times(items: list[Item], why: str) -> None:
    assert why in batch.refusal(items)
    assert bool(batch.refusal(items)) is bool(why)


def test_totals_are_by_asset_and_chain_and_never_of_what_has_no_bound() -> None:
    boundless = Effect(kind="approval", asset=f"evm:1:{TOKEN}", amount=str(2**256 - 1), spender=ADDRESS)
    items = [payment(ether(amount="5"), FEE), payment(ether(amount="7")), payment(token(ADDRESS)), payment(boundless)]
    items.append(payment(ether(amount="0x10"), FEE))

    assert batch.totals(items) == [
        "In all 0.000000000000000012 ETH (12 wei)",
        f"In all 5 raw units (decimals unknown) token {TOKEN}",
        "Total fees at most 0.000000000000000006 ETH (6 wei)",
        "UNLIMITED: 1 of these have no maximum amount.",
        "Not in these sums: 1 whose amount is unknown.",
    ]


@pytest.mark.long
async def test_pictures_of_the_queue(service: Service, tenant: Tenant, folder: Path, pictures: Any) -> None:
    payer, saver = cautious(tenant, "payer"), cautious(tenant, "saver")
    made = [queue_order(payer, 15 * 10**17), queue_unlimited(payer), queue_order(saver, 3, OTHER_ADDRESS)]
    shown = [item(tenant, one) for one in made]
    async with driving(service.url, folder, key=tenant.key, now=lambda: later(shown[2])) as console:
        await console.sees("3 waiting", "live")
        await console.press("space")
        await console.until(lambda: console.one(ShownItem).known, "what is known around it")

        assert await console.picture(*random_of(*shown)) == pictures(name="wide")
        await console.press("ctrl+t")
        assert await console.picture(*random_of(*shown)) == pictures(name="light")
        await console.press("ctrl+t")
        await console.pilot.resize_terminal(*NARROW)
        assert await console.picture(*random_of(*shown)) == pictures(name="narrow")


async def test_a_picture_of_nothing(service: Service, tenant: Tenant, folder: Path, pictures: Any) -> None:
    async with driving(service.url, folder, key=tenant.key) as console:
        await console.sees("No pending approvals.", "live")

        assert await console.picture() == pictures


@pytest.mark.long
async def test_a_history_that_could_not_be_read_on_is_read_on_once_the_service_answers(
    service: Service, tenant: Tenant, folder: Path
) -> None:
    denied = queue_order(cautious(tenant))
    tenant.ok("POST", f"/approvals/{denied}/deny", {})
    found = [item(tenant, denied) | {"id": f"a-{number}"} for number in range(300)]

    async def pages(api: OddApi, request: Request, writer: asyncio.StreamWriter) -> None:
        start = int(request.path.rpartition("cursor=")[2]) if "cursor=" in request.path else 0
        onwards = {"X_Next_Cursor": str(start + 200)} if start + 200 < len(found) else {}
        data = {"ok": True, "data": found[start : start + 200]}
        await answers(200, data, X_Total_Count=str(len(found)), **onwards)(api, request, writer)

    history = "/approvals?status=rejected"
    async with odd_api(service.url) as api, driving(api.url, folder, key=tenant.key) as console:
        api.does(pages, history)
        api.does(hangs_up, f"{history}&limit=200&cursor=200")
        await console.sees("0 waiting", "live")
        await console.press("f", "home", "down", "down", "enter")
        await console.sees("200 of 300 read")
        await console.press("end", "up", "up")
        await console.until(lambda: console.app.away, "the loss of the service")
        here = console.one(Listing).row.id

        api.does(pages, history)

        await console.until(lambda: len(rows(console)) == 300, "all of them")
        assert console.one(Listing).row.id == here
