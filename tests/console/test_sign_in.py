"""Signing in: by key, by what was kept, by a code that somebody approves. RFC 8628."""

from contextlib import closing
from datetime import datetime
from pathlib import Path

import asyncpg
import pytest
import segno
from syrupy.assertion import SnapshotAssertion
from textual.app import ComposeResult
from textual.widgets import Input

from console.dialogs.ask import Ask
from console.widgets.heading import PLACES
from console.widgets.plain_text import PlainText
from console.widgets.qr import Qr, qr_lines
from tests.console.entering import Waits, code_on, confirm, decide, signed_in
from tests.fixtures.callers import Client, Tenant, rule
from tests.fixtures.consoles import NARROW, WIDE, Driven, driving
from tests.fixtures.people import Person, member
from tests.fixtures.server import Service, free_ports
from tests.outside.odd_api import changing, odd_api
from tests.outside.relay import Relay

THEN = datetime.fromisoformat("2026-01-01T12:00:00+00:00")


async def test_a_code_that_somebody_approves_leads_to_the_queue(
    service: Service, tenant: Tenant, folder: Path, admin: Person, waits: Waits
) -> None:
    async with driving(service.url, folder, tenant=tenant.id, wait=waits) as console:
        code = await code_on(console)
        waits.pass_one()
        await console.until(lambda: len(waits.seconds) == 2, "the second poll")
        # So soon after the first, it is answered with slow_down.
        waits.pass_one()
        await console.until(lambda: len(waits.seconds) == 3, "the third poll")
        decide(admin, code)
        waits.pass_one()

        await signed_in(console)
        await console.sees("(admin) in A tenant")
        assert waits.seconds[:3] == [5, 5, 10]


async def test_stored_tokens_sign_in_the_next_time_and_are_never_shown(
    service: Service, tenant: Tenant, folder: Path, admin: Person, waits: Waits
) -> None:
    async with driving(service.url, folder, tenant=tenant.id, wait=waits) as console:
        decide(admin, await code_on(console))
        waits.pass_one()
        await signed_in(console)
        tokens = console.app.store.read()

    async with driving(service.url, folder, wait=waits) as console:
        await signed_in(console)

        assert tokens is not None
        assert console.app.person is not None
        assert console.app.person.user == admin.id
        app = console.app
        # A list of what runs in it can't show itself while some of that has ended and some has not.
        parts = {name: part for name, part in vars(app).items() if name != "workers"}
        seen = f"{console.text} {app!r} {app.settings!r} {parts!r} {app.client!r} {app.client.credential!r}"
        assert [secret for secret in (tokens.token, tokens.refresh_token) if secret in seen] == []


@pytest.mark.long
async def test_tokens_of_another_tenant_than_the_profile_names_are_left_alone(
    service: Service, tenant: Tenant, other_tenant: Tenant, folder: Path, admin: Person, waits: Waits
) -> None:
    async with driving(service.url, folder, tenant=tenant.id, wait=waits) as console:
        decide(admin, await code_on(console))
        waits.pass_one()
        await signed_in(console)

    async with driving(service.url, folder, tenant=other_tenant.id, wait=waits) as console:
        assert await code_on(console)


@pytest.mark.long
async def test_a_refused_code_is_said_and_one_key_brings_another(
    service: Service, tenant: Tenant, folder: Path, admin: Person, waits: Waits
) -> None:
    async with driving(service.url, folder, tenant=tenant.id, wait=waits) as console:
        first = await code_on(console)
        decide(admin, first, "deny")
        waits.pass_one()
        await console.sees("This sign-in was refused. The person denied the request.", "Press n for a new one.")
        assert first.replace("-", " - ") not in console.text

        await console.press("n")

        assert await code_on(console) != first


