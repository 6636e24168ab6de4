"""Showing a second factor where the API wants a recent one."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pyotp
import pytest
from syrupy.assertion import SnapshotAssertion
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Input

from console.app import Console
from console.dialogs.ask import Ask
from console.dialogs.batch import BatchDecision
from console.dialogs.deciding import Approve
from console.dialogs.step_up import ways
from console.widgets.plain_text import PlainText
from console.widgets.qr import Qr
from console.widgets.shown_item import ShownItem
from console.wire.failures import MfaRequired
from tests.console.entering import confirm, keep_session, signed_in
from tests.console.queues import APPROVE, ask, state
from tests.fixtures.callers import Client, Tenant, rule
from tests.fixtures.consoles import NARROW, Driven, driving
from tests.fixtures.people import Person, sign_in
from tests.fixtures.server import Service
from words.orders.order import Known

pytestmark = pytest.mark.long


@pytest.fixture
def careful(service: Service, tenant: Tenant, admin: Person) -> Iterator[Person]:
    """An admin with an authenticator, who has signed in without showing it."""
    admin.enrol_totp()
    with closing(sign_in(service, admin.wallet, tenant=tenant.id)) as fresh:
        fresh.seed, fresh.recovery_codes = admin.seed, admin.recovery_codes
        yield fresh


def next_code(person: Person) -> str:
    """A code that was not used yet: enrolling used the one of this half minute."""
    return str(pyotp.TOTP(person.seed).at(int(time.time()) + 30))


def queue_order(tenant: Tenant) -> str:
    """An order that waits for somebody."""
    agent = tenant.agent(rule("auto-approve-threshold", threshold="0"))
    return str(agent.sign(value=5).json()["data"]["approvalId"])


async def approving(console: Driven) -> None:
    """Press what approves, until a second factor is wanted."""
    await console.sees("1 waiting")
    await ask(console, "a")
    await console.sees("Approve this?")
    await confirm(console, "Verify a second factor")


async def test_an_authenticator_lets_an_approval_through(
    service: Service, tenant: Tenant, careful: Person, folder: Path
) -> None:
    store, approval = keep_session(service, careful, folder), queue_order(tenant)
    before = store.read()
    async with driving(service.url, folder) as console:
        await approving(console)
        await console.write(next_code(careful))
        await console.press("enter")
        await console.until(lambda: tenant.ok("GET", "/approvals?status=approved"), "the approval")

        item = tenant.ok("GET", "/approvals?status=approved")[0]
        assert (item["id"], item["resolvedByUserId"]) == (approval, careful.id)
        after = store.read()
        assert before is not None
        assert after is not None
        assert after.refresh_token != before.refresh_token


async def test_a_wrong_code_is_said_and_a_recovery_code_serves_in_its_place(
    service: Service, tenant: Tenant, careful: Person, folder: Path
) -> None:
    keep_session(service, careful, folder)
    queue_order(tenant)
    async with driving(service.url, folder) as console:
        await approving(console)
        await console.write("000000")
        await console.press("enter")
        await console.sees("That code was not accepted", "Wait for the next one.")
        assert console.one(Input).value == ""

        await console.write(careful.recovery_codes[0].upper())
        await console.press("enter")

        await console.until(lambda: tenant.ok("GET", "/approvals?status=approved"), "the approval")


async def test_a_warning_that_comes_while_a_second_factor_is_asked_for_is_read_first(
    service: Service, tenant: Tenant, careful: Person, folder: Path
) -> None:
    keep_session(service, careful, folder)
    approval = queue_order(tenant)
    known = [Known(past=[], names_known=True)]
    async with driving(service.url, folder) as console:
        await console.sees("1 waiting")
        await console.until(lambda: console.one(ShownItem).item, "the item")
        item = console.one(ShownItem).item
        assert item is not None
        console.app.push_screen(Approve(item, lambda: known[0]))
        await console.sees("Approve this?", APPROVE)
        await console.press("y")
        await console.sees("Verify a second factor")

        known[0] = Known(past=[], names_known=True, doubt="The node told two stories.")
        await console.write(careful.recovery_codes[0])
        await console.press("enter")
        await console.sees("Not decided.", "! The node told two stories.", APPROVE)
        assert state(tenant, approval) == "pending"

        await console.press("y")
        await console.until(lambda: state(tenant, approval) == "approved", "the approval")


async def test_cancelling_the_second_factor_does_nothing(
    service: Service, tenant: Tenant, careful: Person, folder: Path
) -> None:
    keep_session(service, careful, folder)
    queue_order(tenant)
    async with driving(service.url, folder) as console:
        await approving(console)
        await console.press("escape")

        await console.sees("Approve this?", "Recent multi-factor authentication")
        assert len(tenant.ok("GET", "/approvals?status=pending")) == 1


async def enrolling(console: Driven) -> str:
    """Press what approves, until an authenticator is to be set up; the seed that is shown."""
    await console.sees("1 waiting")
    await ask(console, "a")
    await console.sees("Approve this?")
    await confirm(console, "Set up an authenticator")
    return str(console.one(PlainText, "#secret").content).replace(" ", "")


async def test_a_person_without_a_factor_enrols_one_and_continues(
    service: Service, tenant: Tenant, admin: Person, folder: Path
) -> None:
    store, _ = keep_session(service, admin, folder), queue_order(tenant)
    async with driving(service.url, folder) as console:
        seed = await enrolling(console)
        await console.until(lambda: console.one(Qr).display, "the picture")
        assert console.one(VerticalScroll, "#essentials").max_scroll_y == 0
        await console.write("000000")
        await confirm(console, "That code was not accepted")
        await console.write(pyotp.TOTP(seed).now())
        await confirm(console, "Write these down now")
        codes = str(console.one(PlainText, "#codes").content).splitlines()
        for key in ("escape", "ctrl+q"):
            await console.press(key)
            await console.sees("Write them down first")
        await confirm(console, "That is not the last code")
        await console.write(codes[-1])
        await console.press("enter")
        await console.until(lambda: tenant.ok("GET", "/approvals?status=approved"), "the approval")

        tokens, app = store.read(), console.app
        assert tokens is not None
        assert len(codes) == 10
        bearer = {"Authorization": f"Bearer {tokens.token}"}
        with Client(base_url=service.url, headers=bearer) as client:
            assert sorted(client.ok("GET", "/auth/session")["mfa"]["methods"]) == ["recovery", "totp"]
        kept_of_it = f"{console.text} {vars(app)!r} {vars(app.client)!r} {store.file.read_text()}"
        assert [secret for secret in (seed, *codes) if secret in kept_of_it] == []


async def test_a_person_who_enrols_no_factor_has_done_nothing(
    service: Service, tenant: Tenant, admin: Person, folder: Path
) -> None:
    keep_session(service, admin, folder)
    queue_order(tenant)
    async with driving(service.url, folder, size=NARROW) as console:
        await enrolling(console)
        assert not console.one(Qr).display
        await console.press("escape")

        await console.sees("Approve this?", "needs a second factor")
        assert len(tenant.ok("GET", "/approvals?status=pending")) == 1


class Doing(Ask[object]):
    """A question that does what a test says."""

    TITLE_TEXT = "Do it?"

    def __init__(self, request: Callable[[Console], Awaitable[object]]) -> None:
        super().__init__()
        self._request = request

    def essentials(self) -> ComposeResult:
        yield PlainText("It is done.")

    async def perform(self) -> object:
        return await self._request(self.app)


async def doing(console: Driven, request: Callable[[Console], Awaitable[object]], words: str) -> None:
    """Ask that question, say yes, and see what comes of it."""
    await console.app.push_screen(Doing(request))
    await confirm(console, words)


async def test_several_acts_at_once_ask_one_question(
    service: Service, tenant: Tenant, careful: Person, folder: Path
) -> None:
    keep_session(service, careful, folder)

    async def two(app: Console) -> str:
        made = await asyncio.gather(app.act(partial(made_agent, app, 1)), app.act(partial(made_agent, app, 2)))
        return f"{len(made)} made"

    async with driving(service.url, folder) as console:
        await signed_in(console)
        await doing(console, two, "Verify a second factor")
        await console.write(next_code(careful))
        await console.press("enter")
        await console.sees_no("Verify a second factor", "Do it?")

    assert {agent["id"] for agent in tenant.ok("GET", "/agents")} == {"a-1", "a-2"}


async def made_agent(app: Console, number: int) -> object:
    """Make an agent, which people may with a recent second factor."""
    return await app.client.send("POST", "/agents", object, {"id": f"a-{number}", "name": "A"})


async def test_a_tenant_key_cannot_show_one_and_is_told_so(service: Service, tenant: Tenant, folder: Path) -> None:
    async def demand(app: Console) -> str:
        async def refuse() -> str:
            raise MfaRequired("Verify a second factor first.", status=403, code="mfa_required", data={})

        return await app.act(refuse)

    async with driving(service.url, folder, key=tenant.key) as console:
        await signed_in(console)

        await doing(console, demand, "A tenant key has no second factor: press i to sign in as a person.")


async def test_a_wrong_code_is_said_where_it_was_typed(
    service: Service, tenant: Tenant, careful: Person, folder: Path, pictures: SnapshotAssertion
) -> None:
    keep_session(service, careful, folder)
    async with driving(service.url, folder, size=NARROW) as console:
        await signed_in(console)
        await console.sees("0 waiting", "live")
        act = "Type a code from your authenticator or a recovery code."
        await doing(console, lambda app: app.act(partial(made_agent, app, 1)), act)
        console.one(Input).cursor_blink = False
        await console.write("12345")
        await console.press("enter")
        await console.sees("That recovery code was not accepted.")

        assert await console.picture(careful.wallet.address) == pictures


@pytest.mark.parametrize(
    ("methods", "said"),
    [
        (["totp"], "Type a code from your authenticator."),
        (["passkey", "recovery"], "Type a recovery code. A passkey works only in the browser."),
        (
            ["sms"],
            "The console supports none of your factors: enrol an authenticator as well. "
            "A code by text message works only in the browser.",
        ),
    ],
    ids=["totp", "recovery", "none-here"],
)
def test_the_question_names_what_serves_and_what_does_not(methods: list[str], said: str) -> None:
    assert ways(methods) == said


async def test_a_batch_without_a_second_factor_asks_only_once(
    service: Service, tenant: Tenant, careful: Person, folder: Path
) -> None:
    keep_session(service, careful, folder)
    agent = tenant.agent(rule("auto-approve-threshold", threshold="0"))
    for value in (5, 6):
        assert agent.sign(value=value).status_code == 202
    async with driving(service.url, folder) as console:
        await console.sees("2 waiting")
        await console.press("space", "space")
        await ask(console, "a")
        await console.sees("Approve these 2?")
        await confirm(console, "Type a code from your authenticator")
        await console.press("escape")

        def tells_trouble() -> bool:
            screen = console.app.screen
            trouble = screen.query_one("#question-trouble", PlainText) if isinstance(screen, BatchDecision) else None
            return trouble is not None and "Recent multi-factor" in str(trouble.content)

        await console.until(tells_trouble, "what is wanted")
        assert "Enter asks again" not in console.text
        await confirm(console, "Type a code from your authenticator")
        await console.write(next_code(careful))
        await console.press("enter")
        await console.sees("2 approved")
    assert tenant.ok("GET", "/approvals?status=pending") == []
