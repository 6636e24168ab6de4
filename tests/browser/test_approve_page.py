"""The page where a person decides what waits, in a real browser with a passkey authenticator.

Each test is a plain function, because the browser's client runs a loop of its own on the test's thread.
"""

import json
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pyotp
import pytest
from playwright.sync_api import CDPSession, Locator, Page, Request, Route, expect

from tests.fixtures.approvers import approver, quorum
from tests.fixtures.callers import ADDRESS, OTHER_ADDRESS, Agent, Tenant, rule
from tests.fixtures.eventually import eventually
from tests.fixtures.people import Person, member
from tests.fixtures.server import EVM_CHAIN, Service
from tests.outside.browser import Visit, browser_page
from tests.outside.push_browser import PushBrowser
from tests.routes.intents.makers import propose, transfer
from tests.routes.orders import SPENDER, TOKEN_CONTRACT, UNLIMITED, permit

long = pytest.mark.long
BROWSERS = "/user/me/push-subscriptions"
WAITS = rule("auto-approve-threshold", threshold="0")
HOSTILE = "\u202egnp.exe <b id=evil>bold</b> <!channel> @everyone [x](https://evil.example)"
# A folder for pictures, for people who look at the page; none are taken without one.
PICTURES = os.environ.get("TEST_PICTURES")
REGISTER = """async ({options, token}) => {
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options);
  const made = await navigator.credentials.create({publicKey});
  const answer = await fetch("/auth/passkeys/register/verify", {
    method: "POST", headers: {"Content-Type": "application/json", Authorization: `Bearer ${token}`},
    body: JSON.stringify({credential: made.toJSON(), name: "A browser"}),
  });
  return (await answer.json()).ok;
}"""
WALLET = """window.ethereum = {request: ({method, params}) => window.askWallet(method, params ?? [])};"""
# What the page does every ten seconds, and when it is looked at again.
LOOK = "document.dispatchEvent(new Event('visibilitychange'))"


@pytest.fixture
def owner(service: Service, tenant: Tenant) -> Iterator[Person]:
    """An owner of this test's tenant, with an authenticator app."""
    with closing(member(service, tenant, "owner", mfa=True)) as person:
        yield person


@pytest.fixture
def cautious(tenant: Tenant) -> Agent:
    """An agent whose every payment waits."""
    return tenant.agent(WAITS)


def queue_order(agent: Agent, value: int = 5, **fields: Any) -> str:
    answer = agent.sign(value=value, **fields)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["data"]["approvalId"])


def erc20(selector: str, party: str, amount: int) -> dict[str, str]:
    return {"to": TOKEN_CONTRACT, "data": f"0x{selector}{party[2:].rjust(64, '0')}{amount:064x}"}


@contextmanager
def visiting(service: Service, fragment: str = "", *, width: int = 390) -> Iterator[Visit]:
    """The page in a fresh browser; that it complained of nothing is part of every test."""
    with browser_page(f"http://localhost:{service.port}") as visit:
        visit.page.set_viewport_size({"width": width, "height": 844})
        visit.page.add_init_script(
            "addEventListener('securitypolicyviolation', (event) => console.error(event.violatedDirective))"
        )
        visit.page.goto(f"/approve{fragment}")
        yield visit
        assert [fault for fault in visit.faults if "Failed to load resource" not in fault] == []


def heading(page: Page, text: str) -> None:
    """The step that is shown, which has the focus."""
    expect(page.get_by_role("heading", level=2)).to_have_text(text)
    expect(page.get_by_role("heading", level=2)).to_be_focused()


def add_passkey(visit: Visit, person: Person) -> None:
    """Give a person a passkey in this browser."""
    heading(visit.page, "Sign in")
    options = person.ok("POST", "/auth/passkeys/register/options", {})
    assert visit.page.evaluate(REGISTER, {"options": options, "token": person.session["token"]})


def enter_by_passkey(visit: Visit, person: Person, tenant: Tenant) -> None:
    """Sign in with one touch, and choose the organisation, as the page begins with the person's own."""
    add_passkey(visit, person)
    visit.page.get_by_role("button", name="Use a passkey").click()
    heading(visit.page, "Nothing waits")
    visit.page.get_by_label("Organisation").select_option(tenant.id)


def enter_by_wallet(visit: Visit, person: Person, tenant: Tenant) -> None:
    """Sign in without a second factor."""

    def ask(method: str, params: list[str]) -> Any:
        if method == "personal_sign":
            return person.wallet.sign(bytes.fromhex(params[0].removeprefix("0x")).decode())
        return {"eth_requestAccounts": [person.wallet.address.lower()], "eth_chainId": hex(EVM_CHAIN)}[method]

    visit.page.expose_function("askWallet", ask)
    visit.page.add_init_script(WALLET)
    visit.page.reload()
    visit.page.get_by_role("button", name="Use a wallet").click()
    heading(visit.page, "Nothing waits")
    visit.page.get_by_label("Organisation").select_option(tenant.id)


