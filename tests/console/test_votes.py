"""Votes in the console: who voted, who is still needed, and a vote by a key on the page of this machine."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from syrupy.assertion import SnapshotAssertion

from tests.console.queues import ask
from tests.console.waiting import item, later, random_of
from tests.fixtures.approvers import Approver, approver, quorum
from tests.fixtures.callers import Agent, Tenant
from tests.fixtures.console_sessions import keep_session
from tests.fixtures.consoles import NARROW, WIDE, Driven, driving
from tests.fixtures.people import Person, member
from tests.fixtures.server import Service
from tests.outside.browser import Visit, browser_page
from tests.outside.odd_api import changing, odd_api
from tests.routes.vault.bitcoin import LISTED, payment, sign_psbt
from tests.routes.vault.transfers import with_signer
from words.texts.moments import moment

pytestmark = pytest.mark.long

ADDRESS = re.compile(r"http://approver\.custody\.localhost:\d+/[a-z2-7]{26}")


@pytest.fixture
def voters(service: Service, tenant: Tenant) -> Iterator[list[Approver]]:
    """Two admins with a registered key each."""
    made = [approver(service, tenant) for _ in range(2)]
    yield made
    for one in made:
        one.person.close()


@pytest.fixture
def voted_agent(tenant: Tenant, voters: list[Approver]) -> Agent:
    """An agent whose every order needs both of them."""
    agent = tenant.agent(agent_id="payer")
    voters[0].person.ok("PUT", f"/agents/{agent.id}/policies", [quorum(2, *voters)])
    return agent


def waiting(agent: Agent, value: int = 5) -> str:
    """An order that waits for votes; the id of its item."""
    answer = agent.sign(value=value)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["data"]["approvalId"])


@asynccontextmanager
async def at_queue(url: str, service: Service, folder: Path, who: Person, **options: Any) -> AsyncIterator[Driven]:
    """The console of a person, with the queue read."""
    keep_session(folder, url, who)
    async with driving(url, folder, **options) as console:
        await console.sees("waiting", "live", "What it does")
        yield console


class Browsing:
    """A browser on a thread of its own, so that a console runs beside it; its authenticator lasts as long."""

    def __init__(self, visit: Visit, pool: ThreadPoolExecutor) -> None:
        self._visit, self._pool = visit, pool

    async def does(self, what: Callable[[Visit], Any]) -> Any:
        """Do something with the page."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, what, self._visit)


@pytest.fixture
def browsing() -> Iterator[Browsing]:
    """A browser that knows nothing, with an authenticator that recognises its owner."""
    with ThreadPoolExecutor(1) as pool:
        stack = ExitStack()
        visit = pool.submit(stack.enter_context, browser_page("about:blank")).result()
        try:
            yield Browsing(visit, pool)
            assert [fault for fault in visit.faults if "Failed to load resource" not in fault] == []
        finally:
            pool.submit(stack.close).result()


# What became of it may stand there by then.
HAS_ANSWERED = re.compile(r"The console has your answer|You can close this page")


async def page_of(console: Driven) -> str:
    """The address that is shown."""
    await console.until(lambda: ADDRESS.search(console.text), "the page's address")
    found = ADDRESS.search(console.text)
    assert found
    return found[0]


def press(page: Page, address: str, button: str) -> str:
    """Open the page and press its button; what the page said before."""
    page.goto(address)
    said = page.locator("main").inner_text()
    page.get_by_role("button", name=button).click()
    expect(page.locator("#said")).to_contain_text(HAS_ANSWERED)
    return said


def outcome_on(page: Page, words: str) -> None:
    """Wait until the page says what became of its answer."""
    expect(page.locator("#said.done")).to_contain_text(words, timeout=60_000)


