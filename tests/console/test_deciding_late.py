"""Decisions that come too late, or whose answer is lost: said as what they are, and they happen once."""

import asyncio
from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest

from tests.console.queues import ask, odd_queue, queue, state
from tests.console.waiting import item, later, queue_order
from tests.fixtures.callers import Agent, Tenant, rule
from tests.fixtures.server import Service
from tests.outside.odd_api import OddApi, Request, answers, hangs_up, loses, passes_on, refuses, says_nothing

pytestmark = pytest.mark.long


async def test_an_approval_that_expires_meanwhile_closes_the_question(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    approval = queue_order(agent)
    clock = [later(item(tenant, approval))]
    async with queue(service, tenant, folder, now=lambda: clock[0]) as console:
        await ask(console, "a")
        await console.sees("expires in 23h 58m, at")

        clock[0] += timedelta(days=1)
        await console.sees("Expired at", "Nothing is left to decide.")
        await console.press("y", "escape")
        await console.sees_no("Approve this?")

        await console.press("a")
        await console.sees("Nothing is left to decide. Expired")
    assert state(tenant, approval) == "pending"


async def test_a_decision_that_comes_too_late_is_said_as_what_it_is(
    service: Service, tenant: Tenant, agent: Agent, folder: Path, owner: asyncpg.Connection
) -> None:
    approval = queue_order(agent)
    async with queue(service, tenant, folder) as console:
        await ask(console, "d")
        await owner.execute("UPDATE approvals SET expires_at = now() - interval '1 s' WHERE id = $1", approval)

        await console.press("enter")

        await console.sees("Expired at", "Not decided; the agent must send the request again.")


async def test_an_order_signed_but_not_broadcast_is_no_failure(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    queue_order(agent)
    signed = {"txId": "t", "txHash": "0xfeed", "status": "signed", "code": "upstream_failed"}
    async with odd_queue(service, tenant, folder) as (console, api):
        await ask(console, "a")
        api.does(answers(502, {"ok": False, "error": "The node is away.", "data": signed}), "/approvals/", "POST")

        await console.press("y")

        await console.sees("Approved by you", "0xfeed", "the service retries automatically")
        await console.sees_no("Approve this?")


async def test_without_an_answer_one_asks_again_under_the_same_key(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    approval = queue_order(agent)
    async with odd_queue(service, tenant, folder) as (console, api):
        await ask(console, "a")
        api.does(hangs_up, "/approvals/", "POST")
        await console.press("y")
        await console.sees("The outcome is unknown")
        api.well()

        await console.press("y")
        await console.sees("Approved by you")

        keys = [one.headers["idempotency-key"] for one in api.at("/approvals/", "POST")]
    assert (len(keys), len(set(keys))) == (2, 1)
    assert state(tenant, approval) == "approved"


async def test_when_only_the_answer_was_lost_the_approval_is_seen_all_the_same(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    queue_order(agent)
    async with odd_queue(service, tenant, folder) as (console, api):
        await ask(console, "a")
        api.does(loses, "/approvals/", "POST")

        await console.press("y")

        await console.sees("Approved at", "Nothing is left", "Close (Esc)")
    assert [one["status"] for one in agent.ok("GET", f"/vault/{agent.id}/history")] == ["signed"]


async def test_another_reason_after_a_lost_answer_is_another_request(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    approval = queue_order(agent)
    async with odd_queue(service, tenant, folder) as (console, api):
        await ask(console, "d")
        api.does(hangs_up, "/approvals/", "POST")
        await console.write("no")
        await console.press("enter")
        await console.sees("The outcome is unknown")
        api.well()

        await console.write(" way")
        await console.press("enter")
        await console.sees("Denied by you")

        keys = [one.headers["idempotency-key"] for one in api.at("/approvals/", "POST")]
    assert len(set(keys)) == 2
    assert item(tenant, approval)["reason"] == "no way"


async def test_a_question_that_is_answered_while_one_has_to_sign_in_again_closes_itself(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    approval, answered = queue_order(agent), asyncio.Event()

    async def slow(api: OddApi, request: Request, writer: asyncio.StreamWriter) -> None:
        await answered.wait()
        await passes_on(api, request, writer)

    async with odd_queue(service, tenant, folder) as (console, api):
        await ask(console, "a")
        api.does(refuses(401, "No longer.", "unauthorized"))
        api.does(slow, "/approvals/", "POST")
        await console.press("y")
        queue_order(agent)
        await console.sees("Press r to try again")

        answered.set()
        await console.until(lambda: state(tenant, approval) == "approved", "the approval")
        api.well()
        await console.press("r")

        await console.sees("1 waiting")
        await console.sees_no("Approve this?")


async def test_one_may_leave_a_question_whose_answer_does_not_come(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    queue_order(agent)
    async with odd_queue(service, tenant, folder) as (console, api):
        await ask(console, "a")
        api.does(says_nothing, "/approvals/", "POST")
        await console.press("y", "escape")
        await console.sees("Approve this?", "Asking… Esc leaves.")

        await console.press("escape")

        await console.sees("The outcome is unknown; the queue will show it.")
        await console.sees_no("Approve this?")


async def test_a_decided_order_is_not_counted_as_spent_twice(
    service: Service, tenant: Tenant, agent: Agent, folder: Path
) -> None:
    rules = [rule("auto-approve-threshold", threshold="0"), rule("spending-limit", maxPerDay="100")]
    tenant.ok("PUT", f"/agents/{agent.id}/policies", rules)
    queue_order(agent)
    async with queue(service, tenant, folder) as console:
        await console.sees("with this order")
        await ask(console, "a")

        await console.press("y")
        await console.sees("Approved by you")

        await console.sees_no("with this order")