def open_first(page: Page, title: str = "Approve this?") -> None:
    page.locator("#waiting button").first.click()
    heading(page, title)


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=name, exact=True)


def see_decided(page: Page, text: str) -> None:
    expect(page.locator("#decided")).to_contain_text(text)
    expect(page.locator("#decide")).to_be_hidden()


def press(page: Page, name: str) -> None:
    """Read to the end, heed the warning where there is one, decide."""
    page.locator("#deny").scroll_into_view_if_needed()
    if page.get_by_label("I read the warning above").is_visible():
        page.get_by_label("I read the warning above").check()
    button(page, name).click()


def picture(page: Page, name: str) -> None:
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=True)


def status_of(tenant: Tenant, approval: str) -> str:
    return str(tenant.ok("GET", f"/approvals/{approval}")["status"])


def test_a_payment_is_approved_by_one_touch(service: Service, tenant: Tenant, cautious: Agent, owner: Person) -> None:
    approval = queue_order(cautious, 1_500_000_000_000_000_007)
    with visiting(service) as visit:
        page = visit.page
        enter_by_passkey(visit, owner, tenant)
        heading(page, "1 waits for a decision")
        expect(page.locator("#waiting")).to_contain_text(f"Agent {cautious.id} \u00b7 expires in")
        open_first(page)
        expect(page.locator("#lines")).to_contain_text(
            "Sends 1.500000000000000007 ETH (1,500,000,000,000,000,007 wei) to"
        )
        # Always after the same character.
        pieces = page.locator("#lines .address span").all_inner_texts()
        assert pieces[:2] == [ADDRESS[:22], ADDRESS[22:]]
        expect(page.locator("#own-reading")).to_contain_text(
            "Read on this device too: it pays 1,500,000,000,000,000,007 of the smallest unit"
        )
        expect(page.locator("#dangers")).to_contain_text("First time")
        press(page, "Approve")
        see_decided(page, "Approved")
        expect(page.get_by_role("status")).to_have_text("Approved and signed.")
        kept = page.evaluate(
            "async () => [document.cookie, localStorage.length, sessionStorage.length,"
            " (await indexedDB.databases()).length, (await caches.keys()).length]"
        )
        button(page, "Back to the list").click()
        heading(page, "Nothing waits")
        page.goto("about:blank")

        assert eventually(lambda: [one["provider"] for one in owner.ok("GET", "/auth/sessions")] == ["siwe"])
    assert kept == ["", 0, 0, 0, 0]
    assert status_of(tenant, approval) == "approved"
    assert cautious.ok("GET", f"/vault/{cautious.id}/history")[0]["status"] == "signed"


@long
def test_a_payment_is_denied_with_a_reason(service: Service, tenant: Tenant, cautious: Agent, owner: Person) -> None:
    approval = queue_order(cautious)
    with visiting(service) as visit:
        enter_by_passkey(visit, owner, tenant)
        open_first(visit.page)
        visit.page.get_by_label("Reason, if you refuse it").fill("no invoice")
        press(visit.page, "Deny")
        see_decided(visit.page, "Denied")

    assert status_of(tenant, approval) == "rejected"
    assert cautious.ok("GET", f"/vault/{cautious.id}/history")[0]["reason"] == "no invoice"


@contextmanager
def decisions(page: Page) -> Iterator[list[Request]]:
    """Requests that decide."""
    sent: list[Request] = []
    page.on(
        "request",
        lambda request: (
            sent.append(request) if request.url.endswith(("/approve", "/deny")) and request.method == "POST" else None
        ),
    )
    yield sent


@long
@pytest.mark.parametrize("way", ["passkey", "authenticator", "recovery code"])
def test_a_factor_is_shown_where_none_is_recent(
    service: Service, tenant: Tenant, cautious: Agent, owner: Person, way: str
) -> None:
    approval = queue_order(cautious)
    with visiting(service) as visit:
        page = visit.page
        add_passkey(visit, owner)
        enter_by_wallet(visit, owner, tenant)
        open_first(page)
        with decisions(page) as sent:
            press(page, "Approve")
            heading(page, "Show that it is you")
            picture(page, "step-up")
            assert status_of(tenant, approval) == "pending"
            if way == "passkey":
                page.get_by_role("button", name="Use a passkey").last.click()
            else:
                # The code of the enrolment was used: the next half minute has another.
                code = owner.recovery_codes.pop() if way == "recovery code" else next_code(owner)
                page.get_by_label("Code", exact=True).fill(code)
                page.get_by_role("button", name="Go on with the code").click()
            see_decided(page, "Approved")

    keys = [one.headers["idempotency-key"] for one in sent]
    assert (len(keys), len(set(keys))) == (2, 1)
    assert status_of(tenant, approval) == "approved"