async def test_a_key_made_and_used_on_the_local_page_signs_an_order_with_a_second_vote(
    service: Service, tenant: Tenant, voters: list[Approver], folder: Path, browsing: Browsing
) -> None:
    person, other = member(service, tenant, "admin", mfa=True), voters[0]
    keep_session(folder, service.url, person)
    async with driving(service.url, folder) as console:
        await console.sees("No pending approvals.")
        console.app.enrol_approver_key()
        await console.sees("Set up an approver key", "Make a key (Enter)")
        await console.press("enter")
        enrolment = await page_of(console)
        said = await browsing.does(lambda visit: press(visit.page, enrolment, "Make a key"))
        await console.sees("fingerprint", "Compare this with the administrator")
        made = "Your key is made. The console shows its fingerprint: compare it before a rule names it."
        await browsing.does(lambda visit: outcome_on(visit.page, made))
        (key,) = person.ok("GET", "/approver-keys?limit=1")
        assert key["userId"] == person.id
        assert "Approver key" in said
        groups = " ".join(key["fingerprint"][at : at + 4] for at in range(0, 64, 4))
        assert groups in console.flat
        await console.press("escape", "escape")

        agent = tenant.agent(agent_id="payer")
        rule = quorum(2, other)
        rule["config"]["approvers"].append({"userId": person.id, "keys": [key["fingerprint"]]})
        other.person.ok("PUT", f"/agents/{agent.id}/policies", [rule])
        approval = waiting(agent)
        await console.sees("votes 0 of 2", "still needed")
        await ask(console, "a")
        await console.sees("Vote for this?")
        await vote_confirmed(console)
        address = await page_of(console)
        said = await browsing.does(lambda visit: press(visit.page, address, "Vote with your key"))
        await console.sees("votes 1 of 2: you")
        taken = "Your vote was taken: votes 1 of 2: you"
        await browsing.does(lambda visit: outcome_on(visit.page, taken))
        assert "(5 wei)" in said
        assert item(tenant, approval)["digest"][:4] in said
        assert item(tenant, approval)["status"] == "pending"
        assert "Approved" not in console.flat

        assert other.approve(tenant.ok("GET", f"/approvals/{approval}")).status_code == 200
        await console.sees("Approved by")
    person.close()


async def test_the_browser_gives_no_vote_under_another_name(browsing: Browsing, service: Service) -> None:
    """A key of the approver's page is refused to a page of this machine under any other name."""
    ask = """async (rpId) => {
      const publicKey = {challenge: new Uint8Array(52), rpId, userVerification: "required", timeout: 2000};
      try { await navigator.credentials.get({publicKey}); return "given"; } catch (problem) { return problem.name; }
    }"""

    def refusal(visit: Visit, origin: str) -> str:
        visit.page.goto(f"{origin}:{service.port}/health")
        found: str = visit.page.evaluate(ask, "approver.custody.localhost")
        return found

    names = [
        await browsing.does(lambda visit, at=at: refusal(visit, at)) for at in ("http://localhost", "http://127.0.0.1")
    ]

    assert names == ["SecurityError", "SecurityError"]


async def test_an_order_that_is_not_the_one_shown_is_never_asked_about(
    service: Service, voted_agent: Agent, voters: list[Approver], folder: Path
) -> None:
    waiting(voted_agent)
    async with (
        odd_api(service.url) as api,
        at_queue(api.url, service, folder, voters[0].person) as console,
    ):
        api.does(changing(rb'\\"value\\":\\"5\\"', rb'\\"value\\":\\"6\\"'), "/approvals/", "GET")
        await ask(console, "a")
        await vote_confirmed(console)

        await console.sees("STOP: the order that the service sent is not the one that is shown")
        assert (ADDRESS.search(console.text), api.at("/approvals/", "POST")) == (None, [])


async def test_a_psbt_is_voted_on_where_it_does_what_is_shown(
    service: Service, tenant: Tenant, voters: list[Approver], folder: Path
) -> None:
    agent, person = tenant.agent(agent_id="payer"), voters[0].person
    person.ok("PUT", f"/agents/{agent.id}/policies", [LISTED, quorum(2, *voters)])
    answer = sign_psbt(with_signer(person, agent, "sign_transaction"), payment(agent, 50_000))
    assert answer.status_code == 202, answer.text

    async with at_queue(service.url, service, folder, person) as console:
        await ask(console, "a")
        await vote_confirmed(console)
        await page_of(console)
        await console.press("escape")
    async with odd_api(service.url) as api:
        api.does(changing(rb'"amount":"50000"', rb'"amount":"40000"'), "/approvals", "GET")
        async with at_queue(api.url, service, folder, person) as console:
            await console.sees("Sends 0.0004 BTC (40,000 sat) to")
            await ask(console, "a")
            await vote_confirmed(console)

            await console.sees("STOP: the order that the service sent is not the one that is shown")
            assert api.at("/approvals/", "POST") == []


