"""Decisions: about what is shown and nothing else, once, and what others did meanwhile is no error. Decisions 4, 11."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import msgspec
import pytest
from textual import events

from console.dialogs.batch import BatchDecision
from console.widgets.listing import Listing
from console.widgets.shown_item import ShownItem
from tests.console.waiting import SPENDER, asked, cautious, item, later, queued, random_of, several, unlimited
from tests.fixtures.callers import ADDRESS, OTHER_ADDRESS, Agent, Tenant, rule
from tests.fixtures.consoles import NARROW, Driven, driven
from tests.fixtures.server import Service
from tests.outside.odd_api import OddApi, Request, answers, hangs_up, loses, odd_api, passes_on, refuses, says_nothing


@pytest.fixture
def agent(tenant: Tenant) -> Agent:
    """An agent of whom every order waits."""
    return cautious(tenant)


@asynccontextmanager
async def queue(service: Service, tenant: Tenant, folder: Path, **options: Any) -> AsyncIterator[Driven]:
    """A console that has read the queue."""
    async with driven(service.url, folder, key=tenant.key, **options) as console:
        await console.sees("waiting", "live", "What it does")
        yield console


@asynccontextmanager
async def odd_queue(service: Service, tenant: Tenant, folder: Path) -> AsyncIterator[tuple[Driven, OddApi]]:
    """The same through an API that can be made to misbehave."""
    async with odd_api(service.url) as api, driven(api.url, folder, key=tenant.key) as console:
        await console.sees("waiting", "live", "What it does")
        yield console, api


def state(tenant: Tenant, approval: str) -> str:
    found: str = item(tenant, approval)["status"]
    return found


async def test_what_is_approved_is_signed_with_the_digest_that_was_shown(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    approval = queued(agent)
    async with odd_queue(service, tenant, folder) as (console, api):
        await asked(console, "a")
        await console.sees("Approve this?", ADDRESS, "0.000000000000000005 ETH (5 wei)", "Local chain", "expires in")

        await console.press("enter")
        await console.sees("Approved by you")

        sent = [msgspec.json.decode(one.body) for one in api.at("/approvals/", "POST")]
    assert sent == [{"digest": item(tenant, approval)["digest"]}]
    assert state(tenant, approval) == "approved"
    assert agent.ok("GET", f"/vault/{agent.id}/history")[0]["status"] == "signed"


async def test_what_is_denied_carries_its_reason(service: Service, tenant: Tenant, agent: Agent, folder: Path) -> None:
    approval = queued(agent)
    async with queue(service, tenant, folder) as console:
        await asked(console, "d")

        await console.write("no invoice")
        await console.press("enter")
        await console.sees("Denied by you", 'Reason: "no')

    assert (state(tenant, approval), item(tenant, approval)["reason"]) == ("rejected", "no invoice")


async def test_enter_comes_after_what_was_typed_before_it(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    approval, reason = queued(agent), ", ".join(["the invoice is of another house"] * 9)
    async with queue(service, tenant, folder) as console:
        await asked(console, "d")

        # All at once, as a terminal hands on what was typed faster than it was drawn.
        for letter in reason:
            console.app.post_message(events.Key("space" if letter == " " else letter, letter))
        console.app.post_message(events.Key("enter", "\r"))
        await console.sees("Denied by you")

    assert item(tenant, approval)["reason"] == reason


async def test_stepping_back_decides_nothing(service: Service, tenant: Tenant, agent: Agent, folder: Path) -> None:
    approval = queued(agent)
    async with queue(service, tenant, folder) as console:
        for key in ("a", "d"):
            await asked(console, key)
            await console.press("escape")
            await console.gone("Cancel (Esc)")

    assert state(tenant, approval) == "pending"


@pytest.mark.parametrize("known", [False, True], ids=["just now", "seen"])
async def test_a_decision_never_slips_to_the_row_that_comes_after(
    service: Service, tenant: Tenant, agent: Agent, folder: Path, known: bool
) -> None:
    other, shown = queued(agent, 7), queued(agent, 5)
    async with queue(service, tenant, folder) as console:
        await console.sees("(5 wei)")

        tenant.ok("POST", f"/approvals/{shown}/deny", {})
        if known:
            await console.sees("Denied by the holder of the tenant key")
        await console.press("a", "enter", "enter")
        await console.sees("othing is left to decide" if known else "Denied")
        await console.pilot.pause(0.1)

        assert (state(tenant, shown), state(tenant, other)) == ("rejected", "pending")
        await console.press("escape", "down")
        await console.sees("(7 wei)")
        await asked(console, "a")
        await console.press("enter")
        await console.sees("Approved by you")
    assert state(tenant, other) == "approved"


async def test_what_somebody_else_decides_while_one_is_asked_ends_the_question(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    approval = queued(agent)
    async with odd_queue(service, tenant, folder) as (console, api):
        await asked(console, "a")

        tenant.ok("POST", f"/approvals/{approval}/deny", {})
        await console.sees("There is nothing left to decide.")
        await console.press("enter")
        await console.pilot.pause(0.05)

        assert api.at("/approvals/", "POST") == []
        await console.press("escape")
        await console.gone("Approve this?")


async def test_what_expires_while_one_is_asked_ends_the_question(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    approval = queued(agent)
    clock = [later(item(tenant, approval))]
    async with queue(service, tenant, folder, now=lambda: clock[0]) as console:
        await asked(console, "a")
        await console.sees("expires in 23h 58m, at")

        clock[0] += timedelta(days=1)
        await console.sees("Expired at", "There is nothing left to decide.")
        await console.press("enter", "escape")
        await console.gone("Approve this?")

        await console.press("a")
        await console.sees("Nothing is left to decide. Expired")
    assert state(tenant, approval) == "pending"


async def test_a_decision_that_comes_too_late_is_said_as_what_it_is(
    service: Service, tenant: Tenant, agent: Agent, folder: Path, owner: asyncpg.Connection
) -> None:
    approval = queued(agent)
    async with queue(service, tenant, folder) as console:
        await asked(console, "d")
        await owner.execute("UPDATE approvals SET expires_at = now() - interval '1 s' WHERE id = $1", approval)

        await console.press("enter")

        await console.sees("Expired at", "Nothing was decided; the agent has to ask again.")


async def test_another_order_behind_the_same_id_is_refused_and_said(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    approval = queued(agent)
    changed = {"ok": False, "error": "Another order.", "data": {"code": "approval_changed"}}
    async with odd_queue(service, tenant, folder) as (console, api):
        await asked(console, "a")
        api.does(answers(409, changed), "/approvals/", "POST")

        await console.press("enter")

        await console.sees("the order is not the one shown here")
    assert state(tenant, approval) == "pending"


async def test_todays_rules_are_named_and_the_item_can_be_approved_once_they_allow_it(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    approval = queued(agent)
    rules = [rule("approved-addresses", addresses=[OTHER_ADDRESS]), rule("spending-limit", maxPerTransaction="1")]
    async with queue(service, tenant, folder) as console:
        await asked(console, "a")
        tenant.ok("PUT", f"/agents/{agent.id}/policies", rules)
        await console.press("enter")
        await console.sees("still waits", "approved-addresses:", "spending-limit:")
        assert state(tenant, approval) == "pending"

        tenant.ok("PUT", f"/agents/{agent.id}/policies", [])
        await console.press("enter")

        await console.sees("Approved by you")
    assert state(tenant, approval) == "approved"


async def test_nothing_of_a_frozen_agent_is_approved(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    approval = queued(agent)
    async with queue(service, tenant, folder) as console:
        await asked(console, "a")
        tenant.ok("POST", f"/agents/{agent.id}/freeze", {"reason": "stolen"})

        await console.press("enter")

        await console.sees("rozen", "Approve this?")
    assert state(tenant, approval) == "pending"


async def test_what_was_signed_but_not_sent_is_no_failure(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    queued(agent)
    signed = {"txId": "t", "txHash": "0xfeed", "status": "signed", "code": "upstream_failed"}
    async with odd_queue(service, tenant, folder) as (console, api):
        await asked(console, "a")
        api.does(answers(502, {"ok": False, "error": "The node is away.", "data": signed}), "/approvals/", "POST")

        await console.press("enter")

        await console.sees("Approved by you", "0xfeed", "the service sends it again by itself")
        await console.gone("Approve this?")


async def test_without_an_answer_one_asks_again_under_the_same_key(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    approval = queued(agent)
    async with odd_queue(service, tenant, folder) as (console, api):
        await asked(console, "a")
        api.does(hangs_up, "/approvals/", "POST")
        await console.press("enter")
        await console.sees("It may have happened")
        api.well()

        await console.press("enter")
        await console.sees("Approved by you")

        keys = [one.headers["idempotency-key"] for one in api.at("/approvals/", "POST")]
    assert (len(keys), len(set(keys))) == (2, 1)
    assert state(tenant, approval) == "approved"


async def test_when_only_the_answer_was_lost_the_approval_is_seen_all_the_same(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    queued(agent)
    async with odd_queue(service, tenant, folder) as (console, api):
        await asked(console, "a")
        api.does(loses, "/approvals/", "POST")

        await console.press("enter")

        await console.sees("Approved at", "nothing left", "Close (Esc)")
    assert [one["status"] for one in agent.ok("GET", f"/vault/{agent.id}/history")] == ["signed"]


async def test_a_key_pressed_before_the_question_is_drawn_decides_nothing(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    approval = queued(agent)
    async with odd_queue(service, tenant, folder) as (console, api):
        await console.until(lambda: console.one(ShownItem).known, "what is known around it")

        # The question is there at once, and drawn only later: this comes between the two.
        console.one(ShownItem).screen.action_decide("approve")
        console.app.screen.action_confirm()
        for _ in range(3):
            console.app.post_message(events.Key("enter", None))
            await asyncio.sleep(0)
        await console.sees("Approve this?")

        assert (api.at("/approvals/", "POST"), state(tenant, approval)) == ([], "pending")
        await console.pilot.pause()
        await console.press("enter")
        await console.sees("Approved by you")


MANY = [(ADDRESS, amount) for amount in range(5, 17)]
READ_ON, APPROVE = "Read on (Enter)", "Approve (Enter)"


@pytest.mark.parametrize("keys", [("a",), ("space", "a")], ids=["shown", "marked"])
async def test_what_does_not_fit_is_read_to_its_end_before_it_can_be_approved(
    service: Service, tenant: Tenant, agent: Agent, folder: Path, keys: tuple[str, ...]
) -> None:
    approval = several(agent, *MANY, (SPENDER, 10**30))
    async with queue(service, tenant, folder) as console:
        await asked(console, *keys)
        await console.sees("Approve this?", READ_ON, "▼ more below")
        assert SPENDER not in question(console)

        while READ_ON in console.text:
            assert APPROVE not in console.text
            await console.press("enter")

        await console.sees(APPROVE)
        assert SPENDER in question(console)
        assert state(tenant, approval) == "pending"
        await console.press("enter")
        await console.sees("Approved by you")


def question(console: Driven) -> str:
    """What is seen inside the question, between its frames."""
    return console.flat[console.flat.index("Approve th") :] if "Approve th" in console.flat else ""


async def read_through(console: Driven) -> list[str]:
    """Press Enter until nothing is left to read; each page on the way."""
    pages = [question(console)]
    while READ_ON in console.text:
        await console.press("enter")
        pages.append(question(console))
    return pages


async def test_an_ordinary_payment_takes_one_key_in_a_narrow_terminal(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    queued(agent)
    async with queue(service, tenant, folder, size=NARROW) as console:
        await asked(console, "a")
        await console.sees(ADDRESS, "On Local chain", APPROVE)

        await console.press("enter")

        await console.sees("Approved by you")


async def test_what_becomes_known_while_one_reads_is_read_from_the_top(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    first = several(agent, (ADDRESS, 1))
    tenant.ok("POST", f"/approvals/{first}/approve", {"digest": item(tenant, first)["digest"]})
    approval = several(agent, *MANY, (SPENDER, 10**30))
    known = asyncio.Event()

    async def slow(api: OddApi, request: Request, writer: asyncio.StreamWriter) -> None:
        await known.wait()
        async for chunk in api.asked(request):
            writer.write(chunk)

    async with odd_api(service.url) as api:
        api.does(slow, "/vault/")
        async with driven(api.url, folder, key=tenant.key) as console:
            await console.sees("waiting", "live", "What it does")
            await console.press("a")
            await console.sees(READ_ON)
            await console.press("enter")

            known.set()
            await console.sees("More has become known: read it from the top.", READ_ON)

            # Whom the agent has never paid comes first from now on.
            assert any(SPENDER in page for page in await read_through(console))
            assert state(tenant, approval) == "pending"


async def test_no_key_leaps_over_what_lies_between(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    several(agent, *MANY[:8], (SPENDER, 10**30), *MANY[8:])
    async with queue(service, tenant, folder, size=(52, 20)) as console:
        await asked(console, "a")
        await console.sees(READ_ON)
        await console.press("end")
        await console.pilot.wait_for_scheduled_animations()
        pages = [question(console)]

        while READ_ON in console.text:
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
        await asked(console, "a")
        await console.sees(READ_ON)
        await console.press("enter", "enter", "enter")
        assert "asks for this" not in question(console)

        await console.pilot.resize_terminal(140, 44)
        await console.sees("asks for this", READ_ON)

        assert any(SPENDER in page for page in await read_through(console))


async def test_nothing_lies_over_a_question(service: Service, tenant: Tenant, agent: Agent, folder: Path) -> None:
    queued(agent)
    async with queue(service, tenant, folder, size=NARROW) as console:
        console.app.tell("Said before.")
        await console.sees("Said before.")

        await asked(console, "a")
        console.app.tell("Said meanwhile.")
        await console.pilot.pause()

        assert "Said before." not in console.text
        assert "Said meanwhile." not in console.text
        await console.press("escape")
        await console.sees("Said meanwhile.")


async def test_before_it_can_have_been_read_a_key_decides_nothing(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    approval = queued(agent)
    async with queue(service, tenant, folder, pause=60) as console:
        await asked(console, "a")
        await console.sees("Read first…")

        await console.press("enter", "enter")
        await console.pilot.click("#confirm")

        assert "Read first…" in console.text
        assert state(tenant, approval) == "pending"


async def test_after_the_pause_a_key_decides(service: Service, tenant: Tenant, agent: Agent, folder: Path) -> None:
    queued(agent)
    async with queue(service, tenant, folder, pause=0.1) as console:
        await asked(console, "a")
        await console.sees(APPROVE)

        await console.press("enter")

        await console.sees("Approved by you")


async def test_a_question_that_is_answered_while_one_has_to_sign_in_again_closes_itself(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    approval, answered = queued(agent), asyncio.Event()

    async def slow(api: OddApi, request: Request, writer: asyncio.StreamWriter) -> None:
        await answered.wait()
        await passes_on(api, request, writer)

    async with odd_queue(service, tenant, folder) as (console, api):
        await asked(console, "a")
        api.does(refuses(401, "No longer.", "unauthorized"))
        api.does(slow, "/approvals/", "POST")
        await console.press("enter")
        queued(agent)
        await console.sees("Press r to try again")

        answered.set()
        await console.until(lambda: state(tenant, approval) == "approved", "the approval")
        api.well()
        await console.press("r")

        await console.sees("1 waiting")
        await console.gone("Approve this?")


@pytest.mark.long
async def test_one_may_leave_a_question_whose_answer_does_not_come(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    queued(agent)
    async with odd_queue(service, tenant, folder) as (console, api):
        await asked(console, "a")
        api.does(says_nothing, "/approvals/", "POST")
        await console.press("enter", "escape")
        await console.sees("Approve this?", "Asking… Esc leaves.")

        await console.press("escape")

        await console.sees("It may have happened or not; the queue will tell.")
        await console.gone("Approve this?")


async def test_what_was_decided_is_not_added_to_what_was_spent(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    rules = [rule("auto-approve-threshold", threshold="0"), rule("spending-limit", maxPerDay="100")]
    tenant.ok("PUT", f"/agents/{agent.id}/policies", rules)
    queued(agent)
    async with queue(service, tenant, folder) as console:
        await console.sees("with this order")
        await asked(console, "a")

        await console.press("enter")
        await console.sees("Approved by you")

        await console.gone("with this order")


async def test_another_reason_after_a_lost_answer_is_another_request(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    approval = queued(agent)
    async with odd_queue(service, tenant, folder) as (console, api):
        await asked(console, "d")
        api.does(hangs_up, "/approvals/", "POST")
        await console.write("no")
        await console.press("enter")
        await console.sees("It may have happened")
        api.well()

        await console.write(" way")
        await console.press("enter")
        await console.sees("Denied by you")

        keys = [one.headers["idempotency-key"] for one in api.at("/approvals/", "POST")]
    assert len(set(keys)) == 2
    assert item(tenant, approval)["reason"] == "no way"


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


async def test_read_only_sees_and_cannot_decide(service: Service, tenant: Tenant, agent: Agent, folder: Path) -> None:
    approval = queued(agent)
    async with queue(service, tenant, folder, read_only=True) as console:
        await console.sees("This console is read-only: others decide.")
        await console.gone("Deny", "Mark")

        await console.press("a", "enter", "d", "enter")
        await console.pilot.pause(0.05)

        assert "Cancel (Esc)" not in console.text
    assert state(tenant, approval) == "pending"


@pytest.mark.long
async def test_pictures_of_the_questions(
    service: Service, tenant: Tenant, agent: Agent, folder: Path, pictures: Any
) -> None:
    shown = [item(tenant, one) for one in (queued(agent, 15 * 10**17), unlimited(agent))]
    async with queue(service, tenant, folder, now=lambda: later(shown[1])) as console:

        async def pictured(name: str, *keys: str) -> None:
            await asked(console, *keys)
            assert await console.picture(*random_of(*shown)) == pictures(name=name)
            await console.press("escape")
            await console.gone("Cancel (Esc)")

        await console.until(lambda: len(console.one(Listing).rows) == 2, "both")
        await pictured("unlimited", "a")
        await pictured("payment", "down", "a")
        await pictured("deny light", "ctrl+t", "d")
        await pictured("batch", "ctrl+t", "home", "space", "space", "d")
        await console.pilot.resize_terminal(*NARROW)
        await pictured("deny narrow", "home", "d")
        await pictured("unlimited narrow", "a")