def next_code(person: Person) -> str:
    """A code that is not used yet: one half minute ahead is taken too."""
    return pyotp.TOTP(person.seed).at(time.time(), counter_offset=1)


@long
def test_a_touch_is_for_one_item_alone(service: Service, tenant: Tenant, cautious: Agent, owner: Person) -> None:
    first, second = queue_order(cautious, 1), queue_order(cautious, 2)
    with visiting(service) as visit:
        page = visit.page
        add_passkey(visit, owner)
        enter_by_wallet(visit, owner, tenant)
        open_first(page)
        press(page, "Approve")
        heading(page, "Show that it is you")
        expect(page.locator("#step-up-what")).to_contain_text("Your passkey is asked for this one item.")
        page.get_by_role("button", name="Use a passkey").last.click()
        see_decided(page, "Approved")
        button(page, "Back to the list").click()
        open_first(page)
        press(page, "Approve")
        heading(page, "Show that it is you")

    assert (status_of(tenant, first), status_of(tenant, second)) == ("approved", "pending")


@long
def test_a_wrong_code_is_said_and_decides_nothing(
    service: Service, tenant: Tenant, cautious: Agent, owner: Person
) -> None:
    approval = queue_order(cautious)
    with visiting(service) as visit:
        enter_by_wallet(visit, owner, tenant)
        open_first(visit.page)
        press(visit.page, "Approve")
        heading(visit.page, "Show that it is you")
        visit.page.get_by_label("Code", exact=True).fill("000000")
        visit.page.get_by_role("button", name="Go on with the code").click()
        expect(visit.page.get_by_role("alert")).to_contain_text("wrong")
        button(visit.page, "Back, and decide nothing").click()
        heading(visit.page, "Approve this?")

    assert status_of(tenant, approval) == "pending"


@long
def test_a_link_leads_to_its_item(service: Service, tenant: Tenant, cautious: Agent, owner: Person) -> None:
    queue_order(cautious, 1)
    approval = queue_order(cautious, 77)
    with visiting(service, f"#{tenant.id}/{approval}") as visit:
        assert visit.page.url.endswith("/approve")
        add_passkey(visit, owner)
        visit.page.get_by_role("button", name="Use a passkey").click()
        heading(visit.page, "Approve this?")
        expect(visit.page.locator("#lines")).to_contain_text("(77 wei)")
        other = queue_order(cautious, 78)
        visit.page.evaluate("(link) => { location.hash = link }", f"{tenant.id}/{other}")
        expect(visit.page.locator("#lines")).to_contain_text("(78 wei)")


@long
def test_a_link_of_a_strangers_organisation_is_refused(
    service: Service, other_tenant: Tenant, tenant: Tenant, owner: Person
) -> None:
    approval = queue_order(other_tenant.agent(WAITS))
    with visiting(service, f"#{other_tenant.id}/{approval}") as visit:
        add_passkey(visit, owner)
        visit.page.get_by_role("button", name="Use a passkey").click()
        expect(visit.page.get_by_role("alert")).to_contain_text("You are no member of the organisation")
        visit.page.get_by_role("button", name="Use a passkey").click()
        heading(visit.page, "Nothing waits")


@long
@pytest.mark.parametrize(
    "fragment",
    ["<script>alert(1)</script>", "a" * 10_000, "../../x/y", f"t/{uuid.UUID(int=1)}/more", "javascript:alert(1)"],
    ids=["script", "long", "path", "more", "scheme"],
)
def test_a_fragment_that_is_no_link_is_ignored(service: Service, fragment: str) -> None:
    with visiting(service, f"#{fragment}") as visit:
        visit.page.on("dialog", lambda dialog: pytest.fail(dialog.message))
        heading(visit.page, "Sign in")

        assert visit.page.url.endswith("/approve")
        assert visit.page.locator("body script").count() == 0


@long
def test_a_person_is_told_of_anothers_decision(
    service: Service, tenant: Tenant, cautious: Agent, owner: Person
) -> None:
    first, second = queue_order(cautious, 1), queue_order(cautious, 2)
    with visiting(service) as visit:
        page = visit.page
        enter_by_passkey(visit, owner, tenant)
        heading(page, "2 wait for a decision")
        tenant.ok("POST", f"/approvals/{first}/deny", {})
        page.evaluate(LOOK)
        expect(page.get_by_role("heading", level=2)).to_have_text("1 waits for a decision")
        open_first(page)
        tenant.ok("POST", f"/approvals/{second}/approve", {})
        page.evaluate(LOOK)
        see_decided(page, "Approved")
        expect(page.get_by_role("status")).to_have_text("Somebody has decided meanwhile.")


