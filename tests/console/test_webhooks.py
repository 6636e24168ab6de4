"""Webhooks: who sees them, what is said of each delivery, and sending one again."""

from contextlib import asynccontextmanager, closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.console.entering import confirm
from tests.fixtures.callers import Tenant
from tests.fixtures.console_sessions import keep_session
from tests.fixtures.consoles import NARROW, driving
from tests.fixtures.deployments import owner_of
from tests.fixtures.eventually import eventually
from tests.fixtures.people import Person, member, sign_in
from tests.fixtures.server import Service
from tests.outside.hostile_receiver import HostileReceiver
from tests.outside.odd_api import OddApi, odd_api, refuses, says_nothing
from words.texts.moments import moment

pytestmark = pytest.mark.long


@asynccontextmanager
async def looking(service: Service | OddApi, folder: Path, person: Person, **settings: Any) -> Any:
    """A console of a person who is signed in, at the webhooks."""
    keep_session(folder, service.url, person)
    async with driving(service.url, folder, every=0.2, **settings) as console:
        await console.until(lambda: console.app.person, "the sign-in")
        await console.press("5")
        yield console


def endpoint(receivers: HostileReceiver, person: Person, path: str, **fields: Any) -> dict[str, Any]:
    """An endpoint at a receiver that does what its path ends in."""
    url = f"http://localhost:{receivers.ports['plain']}/{path}"
    body = {"url": url, "maxRetries": 5, "retryBackoffMs": 86_400_000, "events": ["tx.signed"], **fields}
    return person.ok("POST", "/webhooks", body)  # type: ignore[no-any-return]


def ended_deliveries(person: Person, made: dict[str, Any], count: int = 1) -> list[dict[str, Any]]:
    """The deliveries to an endpoint, once there are so many and each was tried."""
    return eventually(
        lambda: person.ok("GET", f"/webhooks/{made['id']}/deliveries"),
        lambda found: len(found) == count and all(one["status"] in ("delivered", "failed") for one in found),
    )


async def test_without_endpoints_one_reads_how_they_are_made_and_nothing_can_be_sent_again(
    service: Service, as_owner: Person, folder: Path
) -> None:
    async with looking(service, folder, as_owner) as console:
        await console.sees("No endpoints: no events are delivered. Create one with POST /webhooks.")

        assert [word for word in ("t Retry", "y Replay", "Nothing was sent") if word in console.flat] == []


@pytest.fixture(name="told")
def told_once(receivers: HostileReceiver, tenant: Tenant, as_owner: Person) -> dict[str, Any]:
    """An endpoint whose receiver took the one event that there was; the delivery stands under `delivery`."""
    made = endpoint(receivers, as_owner, "console/good", description="The till")
    tenant.agent().sign()
    return {**made, "delivery": ended_deliveries(as_owner, made)[0]}


async def test_a_tenant_key_is_told_to_sign_in(
    service: Service, tenant: Tenant, folder: Path, pictures: SnapshotAssertion
) -> None:
    async with driving(service.url, folder, key=tenant.key) as console:
        await console.until(lambda: console.app.person, "the sign-in")
        await console.press("5")
        await console.sees("Webhooks are for signed-in people only; you use the tenant key. Press i to sign in.")

        # The footer follows a moment later.
        await console.sees_no("Retry", "Filter")
        assert await console.picture() == pictures
        await console.press("7")
        await console.sees("The audit trail is for signed-in people only; you use the tenant key.")


async def test_a_person_without_access_reads_the_services_own_sentence(
    service: Service, tenant: Tenant, folder: Path
) -> None:
    with closing(member(service, tenant, "viewer", mfa=True)) as viewer:
        said, trail = (viewer.get(path).json()["error"] for path in ("/webhooks", "/audit/events"))
        async with looking(service, folder, viewer) as console:
            await console.sees(said)
            await console.press("7")
            await console.sees(trail)


async def test_without_a_recent_second_factor_enter_asks_for_one_and_they_appear(
    service: Service, tenant: Tenant, folder: Path, as_owner: Person, told: dict[str, Any]
) -> None:
    with closing(sign_in(service, as_owner.wallet, tenant=tenant.id)) as later:
        async with looking(service, folder, later) as console:
            await console.sees("Press Enter to verify a second factor")
            await console.press("enter")
            await console.sees("Verify a second factor", "Cancel (Esc)")
            await console.press("escape")
            await console.sees_no("Cancel (Esc)")
            await console.sees("Press Enter to verify a second factor")
            await console.press("enter")
            await console.sees("Cancel (Esc)")
            await console.write(as_owner.recovery_codes[0])
            await confirm(console, told["url"])

            await console.sees(told["url"], "tx.signed")


