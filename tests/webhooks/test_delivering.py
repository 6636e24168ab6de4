"""Delivering: signed, retried under one id, never late for another's sake, and only where it was meant to go."""

from collections.abc import Iterator
from datetime import UTC, datetime

import httpx
import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from scheduler.webhooks.deliver import CLAIM_SECONDS, SIGN_SECONDS
from tests.fixtures.deployments import owner_of
from tests.fixtures.eventually import eventually
from tests.fixtures.hooked import Hooked, Hooks, Scheduler, rows

_SENT = "SELECT id::text, status, attempts, error FROM deliveries WHERE tenant_id = $1 ORDER BY created_at"
_NOW = "UPDATE deliveries SET next_retry_at = service_now() WHERE tenant_id = $1 AND next_retry_at IS NOT NULL"


@pytest.fixture(scope="module", name="patient")
def patient_scheduler(hook_world: Hooked) -> Iterator[Scheduler]:
    """A scheduler that waits for an answer as long as its claim allows: what is held is let go by its test."""
    with hook_world.scheduler(CLAIM_SECONDS - SIGN_SECONDS) as running:
        yield running


async def due_now(hooks: Hooks) -> None:
    """Let the time pass that deliveries of this tenant wait for."""
    async with owner_of(hooks.service.database) as owner:
        await owner.execute(_NOW, hooks.tenant.id)


async def test_a_retry_has_the_same_id_and_body_and_a_signature_of_its_own(hooks: Hooks, patient: Scheduler) -> None:
    url = hooks.endpoint("flaky", maxRetries=5, retryBackoffMs=60_000)
    [tx_id] = hooks.event()
    for times in (1, 2):
        [between] = hooks.ended_deliveries(url)
        assert (between["status"], between["attempts"], between["maxAttempts"]) == ("failed", times, 6)
        assert datetime.fromisoformat(between["nextRetryAt"]) > datetime.now(UTC)
        assert between["hasError"]
        await due_now(hooks)
        eventually(lambda: len(hooks.receivers.at(url)), times + 1)
    eventually(lambda: hooks.ended_deliveries(url)[0]["status"], "delivered")

    [delivered] = hooks.deliveries(url)
    first, second, third = hooks.receivers.at(url)
    assert (delivered["attempts"], delivered["nextRetryAt"], delivered["hasError"]) == (3, None, False)
    assert {one.headers["webhook-id"] for one in (first, second, third)} == {delivered["id"]}
    assert first.body == second.body == third.body
    for one in (first, second, third):
        told = Webhook(hooks.secrets[url]).verify(one.body, one.headers)
        assert (told["event"], told["data"]["txId"]) == ("tx.signed", tx_id)
    with pytest.raises(WebhookVerificationError):
        Webhook(hooks.secrets[url]).verify(first.body + b" ", first.headers)
    with pytest.raises(WebhookVerificationError):
        Webhook("whsec_" + "A" * 43 + "=").verify(first.body, first.headers)


async def test_when_the_attempts_are_used_up_nothing_is_tried_again(hooks: Hooks, patient: Scheduler) -> None:
    url = hooks.endpoint("status-500", maxRetries=1)
    hooks.event()
    # The second comes by itself: nobody moves the time here.
    [ended] = eventually(lambda: hooks.ended_deliveries(url), lambda found: found[0]["attempts"] == 2)
    refused = hooks.owner.post(f"/webhooks/deliveries/{ended['id']}/retry")

    first, second = hooks.receivers.at(url)
    assert (ended["status"], ended["maxAttempts"], ended["nextRetryAt"]) == ("failed", 2, None)
    assert refused.status_code == httpx.codes.CONFLICT, refused.text
    assert "used all attempts" in refused.json()["error"]
    assert int(second.headers["webhook-timestamp"]) >= int(first.headers["webhook-timestamp"]) + 1


def test_twenty_silent_endpoints_delay_no_other(hooks: Hooks, patient: Scheduler) -> None:
    silent = [hooks.endpoint("held") for _ in range(20)]
    quick = hooks.endpoint("good")
    hooks.event()
    for url in silent:
        eventually(lambda url=url: len(hooks.receivers.at(url)), 1)
    hooks.event(4)
    eventually(lambda: len(hooks.receivers.at(quick)), 5)
    # Nobody was answered: each of the silent still has its first request and no other.
    under_way = [len(hooks.receivers.at(url)) for url in silent]
    for url in silent:
        hooks.receivers.release(url)
    for url in silent:
        assert {one["status"] for one in hooks.ended_deliveries(url, 5)} == {"delivered"}

    assert under_way == [1] * 20
    assert {one["status"] for one in hooks.deliveries(quick)} == {"delivered"}


@pytest.mark.parametrize("what", ["endpoint_deleted", "endpoint_disabled", "endpoint_changed"])
async def test_a_delivery_whose_endpoint_changed_fails_and_is_not_sent(
    hooks: Hooks, patient: Scheduler, what: str
) -> None:
    url, stays = hooks.endpoint("later", maxRetries=5), hooks.endpoint("later", maxRetries=5)
    hooks.event()
    hooks.ended_deliveries(url), hooks.ended_deliveries(stays)
    if what == "endpoint_deleted":
        hooks.owner.ok("DELETE", f"/webhooks/{hooks.id_of(url)}")
    if what == "endpoint_disabled":
        hooks.change(url, {"enabled": False})
    if what == "endpoint_changed":
        hooks.change(url, {"url": hooks.receivers.url("good")})
    await due_now(hooks)
    eventually(lambda: len(hooks.receivers.at(stays)), 2)
    hooks.ended_deliveries(stays)

    query = "SELECT status, error, attempts, next_retry_at FROM deliveries WHERE endpoint_id = $1::text::uuid"
    [row] = await rows(hooks.service.database, query, hooks.id_of(url))
    assert tuple(row) == ("failed", what, 1, None)
    assert len(hooks.receivers.at(url)) == 1


async def test_a_receiver_that_is_gone_has_its_open_deliveries_fail_at_once(hooks: Hooks, patient: Scheduler) -> None:
    url = hooks.endpoint("later", maxRetries=5)
    hooks.event(2)
    hooks.ended_deliveries(url, 2)
    gone = "UPDATE {} SET url = regexp_replace(url, 'later$', 'gone') WHERE tenant_id = $1"
    async with owner_of(hooks.service.database) as owner:
        await owner.execute(gone.format("webhook_endpoints"), hooks.tenant.id)
        await owner.execute(gone.format("deliveries"), hooks.tenant.id)
        await owner.execute(
            f"{_NOW} AND id = (SELECT id FROM deliveries WHERE tenant_id = $1 LIMIT 1)", hooks.tenant.id
        )
    eventually(lambda: hooks.read(url)["enabled"], False)
    found = eventually(
        lambda: hooks.ended_deliveries(url, 2), lambda two: all(one["nextRetryAt"] is None for one in two)
    )

    errors = [row["error"] for row in await rows(hooks.service.database, _SENT, hooks.tenant.id)]
    assert sorted(errors) == ["endpoint_disabled", "gone"]
    assert {one["status"] for one in found} == {"failed"}
    assert hooks.owner.post(f"/webhooks/deliveries/{found[0]['id']}/retry").status_code == httpx.codes.CONFLICT