@long
def test_the_second_of_two_is_told_so(service: Service, tenant: Tenant, cautious: Agent, owner: Person) -> None:
    approval = queue_order(cautious)
    with visiting(service) as visit:
        page = visit.page
        enter_by_passkey(visit, owner, tenant)
        open_first(page)
        button(page, "Deny").scroll_into_view_if_needed()
        page.get_by_label("I read the warning above").check()
        expect(button(page, "Approve")).to_be_enabled()
        tenant.ok("POST", f"/approvals/{approval}/deny", {"reason": "sooner"})
        button(page, "Approve").click()
        expect(page.get_by_role("alert")).to_contain_text("Somebody else has decided meanwhile.")
        see_decided(page, "Denied")

    assert status_of(tenant, approval) == "rejected"


def answer_otherwise(page: Page, path: str, change: Any) -> None:
    """Let a service that was taken over, or a row that was changed, answer something else."""

    def alter(route: Route) -> None:
        answer = route.fetch()
        body = answer.json()
        change(body["data"])
        route.fulfill(response=answer, json=body)

    page.route(path, alter)


def other_address(data: Any) -> None:
    for one in data["lines"]:
        one["text"] = one["text"].replace(ADDRESS, OTHER_ADDRESS)


def other_amount(data: Any) -> None:
    for one in data["lines"]:
        one["text"] = one["text"].replace("50,000", "5")


def other_order(data: Any) -> None:
    order = json.loads(data["order"])
    data["order"] = json.dumps({**order, "to": OTHER_ADDRESS})


@long
@pytest.mark.parametrize("change", [other_address, other_amount, other_order])
def test_words_that_differ_from_the_order_stop_it(
    service: Service, tenant: Tenant, cautious: Agent, owner: Person, change: Any
) -> None:
    queue_order(cautious, 50_000)
    with visiting(service) as visit:
        page = visit.page
        answer_otherwise(page, "**/words", change)
        enter_by_passkey(visit, owner, tenant)
        open_first(page)
        expect(page.locator("#stop")).to_contain_text("STOP.")
        button(page, "Deny").scroll_into_view_if_needed()
        page.get_by_label("I read the warning above").check()
        expect(button(page, "Deny")).to_be_enabled()
        expect(button(page, "Approve")).to_be_disabled()
        fits(page, 390)
        picture(page, f"stop-{change.__name__}")


@long
def test_the_device_says_what_it_can_read_and_what_not(
    service: Service, tenant: Tenant, cautious: Agent, owner: Person
) -> None:
    cases = {
        queue_order(cautious, 0, **erc20("a9059cbb", OTHER_ADDRESS, 7_000)): "sends 7,000 raw units of a token",
        queue_order(cautious, 0, **erc20("095ea7b3", SPENDER, 9_000)): "lets an address spend 9,000 raw units",
        queue_order(cautious, 0, **erc20("095ea7b3", SPENDER, UNLIMITED)): "lets an address spend UNLIMITED amounts",
        queue_order(cautious, 0, **erc20("095ea7b3", SPENDER, 0)): "lets an address spend 0 raw units",
        queue_order(cautious, 0, to=TOKEN_CONTRACT, data="0xdeadbeef"): "cannot read this kind of order",
        queue_document(cautious, "typed-data", permit(cautious.evm_address, 7)): "cannot read this kind of order",
    }
    with visiting(service) as visit:
        page = visit.page
        enter_by_passkey(visit, owner, tenant)
        heading(page, "6 wait for a decision")
        for approval, said in cases.items():
            page.evaluate("(link) => { location.hash = link }", f"{tenant.id}/{approval}")
            expect(page.locator("#own-reading")).to_contain_text(said)
            expect(page.locator("#stop")).to_be_hidden()
            picture(page, f"item-{said[:24].replace(' ', '-')}")


def queue_document(agent: Agent, kind: str, body: dict[str, Any]) -> str:
    answer = agent.post(f"/vault/{agent.id}/sign-{kind}", json=body)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["data"]["approvalId"])