async def test_endpoints_and_deliveries_are_said_in_words(
    service: Service,
    folder: Path,
    as_owner: Person,
    receivers: HostileReceiver,
    told: dict[str, Any],
    pictures: SnapshotAssertion,
) -> None:
    bad = endpoint(receivers, as_owner, "console/status-500", maxRetries=0)
    as_owner.ok("PUT", f"/webhooks/{bad['id']}", {"enabled": False})
    clock = _later(told)
    async with looking(service, folder, as_owner, now=clock) as console:
        await console.sees(bad["url"], told["url"], "disabled", "enabled", "No deliveries yet")
        await console.press("down")
        await console.sees("tx.signed", "1 of 6", "delivered", f"1 delivery to {told['url']}")

        assert await console.picture(as_owner.wallet.address, str(receivers.ports["plain"])) == pictures


async def test_they_fit_into_a_narrow_terminal(
    service: Service,
    folder: Path,
    as_owner: Person,
    receivers: HostileReceiver,
    told: dict[str, Any],
    pictures: SnapshotAssertion,
) -> None:
    async with looking(service, folder, as_owner, now=_later(told), size=NARROW, theme="light") as console:
        await console.sees("1 of 6", "delivered")

        assert await console.picture(as_owner.wallet.address, str(receivers.ports["plain"])) == pictures
        await console.press("tab", "tab", "enter")
        await console.sees(told["delivery"]["id"], told["url"], "1 of 6", "Replay of", "an order was signed")


async def test_a_failed_delivery_is_retried_until_its_receiver_takes_it(
    service: Service,
    tenant: Tenant,
    folder: Path,
    as_owner: Person,
    receivers: HostileReceiver,
    pictures: SnapshotAssertion,
) -> None:
    made = endpoint(receivers, as_owner, f"{tenant.id}/flaky")
    tenant.agent().sign()
    [delivery] = ended_deliveries(as_owner, made)
    async with looking(service, folder, as_owner) as console:
        await console.sees("failed, retried in", "1 of 6")
        await console.press("t")
        await console.sees("Try this delivery again now?", made["url"], delivery["id"], "1 of 6 attempts")
        assert len(receivers.at(made["url"])) == 1
        await confirm(console, "2 of 6")
        await console.sees_no("Try this delivery again now?")
        await console.sees("2 of 6", "failed, retried in")
        await console.press("t")
        await console.sees("2 of 6 attempts")
        await confirm(console, "3 of 6")

        await console.sees("3 of 6", "delivered")
        assert {one.headers["webhook-id"] for one in receivers.at(made["url"])} == {delivery["id"]}


async def test_a_replay_is_a_new_delivery_of_the_same_event(
    service: Service,
    folder: Path,
    as_owner: Person,
    receivers: HostileReceiver,
    told: dict[str, Any],
    pictures: SnapshotAssertion,
) -> None:
    old = told["delivery"]["id"]
    async with looking(service, folder, as_owner, now=_later(told)) as console:
        await console.sees("1 of 6", "delivered")
        await console.press("y")
        await console.sees("Send this event again?", told["url"], old)
        assert await console.picture(as_owner.wallet.address, str(receivers.ports["plain"]), old) == pictures
        await console.press("escape")
        await console.sees_no("Send this event again?")
        assert len(ended_deliveries(as_owner, told)) == 1
        await console.press("y")
        await console.sees("Send this event again?")
        await confirm(console, "A new delivery was queued")
        await console.sees(f"{old[:7]}…{old[-6:]}", "2 deliveries")

    new, first = ended_deliveries(as_owner, told, 2)
    assert (new["replayedFromDeliveryId"], first["id"]) == (old, old)
    assert [one.headers["webhook-id"] for one in receivers.at(told["url"])[-2:]] == [old, new["id"]]


async def test_a_delivery_that_cannot_be_resent_says_why_and_the_cure(
    service: Service, folder: Path, as_owner: Person, told: dict[str, Any]
) -> None:
    async with looking(service, folder, as_owner) as console:
        await console.sees("1 of 6", "delivered")
        await console.press("t")
        await console.sees("Try this delivery again now?")
        await confirm(console, "This delivery succeeded. To send its event again, press Esc and y (replay).")
        await console.press("escape")
        await console.sees_no("Try this delivery again now?")
        await console.press("y")
        await console.sees("Send this event again?")
        as_owner.ok("PUT", f"/webhooks/{told['id']}", {"enabled": False})

        await confirm(console, "This webhook is disabled")


