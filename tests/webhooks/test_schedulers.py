"""Schedulers that are killed, stopped, or two at once: nothing is lost, nothing is claimed twice."""

import signal
import subprocess

import pytest

from tests.fixtures.deployments import owner_of
from tests.fixtures.eventually import eventually, soon
from tests.fixtures.hooked import Hooked, Hooks, rows
from tests.fixtures.server import STOP_SECONDS
from tests.routes.tenants.makers import holding

pytestmark = pytest.mark.long

_SENT = """
SELECT id::text, status, attempts, error, next_retry_at > service_now() AS claimed FROM deliveries
 WHERE id = $1::text::uuid"""
# A run of `publish` that began before the stop is over as soon as its lock can be had.
_PUBLISHED = "SELECT pg_advisory_xact_lock(hashtextextended('custody-job:publish', 0))"
_STOPPING = '"event":"stopping"'
_OVER = "UPDATE deliveries SET next_retry_at = service_now() WHERE tenant_id = $1 AND status = 'processing'"
_ALL_DUE = "UPDATE deliveries SET next_retry_at = service_now() WHERE tenant_id = $1"
_BOTH_WAIT = """
SELECT count(*) = 2 FROM pg_stat_activity WHERE datname = current_database() AND usename = 'custody_scheduler'
   AND wait_event_type = 'Lock' AND query LIKE '%claim_deliveries%'"""


async def test_a_scheduler_killed_with_attempts_under_way_loses_nothing(hook_world: Hooked, hooks: Hooks) -> None:
    once, twice = hooks.endpoint("held"), hooks.endpoint("held", maxRetries=1)
    with hook_world.scheduler() as first:
        hooks.event()
        for url in (once, twice):
            eventually(lambda url=url: len(hooks.receivers.at(url)), 1)
        first.kill()
    [of_once], [of_twice] = hooks.deliveries(once), hooks.deliveries(twice)
    hooks.receivers.release(twice)
    with hook_world.scheduler():
        # While the claims last nobody else takes them up; what is delivered meanwhile is the control.
        other = hooks.endpoint("good")
        hooks.event()
        hooks.ended_deliveries(other)
        eventually(lambda: [len(hooks.receivers.at(url)) for url in (once, twice)], [1 + 1, 1 + 1])
        claimed = [
            row["claimed"] for one in (of_once, of_twice) for row in await rows(hook_world.database, _SENT, one["id"])
        ]
        hooks.receivers.release(once)
        hooks.ended_deliveries(other)
        async with owner_of(hook_world.database) as owner:
            await owner.execute(_OVER, hooks.tenant.id)
        hooks.ended_deliveries(once, 2), hooks.ended_deliveries(twice, 2)

    assert [(one["status"], one["attempts"]) for one in (of_once, of_twice)] == [("processing", 1)] * 2
    assert claimed == [True, True]
    [lost], [repeated] = (
        await rows(hook_world.database, _SENT, of_once["id"]),
        await rows(hook_world.database, _SENT, of_twice["id"]),
    )
    assert (lost["status"], lost["attempts"], lost["error"]) == ("failed", 1, "outcome_unknown")
    assert (repeated["status"], repeated["attempts"], repeated["error"]) == ("delivered", 2, None)
    heard = [one.headers["webhook-id"] for url in (once, twice) for one in hooks.receivers.at(url)]
    assert (heard.count(of_once["id"]), heard.count(of_twice["id"])) == (1, 2)


async def test_a_scheduler_that_is_stopped_lets_what_is_under_way_end(hook_world: Hooked, hooks: Hooks) -> None:
    url = hooks.endpoint("held")
    with hook_world.scheduler() as running:
        hooks.event()
        eventually(lambda: len(hooks.receivers.at(url)), 1)
        stops = hook_world.logs().count(_STOPPING)
        running.process.send_signal(signal.SIGTERM)
        eventually(lambda: hook_world.logs().count(_STOPPING), stops + 1)
        async with owner_of(hook_world.database) as owner:
            await owner.execute(_PUBLISHED)
        hooks.event()
        # In this time one that goes on would have published the event, or ended without the answer.
        with pytest.raises(subprocess.TimeoutExpired):
            running.process.wait(0.5)
        hooks.receivers.release(url)
        assert running.process.wait(STOP_SECONDS) == 0

    assert [one["status"] for one in hooks.deliveries(url)] == ["delivered"]
    assert len(hooks.receivers.at(url)) == 1


def test_two_schedulers_never_send_one_delivery_twice(hook_world: Hooked, hooks: Hooks) -> None:
    urls = [hooks.endpoint("held") for _ in range(3)]
    with hook_world.scheduler(20) as one, hook_world.scheduler(20) as other:
        hooks.event(40)
        # Each has one attempt under way at each endpoint, so that afterwards both go on at once.
        eventually(lambda: [running.figure("custody_webhook_attempts_under_way") for running in (one, other)], [3, 3])
        for url in urls:
            hooks.receivers.release(url)
        for url in urls:
            hooks.ended_deliveries(url, 40)
        counts = [running.figure('custody_webhook_attempts_total{outcome="delivered"}') for running in (one, other)]

    heard = [one.headers["webhook-id"] for url in urls for one in hooks.receivers.at(url)]
    assert len(heard) == len(set(heard)) == 120
    # Else this would show nothing.
    assert min(counts) >= len(urls)


async def test_two_schedulers_that_claim_at_one_moment_claim_nothing_twice(hook_world: Hooked, hooks: Hooks) -> None:
    urls = [hooks.endpoint("later", maxRetries=4) for _ in range(5)]
    with hook_world.scheduler(), hook_world.scheduler():
        hooks.event(8)
        _wait_for_attempts(hooks, urls, 1)
        for attempts in (2, 3, 4, 5):
            async with holding(hook_world.database, "LOCK TABLE deliveries IN ACCESS EXCLUSIVE MODE") as holder:
                await holder.execute(_ALL_DUE, hooks.tenant.id)
                await _both_wait(hook_world)
            _wait_for_attempts(hooks, urls, attempts)

    heard = [one.headers["webhook-id"] for url in urls for one in hooks.receivers.at(url)]
    assert len(heard) == 5 * 8 * 5
    assert {heard.count(one) for one in heard} == {5}


def _wait_for_attempts(hooks: Hooks, urls: list[str], count: int) -> None:
    for url in urls:
        eventually(lambda url=url: {one["attempts"] for one in hooks.ended_deliveries(url, 8)}, {count})


async def _both_wait(hooked: Hooked) -> None:
    async with owner_of(hooked.database) as owner:
        await soon(lambda: owner.fetchval(_BOTH_WAIT))