@long
def test_an_order_that_is_another_one_by_now_is_not_approved(
    service: Service, tenant: Tenant, cautious: Agent, owner: Person
) -> None:
    approval = queue_order(cautious)
    with visiting(service) as visit:
        page = visit.page
        enter_by_passkey(visit, owner, tenant)
        open_first(page)

        def other_digest(route: Route) -> None:
            route.continue_(post_data=json.dumps({"digest": "0" * 64}))

        page.route("**/approve", other_digest)
        press(page, "Approve")
        expect(page.get_by_role("alert")).to_have_text("The order is another one by now. Read it again.")
        heading(page, "Approve this?")

    assert status_of(tenant, approval) == "pending"


@long
def test_a_lost_answer_is_asked_for_again_under_its_key(
    service: Service, tenant: Tenant, cautious: Agent, owner: Person
) -> None:
    queue_order(cautious)
    with visiting(service) as visit:
        page = visit.page
        enter_by_passkey(visit, owner, tenant)
        open_first(page)

        def lose(route: Route) -> None:
            route.fetch()
            route.abort()

        with decisions(page) as sent:
            page.route("**/approve", lose, times=1)
            press(page, "Approve")
            expect(page.get_by_role("alert")).to_contain_text("It is not known whether your decision arrived.")
            button(page, "Approve").click()
            see_decided(page, "Approved")

    keys = {one.headers["idempotency-key"] for one in sent}
    assert (len(sent), len(keys)) == (2, 1)
    assert [one["status"] for one in cautious.ok("GET", f"/vault/{cautious.id}/history")] == ["signed"]


@long
def test_a_decision_waits_for_the_end_and_for_a_moment(
    service: Service, tenant: Tenant, cautious: Agent, owner: Person
) -> None:
    queue_order(cautious, 0, **erc20("095ea7b3", SPENDER, UNLIMITED))
    with visiting(service, width=360) as visit:
        page = visit.page
        page.clock.install()
        enter_by_passkey(visit, owner, tenant)
        page.set_viewport_size({"width": 360, "height": 500})
        open_first(page)
        expect(page.locator("#dangers li.bad").first).to_contain_text("UNLIMITED")
        # However long it is open, what was not on the screen was not read.
        page.clock.fast_forward(60_000)
        expect(button(page, "Approve")).to_be_disabled()
        expect(button(page, "Deny")).to_be_disabled()
        assert page.evaluate("scrollY") == 0
        button(page, "Deny").scroll_into_view_if_needed()
        expect(button(page, "Deny")).to_be_enabled()
        expect(button(page, "Approve")).to_be_disabled()
        page.get_by_label("I read the warning above").check()
        expect(button(page, "Approve")).to_be_enabled()
        # Another item begins from the beginning.
        button(page, "Back to the list").click()
        open_first(page)
        assert button(page, "Approve").is_disabled()


@long
def test_items_with_votes_are_shown_and_denied_alone(service: Service, tenant: Tenant, owner: Person) -> None:
    voters = [approver(service, tenant) for _ in range(2)]
    agent = tenant.agent(agent_id="payer")
    voters[0].person.ok("PUT", f"/agents/{agent.id}/policies", [quorum(2, *voters)])
    approval = queue_order(agent)
    refused = owner.post(f"/approvals/{approval}/approve", json={})
    assert (refused.status_code, refused.json()["data"]["code"]) == (403, "quorum_needed")
    with visiting(service) as visit:
        page = visit.page
        enter_by_passkey(visit, owner, tenant)
        expect(page.locator("#waiting")).to_contain_text("by votes")
        open_first(page, "It waits for votes")
        expect(page.locator("#decided")).to_contain_text("0 of 2 votes. Here it can only be denied.")
        expect(button(page, "Approve")).to_be_hidden()
        picture(page, "votes")
        press(page, "Deny")
        see_decided(page, "Denied")
    for one in voters:
        one.person.close()

    assert status_of(tenant, approval) == "rejected"


@long
def test_a_proposal_can_be_rejected_alone(service: Service, tenant: Tenant, cautious: Agent, owner: Person) -> None:
    intent = propose(tenant, transfer(cautious, 3))
    with visiting(service) as visit:
        page = visit.page
        enter_by_passkey(visit, owner, tenant)
        heading(page, "1 waits for a decision")
        picture(page, "list-proposal")
        page.locator("#proposed button").click()
        heading(page, "Reject this proposal?")
        expect(page.locator("#lines pre")).to_contain_text('"value": "3"')
        expect(button(page, "Approve")).to_be_hidden()
        picture(page, "proposal")
        page.get_by_label("Reason, if you refuse it").fill("not now")
        press(page, "Reject")
        see_decided(page, "It is rejected.")

    assert tenant.ok("GET", f"/intents/{intent['id']}")["status"] == "rejected"