async def test_read_only_offers_neither(service: Service, folder: Path, as_owner: Person, told: dict[str, Any]) -> None:
    async with looking(service, folder, as_owner, read_only=True) as console:
        await console.sees("1 of 6", "/ Filter")
        await console.press("t", "y")
        await console.pilot.pause()

        assert "Retry" not in console.flat
        assert "Replay " not in console.flat.replace("Replay of", "")
        assert not console.app.screen.is_modal


async def test_read_only_shows_a_second_factor_to_see_them(
    service: Service, tenant: Tenant, folder: Path, as_owner: Person, told: dict[str, Any]
) -> None:
    with closing(sign_in(service, as_owner.wallet, tenant=tenant.id)) as later:
        async with looking(service, folder, later, read_only=True) as console:
            await console.sees("Press Enter to verify a second factor")
            await console.press("enter")
            await console.sees("Cancel (Esc)")
            await console.write(as_owner.recovery_codes[0])
            await confirm(console, told["url"])

            await console.sees("1 of 6")


async def test_read_only_sets_no_second_factor_up(service: Service, folder: Path, admin: Person) -> None:
    async with looking(service, folder, admin, read_only=True) as console:
        await console.sees("Press Enter to verify a second factor")
        await console.press("enter")
        await console.sees("a read-only console cannot set one up: start it without --read-only")
        assert not console.app.screen.is_modal

        # Nor does the palette offer it.
        await console.press("ctrl+p")
        await console.sees("Go to Webhooks")
        await console.write("authenticator")
        await console.sees("No matches found")


async def test_new_deliveries_appear_by_themselves_and_filters_hold(
    service: Service, tenant: Tenant, folder: Path, as_owner: Person, told: dict[str, Any]
) -> None:
    async with looking(service, folder, as_owner) as console:
        await console.sees("1 delivery")
        tenant.agent().sign()
        await console.sees("2 deliveries")
        await console.press("slash")
        await console.write("status:lost")
        await console.press("enter")
        await console.sees("status: lost is not one of failed, delivered, pending, processing.", "status:lost")
        await console.press(*["backspace"] * 4)
        await console.write("failed")
        await console.press("enter")

        await console.sees("No delivery matches the filter", "0 deliveries", "status:failed")


async def test_until_a_new_filter_is_answered_the_old_rows_are_gone(
    service: Service, folder: Path, as_owner: Person, told: dict[str, Any]
) -> None:
    async with odd_api(service.url) as odd, looking(odd, folder, as_owner) as console:
        await console.sees("1 of 6", "1 delivery to")
        odd.does(says_nothing, f"/webhooks/{told['id']}/deliveries")
        await console.press("slash")
        await console.write("status:failed")
        await console.press("enter")
        await console.sees("Loading…")
        await console.sees_no("1 of 6", "1 delivery to")

        # What only the service can judge is said at the line, and in place of the rows.
        odd.does(refuses(400, "No such status."), f"/webhooks/{told['id']}/deliveries")
        await console.press("r")
        await console.sees("! No such status.", "0 deliveries to")
        odd.well()
        await console.sees_no("! No such status.")


@pytest.mark.long
async def test_further_pages_come_as_one_scrolls(
    service: Service, folder: Path, as_owner: Person, told: dict[str, Any]
) -> None:
    async with owner_of(service.database) as owner:
        await owner.execute(
            "INSERT INTO deliveries (tenant_id, id, endpoint_id, event_number, event, url, max_attempts, status, "
            "attempts, created_at) SELECT tenant_id, gen_random_uuid(), endpoint_id, event_number, 'tx.denied', url, "
            "6, 'failed', 6, created_at - n * interval '1 minute' FROM deliveries, generate_series(1, 249) n "
            "WHERE tenant_id = $1",
            as_owner.tenant,
        )
    async with looking(service, folder, as_owner) as console:
        await console.sees("the newest 100 of 250 deliveries")
        await console.press("tab", "tab", "end")
        await console.sees("the newest 200 of 250 deliveries")
        # The rows may come a moment after the number: the end is then further down than it was.
        for _ in range(100):
            await console.press("end")
            if "the newest" not in console.flat:
                break

        await console.sees("250 deliveries to")
        await console.sees_no("the newest")


def _later(told: dict[str, Any]) -> Any:
    """A clock that stands an hour and a half after the delivery: some seconds more or less are not seen."""
    made = moment(told["delivery"]["createdAt"])
    assert made is not None
    return lambda: made + timedelta(minutes=90)
