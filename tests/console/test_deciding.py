"""Decisions: about what is shown and nothing else, once, and what others did meanwhile is no error."""

import asyncio
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from textual import events

from console.widgets.shown_item import ShownItem
from tests.console.queues import ask, odd_queue, question, queue, state
from tests.console.waiting import item, later, queue_order
from tests.fixtures.callers import ADDRESS, OTHER_ADDRESS, Agent, Tenant, rule
from tests.fixtures.server import Service
from tests.outside.odd_api import answers, says_nothing


async def test_an_approval_signs_the_digest_that_was_shown(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    approval = queue_order(agent)
    async with odd_queue(service, tenant, folder) as (console, api):
        await ask(console, "a")
        await console.sees("Approve this?", ADDRESS, "0.000000000000000005 ETH (5 wei)", "Local chain", "expires in")

        await console.press("y")
        await console.sees("Approved by you")

        sent = [msgspec.json.decode(one.body) for one in api.at("/approvals/", "POST")]
    assert sent == [{"digest": item(tenant, approval)["digest"]}]
    assert state(tenant, approval) == "approved"
    assert agent.ok("GET", f"/vault/{agent.id}/history")[0]["status"] == "signed"


async def test_a_denial_carries_its_reason(service: Service, tenant: Tenant, agent: Agent, folder: Path) -> None:
    approval = queue_order(agent)
    async with queue(service, tenant, folder) as console:
        await ask(console, "d")

        await console.write("no invoice")
        await console.press("enter")
        await console.sees("Denied by you", 'Reason: "no')

    assert (state(tenant, approval), item(tenant, approval)["reason"]) == ("rejected", "no invoice")


async def test_enter_comes_after_what_was_typed_before_it(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    approval, reason = queue_order(agent), ", ".join(["the invoice is of another house"] * 9)
    async with queue(service, tenant, folder) as console:
        await ask(console, "d")

        # All at once, as a terminal hands on what was typed faster than it was drawn.
        for letter in reason:
            console.app.post_message(events.Key("space" if letter == " " else letter, letter))
        console.app.post_message(events.Key("enter", "\r"))
        await console.sees("Denied by you")

    assert item(tenant, approval)["reason"] == reason


@pytest.mark.long
async def test_stepping_back_decides_nothing(service: Service, tenant: Tenant, agent: Agent, folder: Path) -> None:
    approval = queue_order(agent)
    async with queue(service, tenant, folder) as console:
        for key in ("a", "d"):
            await ask(console, key)
            await console.press("escape")
            await console.sees_no("Cancel (Esc)")

    assert state(tenant, approval) == "pending"


@pytest.mark.parametrize(
    "known", [pytest.param(False, id="just now", marks=pytest.mark.long), pytest.param(True, id="seen")]
)
async def test_a_decision_never_slips_to_the_row_that_comes_after(
    service: Service, tenant: Tenant, agent: Agent, folder: Path, known: bool
) -> None:
    other, shown = queue_order(agent, 7), queue_order(agent, 5)
    async with queue(service, tenant, folder) as console:
        await console.sees("(5 wei)")

        tenant.ok("POST", f"/approvals/{shown}/deny", {})
        if known:
            await console.sees("Denied by a holder of the tenant key")
        await console.press("a", "y", "y")
        await console.sees("othing is left to decide" if known else "Denied")
        # "Denied" may be read beside a question that still asks; until that is answered Escape does not leave it.
        await console.until(lambda: not console.app.screen.is_modal or "Close (Esc)" in console.flat, "an answer")
        await console.pilot.pause(0.1)

        assert (state(tenant, shown), state(tenant, other)) == ("rejected", "pending")
        await console.press("escape", "down")
        await console.sees("(7 wei)")
        await ask(console, "a")
        await console.press("y")
        await console.sees("Approved by you")
    assert state(tenant, other) == "approved"


async def test_a_key_pressed_before_the_question_is_drawn_decides_nothing(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    approval = queue_order(agent)
    async with odd_queue(service, tenant, folder) as (console, api):
        await console.until(lambda: console.one(ShownItem).known, "what is known around it")

        # The question is there at once, and drawn only later: this comes between the two.
        console.one(ShownItem).screen.action_decide("approve")
        console.app.screen.action_accept()
        for _ in range(3):
            console.app.post_message(events.Key("y", "y"))
            await asyncio.sleep(0)
        await console.sees("Approve this?")

        assert (api.at("/approvals/", "POST"), state(tenant, approval)) == ([], "pending")
        await console.pilot.pause()
        await console.press("y")
        await console.sees("Approved by you")


async def test_a_decision_by_somebody_else_closes_the_question(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    approval = queue_order(agent)
    async with odd_queue(service, tenant, folder) as (console, api):
        await ask(console, "a")

        tenant.ok("POST", f"/approvals/{approval}/deny", {})
        await console.sees("Nothing is left to decide.")
        await console.press("y")
        await console.pilot.pause(0.05)

        assert api.at("/approvals/", "POST") == []
        await console.press("escape")
        await console.sees_no("Approve this?")


async def test_another_order_behind_the_same_id_is_refused_and_said(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    approval = queue_order(agent)
    changed = {"ok": False, "error": "Another order.", "data": {"code": "approval_changed"}}
    async with odd_queue(service, tenant, folder) as (console, api):
        await ask(console, "a")
        api.does(answers(409, changed), "/approvals/", "POST")

        await console.press("y")

        await console.sees("the order has changed since it was shown")
    assert state(tenant, approval) == "pending"


@pytest.mark.long
async def test_todays_rules_are_named_and_the_item_can_be_approved_once_they_allow_it(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    approval = queue_order(agent)
    rules = [rule("approved-addresses", addresses=[OTHER_ADDRESS]), rule("spending-limit", maxPerTransaction="1")]
    async with queue(service, tenant, folder) as console:
        await ask(console, "a")
        tenant.ok("PUT", f"/agents/{agent.id}/policies", rules)
        await console.press("y")
        await console.sees("stays pending", "approved-addresses:", "spending-limit:")
        assert state(tenant, approval) == "pending"

        tenant.ok("PUT", f"/agents/{agent.id}/policies", [])
        await console.press("y")

        await console.sees("Approved by you")
    assert state(tenant, approval) == "approved"


async def test_nothing_of_a_frozen_agent_is_approved(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    approval = queue_order(agent)
    async with queue(service, tenant, folder) as console:
        await ask(console, "a")
        tenant.ok("POST", f"/agents/{agent.id}/freeze", {"reason": "stolen"})

        await console.press("y")

        await console.sees("rozen", "Approve this?")
    assert state(tenant, approval) == "pending"


async def test_read_only_sees_and_cannot_decide(service: Service, tenant: Tenant, agent: Agent, folder: Path) -> None:
    approval = queue_order(agent)
    async with queue(service, tenant, folder, read_only=True) as console:
        await console.sees("This console is read-only.")
        await console.sees_no("Deny", "Mark")

        await console.press("a", "enter", "d", "enter")
        await console.pilot.pause(0.05)

        assert "Cancel (Esc)" not in console.text
    assert state(tenant, approval) == "pending"


@pytest.mark.long
async def test_the_context_of_the_shown_item_is_kept_current(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    first, second, shown = queue_order(agent, 5), queue_order(agent, 6), queue_order(agent, 7)
    clock = [later(item(tenant, shown))]
    async with queue(service, tenant, folder, now=lambda: clock[0]) as console:
        await console.sees("(7 wei)", "Never paid before.")
        tenant.ok("POST", f"/approvals/{first}/approve", {})
        clock[0] += timedelta(minutes=1)
        await console.sees_no("Never paid before.")

        await ask(console, "a")
        await console.sees("Approve this?", "at most 0.000000000000000005 ETH (5 wei)")
        tenant.ok("POST", f"/approvals/{second}/approve", {})
        clock[0] += timedelta(minutes=1)
        await console.sees(
            "New information has arrived: read it from the top.", "at most 0.000000000000000006 ETH (6 wei)"
        )


@pytest.mark.long
async def test_no_question_begins_with_what_was_known_long_ago(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    marked, shown = queue_order(agent, 6), queue_order(agent, 7)
    clock = [later(item(tenant, shown))]
    async with odd_queue(service, tenant, folder, now=lambda: clock[0]) as (console, api):
        await console.press("down")
        await console.sees("(6 wei)", "Never paid before.")
        await console.press("space", "up")
        await console.sees("(7 wei)", "Never paid before.")

        api.does(says_nothing, f"/vault/{agent.id}/transactions")
        clock[0] += timedelta(minutes=1)
        await console.press("a")

        await console.sees("Approve this?", "(6 wei)")
        assert "First time" not in question(console)
        assert state(tenant, marked) == "pending"