@long
def test_hostile_names_are_text(service: Service, tenant: Tenant, owner: Person) -> None:
    made = tenant.ok("POST", "/agents", {"id": "hostile", "name": HOSTILE})
    agent = tenant.as_agent(made)
    tenant.ok("PUT", "/agents/hostile/policies", [WAITS])
    queue_order(agent)
    with visiting(service) as visit:
        page = visit.page
        enter_by_passkey(visit, owner, tenant)
        expect(page.locator("#waiting .who")).to_contain_text("<U+202E>gnp.exe <b id=evil>bold</b> <!channel>")
        open_first(page)
        expect(page.locator("#lines")).to_contain_text('Agent "<U+202E>gnp.exe <b id=evil>bold</b>')
        assert page.locator("#evil, main a, main b, main img").count() == 0
        assert "\u202e" not in page.locator("main").inner_text()


@long
def test_a_sign_in_that_ended_is_asked_for_first(
    service: Service, tenant: Tenant, cautious: Agent, owner: Person
) -> None:
    queue_order(cautious)
    with visiting(service) as visit:
        page = visit.page
        enter_by_passkey(visit, owner, tenant)
        open_first(page)
        for session in owner.ok("GET", "/auth/sessions"):
            if not session["current"]:
                owner.ok("DELETE", f"/auth/sessions/{session['id']}")
        page.evaluate(LOOK)
        heading(page, "Sign in")
        expect(page.get_by_role("alert")).to_have_text("Your sign-in has ended. Sign in again.")
        # Nothing of the organisation is left on the screen or behind it.
        assert page.locator("#lines p, #waiting li, #sections details, #tenant option").count() == 0


@long
def test_a_viewer_reads_and_is_told_who_decides(service: Service, tenant: Tenant, cautious: Agent) -> None:
    queue_order(cautious)
    with closing(member(service, tenant, "viewer")) as viewer, visiting(service) as visit:
        enter_by_passkey(visit, viewer, tenant)
        expect(visit.page.locator("#role-hint")).to_contain_text("An owner or admin decides.")
        open_first(visit.page)
        press(visit.page, "Approve")
        expect(visit.page.get_by_role("alert")).not_to_be_empty()


@long
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 390, 1280])
def test_the_page_fits(
    service: Service, tenant: Tenant, cautious: Agent, owner: Person, width: int, scheme: Any
) -> None:
    queue_order(cautious, 1_500_000_000_000_000_007)
    queue_order(cautious, 0, **erc20("095ea7b3", SPENDER, UNLIMITED))
    queue_order(cautious, 0, to=TOKEN_CONTRACT, data="0xdeadbeef")
    queue_document(cautious, "typed-data", permit(cautious.evm_address, 7))
    with visiting(service, width=width) as visit:
        page = visit.page
        page.emulate_media(color_scheme=scheme)
        fits(page, width)
        picture(page, f"sign-in-{width}-{scheme}")
        enter_by_passkey(visit, owner, tenant)
        heading(page, "4 wait for a decision")
        fits(page, width)
        picture(page, f"list-{width}-{scheme}")
        for number in range(4):
            page.locator("#waiting button").nth(number).click()
            heading(page, "Approve this?")
            fits(page, width)
            picture(page, f"item-{number}-{width}-{scheme}")
            page.locator("summary").evaluate_all("(all) => all.forEach((one) => { one.parentElement.open = true })")
            fits(page, width)
            button(page, "Back to the list").click()
            heading(page, "4 wait for a decision")


def fits(page: Page, width: int) -> None:
    """Nothing stands out to the side, and what is pressed is large enough for a thumb."""
    assert page.evaluate("document.documentElement.scrollWidth") == width
    heights = page.locator("button:visible, select:visible, summary:visible").evaluate_all(
        "(all) => all.map((one) => one.offsetHeight)"
    )
    assert min(heights) >= 44


# Chromium subscribes at its maker's servers alone, and without a window it asks nobody for permission: what would be
# answered is put in their place.
SUBSCRIBES = """
let made = null;
const plain = (text) => atob(text.replace(/-/g, "+").replace(/_/g, "/"));
const bytes = (text) => Uint8Array.from(plain(text), (one) => one.charCodeAt(0)).buffer;
const unsubscribe = async () => { made = null; return true; };
Notification.requestPermission = async () => "granted";
PushManager.prototype.getSubscription = async () => made;
PushManager.prototype.subscribe = async ({userVisibleOnly, applicationServerKey}) => {
  window.subscribedBy = [userVisibleOnly, applicationServerKey.length, applicationServerKey[0]];
  made = {endpoint: "ENDPOINT", getKey: (name) => bytes(KEYS[name]), unsubscribe};
  return made;
};
"""