@pytest.mark.long
async def test_a_code_that_has_ended_is_said_and_one_key_brings_another(
    service: Service, tenant: Tenant, folder: Path, waits: Waits, owner: asyncpg.Connection
) -> None:
    async with driving(service.url, folder, tenant=tenant.id, wait=waits) as console:
        first = await code_on(console)
        await owner.execute("UPDATE device_codes SET expires_at = created_at WHERE user_code = $1", first)
        waits.pass_one()
        await console.sees("This code has expired. Press n for a new one.")

        await console.press("n")

        assert await code_on(console) != first


async def test_a_wrong_key_is_said_and_a_code_is_offered(
    service: Service, tenant: Tenant, folder: Path, waits: Waits, pictures: SnapshotAssertion
) -> None:
    given = {"key": "not-the-key", "key_from": "/home/me/key", "tenant": tenant.id, "wait": waits}
    async with driving(service.url, folder, **given) as console:
        await console.sees("does not know this tenant key (from /home/me/key).", "c to sign in with a code")
        assert "not-the-key" not in console.text
        assert await console.picture() == pictures

        await console.press("c")

        assert await code_on(console)


@pytest.mark.long
async def test_a_sign_in_without_a_tenant_asks_for_it(service: Service, tenant: Tenant, folder: Path) -> None:
    async with driving(service.url, folder) as console:
        await console.sees("Which tenant do you want to sign in to?")
        await console.write("quite/another")
        await console.press("enter")
        await console.sees("Correct the tenant's id, then press Enter.")
        assert console.one(Input).value == "quite/another"

        console.one(Input).value = tenant.id
        await console.press("enter")

        assert await code_on(console)


async def test_a_service_that_is_away_is_asked_again(
    service: Service, tenant: Tenant, folder: Path, waits: Waits
) -> None:
    relay = Relay(free_ports(1)[0], service.port)
    url = f"http://127.0.0.1:{relay.port}"
    async with driving(url, folder, key=tenant.key, wait=waits, now=lambda: THEN) as console:
        await console.sees(f"{url} cannot be reached. Retrying in 1s.")
        waits.pass_one()
        await console.sees(f"{url} cannot be reached. Retrying in 2s.")
        await relay.start()

        waits.pass_one()

        await signed_in(console)
        await relay.stop()


@pytest.mark.long
async def test_a_person_in_place_of_a_key_sees_nothing_of_the_tenant_before(
    service: Service, tenant: Tenant, other_tenant: Tenant, folder: Path, waits: Waits
) -> None:
    tenant.agent(rule("auto-approve-threshold", threshold="0"), agent_id="first-tenants").sign(value=5)
    given = {"key": tenant.key, "tenant": other_tenant.id, "wait": waits}
    async with driving(service.url, folder, **given) as console:
        await signed_in(console)
        for key in "21":
            await console.press(key)
            await console.sees("first-tenants", "1 Approvals (1)")

        with closing(member(service, other_tenant, "admin")) as other:
            await console.press("i")
            decide(other, await code_on(console))
            waits.pass_one()
            await signed_in(console)
            await console.sees("(admin) in A tenant")

            assert console.app.title == "Custody"
            for key, (place, _) in zip("123", PLACES, strict=False):
                await console.press(key)
                await console.until(lambda place=place: console.app.current_mode == place, place)
                assert "first-tenants" not in console.text


@pytest.mark.long
async def test_a_key_tells_its_tenant_and_one_may_step_back(service: Service, tenant: Tenant, folder: Path) -> None:
    tenant.agent()
    async with driving(service.url, folder, key=tenant.key) as console:
        await signed_in(console)
        await console.press("3")
        await console.sees("3 Transactions")

        await console.press("i")
        assert await code_on(console)
        await console.press("escape")

        await signed_in(console)
        assert console.app.current_mode == "transactions"
        await console.sees("with the tenant key")