async def test_a_person_without_a_key_or_without_a_vote_is_told_so(
    service: Service, tenant: Tenant, voted_agent: Agent, voters: list[Approver], folder: Path
) -> None:
    approval = waiting(voted_agent)
    assert voters[0].approve(tenant.ok("GET", f"/approvals/{approval}")).status_code == 202
    async with driving(service.url, folder, key=tenant.key) as console:
        await console.sees("votes 1 of 2", "still needed: user")
        await console.press("a")
        await console.sees("you use the tenant key")
    async with at_queue(service.url, service, folder, voters[0].person) as console:
        await console.sees("votes 1 of 2: you")
        await console.press("a")
        await console.sees("You have voted on this")
    async with at_queue(service.url, service, folder, voters[1].person) as console:
        # Their key was made elsewhere, so it is asked for and does not answer; without one nothing is asked.
        voters[1].person.ok("DELETE", f"/approver-keys/{voters[1].authenticator.id}")
        await ask(console, "a")
        await vote_confirmed(console)
        await console.sees("You have no approver key of this console.")
    assert item(tenant, approval)["status"] == "pending"


async def test_a_batch_leaves_out_the_orders_that_need_votes(
    service: Service, tenant: Tenant, voted_agent: Agent, voters: list[Approver], folder: Path
) -> None:
    waiting(voted_agent, 5)
    waiting(voted_agent, 6)
    async with at_queue(service.url, service, folder, voters[0].person) as console:
        await console.sees("2 waiting")
        await console.press("space", "down", "space", "a")
        await console.sees("2 of these need votes and are left out")
        assert "Cancel (Esc)" not in console.flat


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_an_order_with_one_of_two_votes(  # noqa: PLR0917 - the fixtures it needs
    service: Service,
    tenant: Tenant,
    voted_agent: Agent,
    voters: list[Approver],
    folder: Path,
    pictures: SnapshotAssertion,
    size: tuple[int, int],
) -> None:
    approval = waiting(voted_agent)
    assert voters[0].approve(tenant.ok("GET", f"/approvals/{approval}")).status_code == 202
    shown = tenant.ok("GET", f"/approvals/{approval}")
    async with at_queue(service.url, service, folder, voters[1].person, size=size, now=later_than(shown)) as console:
        await ask(console, "a")
        await console.sees("Vote for this?", "votes 1 of 2")
        drawn = await console.picture(*changing_parts(shown, voters))
    assert drawn == pictures


async def test_the_question_with_the_address_of_the_page(
    service: Service,
    tenant: Tenant,
    voted_agent: Agent,
    voters: list[Approver],
    folder: Path,
    pictures: SnapshotAssertion,
) -> None:
    shown = tenant.ok("GET", f"/approvals/{waiting(voted_agent)}")
    options: dict[str, Any] = {"size": NARROW, "now": later_than(shown)}
    async with at_queue(service.url, service, folder, voters[0].person, **options) as console:
        await ask(console, "a")
        await vote_confirmed(console)
        address = await page_of(console)
        assert await console.picture(address, *changing_parts(shown, voters)) == pictures
        await console.press("escape")


def later_than(shown: dict[str, Any]) -> Callable[[], Any]:
    """A clock that stands after an item was asked for."""
    return lambda: later(shown)


def changing_parts(shown: dict[str, Any], voters: list[Approver]) -> list[str]:
    """List the parts of a shown order and its voters that differ from run to run."""
    ids = [one.person.id for one in voters]
    times = [moment(one["votedAt"]) for one in shown["votes"]["by"]]
    wallets = [one.person.wallet.address for one in voters]
    return [*random_of(shown), *ids, *wallets, voters[0].person.tenant, *(f"{then:%H:%M}" for then in times if then)]


async def vote_confirmed(console: Driven) -> None:
    """Read to the end and confirm."""
    await console.until(lambda: re.search(r"Read on \(Enter\)|Vote \((Enter|y)\)", console.flat), "the button")
    while "Read on (Enter)" in console.flat:
        await console.press("enter")
        await console.until(lambda: re.search(r"Read on \(Enter\)|Vote \((Enter|y)\)", console.flat), "the button")
    await console.press("y" if "Vote (y)" in console.flat else "enter")