def press_tell(page: Page) -> None:
    """Press once the page is at rest: it does one thing at a time, and leaves out what is pressed meanwhile."""
    expect(page.locator("main[aria-busy]")).to_have_count(0)
    button(page, "Tell me on this device").click()


@contextmanager
def visiting_with_pushes(service: Service) -> Iterator[Visit]:
    """The page in a browser whose push service gives it an address where nobody listens."""
    keys = PushBrowser().keys
    script = SUBSCRIBES.replace("ENDPOINT", "http://127.0.0.1:9/a-secret-of-push?x=wxyz")
    with visiting(service) as visit:
        visit.page.add_init_script(script.replace("KEYS", json.dumps(keys)))
        visit.page.reload()
        yield visit


@long
def test_a_device_is_told_after_a_press_and_no_more_after_another(
    service: Service, tenant: Tenant, owner: Person
) -> None:
    with visiting_with_pushes(service) as visit:
        page = visit.page
        enter_by_passkey(visit, owner, tenant)
        # Nothing is asked or subscribed by itself.
        expect(button(page, "Tell me on this device")).to_be_visible()
        owner.step_up()
        assert owner.ok("GET", BROWSERS) == []

        press_tell(page)
        expect(page.get_by_role("status")).to_have_text("This device is told of what waits.")
        [made] = owner.ok("GET", BROWSERS)
        by = page.evaluate("window.subscribedBy")
        expect(page.locator("main[aria-busy]")).to_have_count(0)
        button(page, "Tell this device no more").click()
        expect(page.get_by_role("status")).to_have_text("This device is told nothing more.")
        expect(button(page, "Tell me on this device")).to_be_visible()

    assert (made["kind"], made["host"], made["lastFour"]) == ("webpush", "127.0.0.1:9", "wxyz")
    assert by == [True, 65, 4]
    assert owner.ok("GET", BROWSERS) == []


@long
def test_a_device_is_told_once_its_person_shows_a_second_factor(
    service: Service, tenant: Tenant, owner: Person
) -> None:
    with visiting_with_pushes(service) as visit:
        page = visit.page
        enter_by_wallet(visit, owner, tenant)
        press_tell(page)
        heading(page, "Show that it is you")
        button(page, "Back, and decide nothing").click()
        # What was begun is undone, for nobody would be told by it.
        expect(button(page, "Tell me on this device")).to_be_visible()
        owner.step_up()
        assert owner.ok("GET", BROWSERS) == []
        press_tell(page)
        heading(page, "Show that it is you")
        page.get_by_label("Code", exact=True).fill(next_code(owner))
        button(page, "Go on with the code").click()
        expect(page.get_by_role("status")).to_have_text("This device is told of what waits.")

    assert len(owner.ok("GET", BROWSERS)) == 1


@long
def test_a_device_of_somebody_who_decides_nothing_is_offered_nothing(service: Service, tenant: Tenant) -> None:
    with closing(member(service, tenant, "viewer")) as viewer, visiting_with_pushes(service) as visit:
        enter_by_passkey(visit, viewer, tenant)
        expect(visit.page.locator("#role-hint")).to_be_visible()
        expect(button(visit.page, "Tell me on this device")).to_be_hidden()


class Pushes:
    """Pushes, brought to the page's worker as a push service would, and what is shown of them."""

    def __init__(self, visit: Visit, origin: str) -> None:
        self._page, self._origin = visit.page, origin
        self._wire: CDPSession = visit.page.context.new_cdp_session(visit.page)
        self._ids: list[str] = []
        self._wire.on("ServiceWorker.workerRegistrationUpdated", self._note)
        self._wire.send("ServiceWorker.enable")
        visit.page.context.grant_permissions(["notifications"], origin=origin)

    def _note(self, event: dict[str, Any]) -> None:
        self._ids += [one["registrationId"] for one in event["registrations"] if not one["isDeleted"]]

    def deliver(self, data: str) -> None:
        active = "async () => (await navigator.serviceWorker.getRegistration('/approve/'))?.active?.state"
        assert eventually(lambda: self._page.evaluate(active) == "activated" and bool(self._ids))
        message = {"origin": self._origin, "registrationId": self._ids[-1], "data": data}
        self._wire.send("ServiceWorker.deliverPushMessage", message)

    def read_shown(self, **wanted: str) -> list[dict[str, Any]]:
        """Read the notifications, once there is one like this."""
        assert eventually(lambda: any(wanted.items() <= one.items() for one in self._all()))
        return self._all()

    def _all(self) -> list[dict[str, Any]]:
        script = (
            "async () => (await (await navigator.serviceWorker.getRegistration('/approve/')).getNotifications())"
            ".map(({title, body, tag, data}) => ({title, body, tag, data}))"
        )
        return list(self._page.evaluate(script))