async def test_signing_out_ends_the_session_and_keeps_nothing(
    service: Service, tenant: Tenant, folder: Path, admin: Person, waits: Waits
) -> None:
    async with driving(service.url, folder, tenant=tenant.id, wait=waits) as console:
        decide(admin, await code_on(console))
        waits.pass_one()
        await signed_in(console)
        token = console.app.client.credential
        assert token is not None

        await console.press("ctrl+o")
        await console.sees("Sign out?", "(admin) in A tenant.")
        await confirm(console, "You have signed out.")

        await console.sees("not signed in")
        assert await code_on(console)
        assert console.app.store.read() is None
        bearer = token.headers()["Authorization"]
        with Client(base_url=service.url, headers={"Authorization": bearer}) as client:
            assert client.get("/auth/session").status_code == 401


@pytest.mark.long
async def test_a_revoked_session_is_replaced_and_no_input_is_lost(
    service: Service, tenant: Tenant, folder: Path, admin: Person, waits: Waits
) -> None:
    async with driving(service.url, folder, tenant=tenant.id, wait=waits) as console:
        decide(admin, await code_on(console))
        waits.pass_one()
        await signed_in(console)
        console.app.push_screen(Typed())
        await console.sees("Something typed")
        await console.write("for-the-harbour")
        for session in admin.ok("GET", "/auth/sessions"):
            if session["provider"] == "device":
                admin.ok("DELETE", f"/auth/sessions/{session['id']}")

        await confirm(console, "sign in again")
        decide(admin, await code_on(console))
        waits.pass_one()
        await signed_in(console)
        await console.sees("Something typed", "for-the-harbour")
        await console.press("enter")

        await console.sees_no("Something typed")


class Typed(Ask[str]):
    """A question with a field; what is typed names what is asked of the API."""

    TITLE_TEXT = "Something typed"

    def essentials(self) -> ComposeResult:
        yield PlainText("It is read back.")

    def fields(self) -> ComposeResult:
        yield Input(id="typed")

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one("#typed", Input).focus()

    async def perform(self) -> str:
        return str(await self.app.act(lambda: self.app.client.get("/approvals/stats", object)))


def fix_code(console: Driven) -> None:
    """Show a code and a picture that are the same in every run."""
    console.one(PlainText, "#code").update(" ".join("BCDF-3479"))
    console.one(Qr).show("http://localhost:12345/device?user_code=BCDF-3479")
    console.one(PlainText, "#address").update("https://custody.example/device?user_code=BCDF-3479")


@pytest.mark.long
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_a_code_is_shown_large_with_a_picture_where_it_fits(
    service: Service, tenant: Tenant, folder: Path, waits: Waits, pictures: SnapshotAssertion, size: tuple[int, int]
) -> None:
    given = {"tenant": tenant.id, "wait": waits, "size": size, "now": lambda: THEN}
    async with odd_api(service.url) as api, driving(api.url, folder, **given) as console:
        api.does(changing(rb"http://localhost:\d+/device", b"https://custody.example/device"), "/auth/device/code")
        await code_on(console)
        fix_code(console)

        await console.sees("This code expires in 10m 00s.")
        assert ("A larger window shows a QR code" in console.flat) == (size == NARROW)
        assert await console.picture() == pictures


async def test_an_address_of_this_machine_is_said_to_be_one_and_has_no_picture(
    service: Service, tenant: Tenant, folder: Path, waits: Waits
) -> None:
    async with driving(service.url, folder, tenant=tenant.id, wait=waits) as console:
        await code_on(console)
        await console.sees("Open this address in a browser on this machine")

        assert not console.one(Qr).display
        assert "QR code" not in console.flat


def test_a_picture_says_what_the_address_says_with_quiet_around_it() -> None:
    address = "https://custody.example/device?user_code=BCDF-3479"
    lines = qr_lines(address)

    dark = {" ": (0, 0), "▀": (1, 0), "▄": (0, 1), "█": (1, 1)}
    rows = [[dark[cell][half] for cell in line] for line in lines for half in (0, 1)]
    inside = [row[4:-4] for row in rows[4 : 4 + 29]]
    assert inside == [list(row) for row in segno.make_qr(address, error="l", version=3).matrix]
    assert sum(map(sum, rows)) == sum(map(sum, inside))
    assert qr_lines("x" * 4000) == []
