"""The page at which a person accepts an invitation, in a real browser.

Each test is a plain function, because the browser's client runs a loop of its own on the test's thread.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from playwright.sync_api import Page, expect

from tests.fixtures.callers import Client, Tenant
from tests.fixtures.linking import email_proof, link
from tests.fixtures.people import Person, by_mail, fresh_address, sign_in
from tests.fixtures.server import Service
from tests.outside.browser import Visit, browser_page
from tests.outside.smtp_server import Mailbox
from tests.routes.platform.invited import invite, path_of, role_in, states

pytestmark = pytest.mark.long

REGISTER = """async ({options, token}) => {
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options);
  const made = await navigator.credentials.create({publicKey});
  const answer = await fetch("/auth/passkeys/register/verify", {
    method: "POST", headers: {"Content-Type": "application/json", Authorization: `Bearer ${token}`},
    body: JSON.stringify({credential: made.toJSON(), name: "A browser"}),
  });
  return (await answer.json()).ok;
}"""


@contextmanager
def visiting(service: Service, token: str) -> Iterator[Visit]:
    """The page with a link's token, in a fresh browser; that it complained of nothing is part of every test."""
    with browser_page(f"http://localhost:{service.port}") as visit:
        visit.page.add_init_script(
            "addEventListener('securitypolicyviolation', (event) => console.error(event.violatedDirective))"
        )
        visit.page.goto(f"/invitation#{token}")
        yield visit
        assert [fault for fault in visit.faults if "Failed to load resource" not in fault] == []


def heading(page: Page, text: str) -> None:
    """The step that is shown, which has the focus."""
    expect(page.get_by_role("heading", level=2)).to_have_text(text)
    expect(page.get_by_role("heading", level=2)).to_be_focused()


def sign_in_by_email(page: Page, address: str, mailbox: Mailbox) -> None:
    heading(page, "Sign in")
    seen = mailbox.count(address)
    page.get_by_label("E-mail address").fill(address)
    page.get_by_role("button", name="Send me a code").click()
    page.get_by_label("Code from the e-mail").fill(mailbox.code_for(address, after=seen))
    page.get_by_role("button", name="Sign in", exact=True).click()


def review(page: Page) -> dict[str, str]:
    heading(page, "Join this organisation?")
    return dict(
        zip(
            page.locator("section:not([hidden]) dt").all_inner_texts(),
            page.locator("dd").all_inner_texts(),
            strict=True,
        )
    )


def test_the_mailed_link_lets_a_new_person_in(
    service: Service, as_platform: Client, tenant: Tenant, mailbox: Mailbox
) -> None:
    address = fresh_address()
    body = {"email": address, "role": "developer", "sendEmail": True}
    assert as_platform.ok("POST", path_of(tenant), body)["emailSent"] is True
    token = mailbox.mail_for(address).text.split("/invitation#")[1].split()[0]
    with visiting(service, token) as visit:
        sign_in_by_email(visit.page, address, mailbox)
        shown = review(visit.page)
        where = visit.page.url
        visit.page.get_by_role("button", name="Join").click()
        heading(visit.page, "You have joined")
        said = visit.page.locator("#end-text").inner_text()
        kept = visit.page.evaluate("[document.cookie, localStorage.length, sessionStorage.length, history.length]")

    assert shown == {"Organisation": tenant.id, "You join as": address}
    assert (token in where, where.endswith("/invitation")) == (False, True)
    assert said.startswith(f"You are a member of {tenant.id} as developer.")
    assert kept[:3] == ["", 0, 0]
    with closing(by_mail(service, mailbox, address)) as person:
        assert role_in(person, tenant) == "developer"
        # The page's own session has ended.
        assert [one["provider"] for one in person.ok("GET", "/auth/sessions")] == ["email"]


def test_a_passkey_of_the_invited_person_will_do(service: Service, tenant: Tenant, mailbox: Mailbox) -> None:
    with closing(by_mail(service, mailbox)) as person:
        token = invite(service, tenant, person.address)["token"]
        with visiting(service, token) as visit:
            heading(visit.page, "Sign in")
            options = person.ok("POST", "/auth/passkeys/register/options", {})
            assert visit.page.evaluate(REGISTER, {"options": options, "token": person.session["token"]})
            visit.page.get_by_role("button", name="Use a passkey").click()
            review(visit.page)
            visit.page.get_by_role("button", name="Join").click()
            heading(visit.page, "You have joined")

        assert role_in(person, tenant) == "viewer"


def test_another_person_is_told_and_may_sign_in_otherwise(service: Service, tenant: Tenant, mailbox: Mailbox) -> None:
    invited = fresh_address()
    token = invite(service, tenant, invited)["token"]
    with visiting(service, token) as visit:
        sign_in_by_email(visit.page, fresh_address(), mailbox)
        review(visit.page)
        visit.page.get_by_role("button", name="Join").click()
        heading(visit.page, "Sign in")
        expect(visit.page.get_by_role("alert")).to_have_text(
            "This invitation is for another address. Sign in with a code sent to the address that it came to."
        )
        sign_in_by_email(visit.page, invited, mailbox)
        assert review(visit.page)["You join as"] == invited
        visit.page.get_by_role("button", name="Join").click()
        heading(visit.page, "You have joined")

    assert states(service, tenant) == [(invited, "accepted")]


def test_an_ended_invitation_says_so(service: Service, as_platform: Client, tenant: Tenant, mailbox: Mailbox) -> None:
    address = fresh_address()
    made = invite(service, tenant, address)
    as_platform.ok("DELETE", path_of(tenant, made["invitation"]["id"]))
    with visiting(service, made["token"]) as visit:
        sign_in_by_email(visit.page, address, mailbox)
        review(visit.page)
        visit.page.get_by_role("button", name="Join").click()
        heading(visit.page, "This invitation works no more")


@pytest.mark.parametrize("token", ["", "nothing", "a/b c", "<img src=x onerror=alert(1)>/inv_x", "a" * 65 + "/inv_x"])
def test_a_link_without_a_whole_token_is_not_tried(service: Service, token: str) -> None:
    with visiting(service, token) as visit:
        heading(visit.page, "This link is not complete")

        assert visit.page.locator("img").count() == 0


def test_a_person_with_a_wallet_who_linked_the_address_joins(
    service: Service, tenant: Tenant, mailbox: Mailbox
) -> None:
    with closing(sign_in(service)) as person:
        address = fresh_address()
        link(person, email=email_proof(person, mailbox, address))
        token = invite(service, tenant, address)["token"]
        with visiting(service, token) as visit:
            sign_in_by_email(visit.page, address, mailbox)
            review(visit.page)
            visit.page.get_by_role("button", name="Join").click()
            heading(visit.page, "You have joined")

        assert isinstance(person, Person)
        assert role_in(person, tenant) == "viewer"