@long
def test_a_push_is_shown_as_text_and_opens_nothing_but_the_page(service: Service) -> None:
    origin, approval = f"http://localhost:{service.port}", str(uuid.uuid4())
    with visiting(service) as visit:
        heading(visit.page, "Sign in")
        pushes = Pushes(visit, origin)
        said = {"title": "1 payment waits", "text": "Sends 5 wei <b>x</b>", "tenant": "acme", "approval": approval}
        pushes.deliver(json.dumps(said))
        (first,) = pushes.read_shown(title="1 payment waits")
        # Another push about the same approval takes its place.
        pushes.deliver(json.dumps(said | {"title": "Approved by another"}))
        assert len(pushes.read_shown(title="Approved by another")) == 1
        pushes.deliver("no JSON {")
        two = pushes.read_shown(tag="custody")
        pushes.deliver(json.dumps(said | {"title": "Press here", "approval": "javascript:alert(1)"}))
        three = pushes.read_shown(tag="custody", body="Sends 5 wei <b>x</b>")
        workers = visit.page.evaluate(
            "async () => (await navigator.serviceWorker.getRegistrations()).map((one) => one.scope)"
        )

    place = {"tag": approval, "data": f"acme/{approval}"}
    assert first == {"title": "1 payment waits", "body": "Sends 5 wei <b>x</b>", **place}
    fixed = {"title": "Custody: something waits for you", "tag": "custody", "data": ""}
    assert fixed | {"body": ""} in two
    assert fixed | {"body": "Sends 5 wei <b>x</b>"} in three
    assert workers == [f"{origin}/approve/"]


@long
def test_a_script_of_others_gets_no_worker_and_does_not_run(service: Service) -> None:
    with browser_page(f"http://localhost:{service.port}") as visit:
        page = visit.page
        page.on("dialog", lambda dialog: pytest.fail(dialog.message))
        page.goto("/approve")
        heading(page, "Sign in")
        tried = page.evaluate(
            """async () => {
              const found = {};
              const attempt = async (name, act) => { found[name] = await act().then(() => "done", (e) => e.name) };
              await attempt("plain worker", async () => navigator.serviceWorker.register("/approve/page.js"));
              await attempt("another policy", async () => trustedTypes.createPolicy("evil", {}));
              await attempt("the same policy", async () => trustedTypes.createPolicy("custody-worker", {}));
              await attempt("markup", async () => { document.body.innerHTML = "<img src=x onerror=alert(1)>" });
              await attempt("elsewhere", async () => fetch("https://evil.example/"));
              const inline = document.createElement("script");
              try { inline.textContent = "alert(1)"; document.body.append(inline) } catch (e) { found.inline = e.name }
              return found;
            }"""
        )

    assert tried == {
        "plain worker": "TypeError",
        "another policy": "TypeError",
        "the same policy": "TypeError",
        "markup": "TypeError",
        "elsewhere": "TypeError",
        "inline": "TypeError",
    }


@long
def test_no_other_site_frames_the_page(service: Service) -> None:
    with browser_page(f"http://127.0.0.1:{service.port}") as visit:
        visit.page.goto("/device")
        with visit.page.expect_console_message(lambda said: "frame" in said.text.lower()):
            visit.page.evaluate(
                "(url) => { const f = document.createElement('iframe'); f.src = url; document.body.append(f) }",
                f"http://localhost:{service.port}/approve",
            )


@long
def test_without_scripts_the_page_says_what_it_needs(service: Service) -> None:
    with browser_page(f"http://localhost:{service.port}") as visit:
        context = visit.page.context.browser.new_context(java_script_enabled=False)
        page = context.new_page()
        page.goto(f"http://localhost:{service.port}/approve")

        expect(page.locator("noscript p")).to_contain_text("cannot work without JavaScript")
        assert page.locator("section:visible").count() == 0
        context.close()


@long
def test_a_service_that_is_away_is_said_and_the_item_stays(
    service: Service, tenant: Tenant, cautious: Agent, owner: Person
) -> None:
    approval = queue_order(cautious)
    with visiting(service) as visit:
        page = visit.page
        enter_by_passkey(visit, owner, tenant)
        open_first(page)
        page.context.set_offline(True)
        page.evaluate(LOOK)
        expect(page.get_by_role("heading", level=2)).to_have_text("Approve this?")
        press(page, "Approve")
        expect(page.get_by_role("alert")).to_contain_text("cannot be reached")
        page.context.set_offline(False)
        button(page, "Approve").click()
        see_decided(page, "Approved")

    assert status_of(tenant, approval) == "approved"
