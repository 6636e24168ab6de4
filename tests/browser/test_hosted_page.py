"""The page where people sign in for an application of a tenant, in a real browser, and what the application gets.

Each test is a plain function, because the browser's client runs a loop of its own on the test's thread.
"""

import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_device_page import REGISTER, heading, sign_in_by_email, with_wallet
from tests.browser.test_sign_on import with_oidc
from tests.fixtures.callers import Tenant
from tests.fixtures.people import Person, fresh_address, member, sign_in
from tests.fixtures.server import Service
from tests.fixtures.sign_on import verified_domain
from tests.outside.browser import Visit, browser_page
from tests.outside.dns_server import DnsServer
from tests.outside.oauth_providers import OAuthProviders
from tests.outside.oidc_server import running_oidc_server
from tests.outside.smtp_server import Mailbox
from tests.outside.wallet import Wallet
from tests.routes.auth.hosted import CLIENT, Application, put_client

pytestmark = pytest.mark.long

AT = "https://shop.example.com/signed-in"
WIDTHS = (360, 390, 1280)


class Shop(Application):
    """The application, whose address the browser is kept from reaching."""

    def link(self, **changed: str) -> str:
        """The address to which the application sends its people."""
        asked = self.body() | {"redirectUri": AT}
        query = {
            "client_id": f"{self.tenant}/{CLIENT}",
            "redirect_uri": asked["redirectUri"],
            "code_challenge": asked["codeChallenge"],
            "code_challenge_method": "S256",
            "state": self.state,
            **changed,
        }
        return f"/sign-in?{urlencode(query)}"

    def session(self, page: Page) -> dict[str, Any]:
        """Exchange the code with which the browser came."""
        page.wait_for_url(f"{AT}?*")
        brought = dict(parse_qsl(urlsplit(page.url).query))
        assert brought["state"] == self.state
        answer = self.exchange(brought["code"], redirect_uri=AT)
        assert answer.status_code == 200, answer.text
        return dict(answer.json()["data"])


@pytest.fixture
def shop(service: Service, tenant: Tenant, as_owner: Person) -> Shop:
    put_client(as_owner, allowedRedirectUrls=[AT], allowRegistration=True)
    return Shop(service, tenant.id)


@contextmanager
def visiting(service: Service, path: str) -> Iterator[Visit]:
    """The page in a fresh browser, which complains of nothing; the application's own page is a word."""
    with browser_page(f"http://localhost:{service.port}") as visit:
        visit.page.add_init_script(
            "addEventListener('securitypolicyviolation', (event) => console.error(event.violatedDirective))"
        )
        visit.page.route(f"{AT}*", lambda route: route.fulfill(body="The shop", content_type="text/plain"))
        visit.page.goto(path)
        yield visit
        assert [fault for fault in visit.faults if "Failed to load resource" not in fault] == []


def about(page: Page) -> dict[str, str]:
    terms, values = page.locator("#about dt").all_inner_texts(), page.locator("#about dd").all_inner_texts()
    return dict(zip(terms, values, strict=True))


def test_a_newcomer_signs_in_by_email_and_goes_on_to_the_application(
    service: Service, tenant: Tenant, shop: Shop, mailbox: Mailbox
) -> None:
    with visiting(service, shop.link()) as visit:
        heading(visit.page, "Sign in")
        shown = about(visit.page)
        sign_in_by_email(visit.page, fresh_address(), mailbox)
        session = shop.session(visit.page)

    assert (shown["Application"], shown["You go on to"]) == ("The shop", "https://shop.example.com")
    assert shown["Organisation"] == f"A tenant ({tenant.id})"
    assert (session["tenant"]["id"], session["tenant"]["role"], session["provider"]) == (tenant.id, "member", "email")


def test_a_passkey_counts_as_a_second_factor_at_the_application(service: Service, tenant: Tenant, shop: Shop) -> None:
    with closing(member(service, tenant, "member")) as person, visiting(service, shop.link()) as visit:
        given = {"options": person.ok("POST", "/auth/passkeys/register/options", {}), "token": person.session["token"]}
        assert visit.page.evaluate(REGISTER, given)
        visit.page.get_by_role("button", name="Use a passkey").click()
        session = shop.session(visit.page)

    assert (session["user"]["id"], session["provider"]) == (person.id, "passkey")
    assert session["mfa"]["verifiedAt"]


def test_a_wallet_signs_in_and_registers(service: Service, tenant: Tenant, shop: Shop) -> None:
    with visiting(service, shop.link()) as visit:
        with_wallet(visit, wallet := Wallet())
        visit.page.get_by_role("button", name="Use a wallet").click()
        session = shop.session(visit.page)

    assert (session["user"]["walletAddress"], session["tenant"]["role"]) == (wallet.address, "member")


def test_a_newcomer_by_google_registers_too(
    service: Service, tenant: Tenant, shop: Shop, oauth: OAuthProviders
) -> None:
    oauth.google.person = {"sub": secrets.token_hex(8), "email": fresh_address(), "email_verified": True}
    with visiting(service, shop.link()) as visit:
        visit.page.get_by_role("button", name="Use Google").click()
        session = shop.session(visit.page)

    assert (session["provider"], session["tenant"]["role"]) == ("google", "member")


def test_an_organisations_own_provider_is_one_button(
    service: Service, tenant: Tenant, shop: Shop, as_owner: Person, dns_server: DnsServer
) -> None:
    with running_oidc_server() as oidc:
        with_oidc(as_owner, oidc, verified_domain(as_owner, dns_server))
        with visiting(service, shop.link()) as visit:
            visit.page.get_by_role("button", name="Sign in with idp").click()
            session = shop.session(visit.page)

    assert (session["provider"], session["tenant"]["id"]) == ("oidc:idp", tenant.id)


def test_a_link_leads_to_no_address_that_is_not_listed(service: Service, shop: Shop) -> None:
    for changed in (
        {"redirect_uri": "https://evil.example/"},
        {"client_id": f"{shop.tenant}/other"},
        {"client_id": ""},
    ):
        with visiting(service, shop.link(**changed)) as visit:
            expect(visit.page.get_by_role("alert")).not_to_be_empty()
            assert visit.page.locator("#sign-in-step").is_hidden()
            assert urlsplit(visit.page.url).path == "/sign-in"


def test_a_client_that_registers_nobody_says_what_to_do(
    service: Service, shop: Shop, as_owner: Person, mailbox: Mailbox
) -> None:
    put_client(as_owner, allowedRedirectUrls=[AT])
    with visiting(service, shop.link()) as visit:
        sign_in_by_email(visit.page, fresh_address(), mailbox)

        expect(visit.page.get_by_role("alert")).to_contain_text("Ask it for an invitation.")


def test_nothing_is_left_in_the_browser(service: Service, shop: Shop, mailbox: Mailbox) -> None:
    with visiting(service, shop.link()) as visit:
        sign_in_by_email(visit.page, fresh_address(), mailbox)
        shop.session(visit.page)
        visit.page.goto("/sign-in")
        kept = visit.page.evaluate("[document.cookie, localStorage.length, sessionStorage.length]")

    assert kept == ["", 0, 0]


THEMES: dict[str, dict[str, Any]] = {
    "plain": {},
    "brand": {
        "primaryColor": "#b3005e",
        "accentColor": "#ffb000",
        "backgroundColor": "#fff4e6",
        "surfaceColor": "#ffffff",
        "textColor": "#2a1a10",
        "colorScheme": "light",
        "borderRadius": 20,
        "fontFamily": "Georgia, serif",
    },
    "unreadable": {"textColor": "#ffffff", "surfaceColor": "#ffffff", "primaryColor": "#ffffff"},
    "night": {"colorScheme": "dark", "primaryColor": "#7cf29c"},
}


@pytest.mark.parametrize("name", THEMES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_theme_colours_the_page_and_hides_nothing(
    service: Service, shop: Shop, as_owner: Person, tmp_path: Path, name: str, scheme: Any
) -> None:
    as_owner.ok("PUT", f"/tenants/{shop.tenant}/config", {"displayName": "Acme Outdoor", "theme": THEMES[name] or None})
    with visiting(service, shop.link()) as visit:
        visit.page.emulate_media(color_scheme=scheme)
        for width in WIDTHS:
            visit.page.set_viewport_size({"width": width, "height": 900})
            visit.page.reload()
            heading(visit.page, "Sign in")
            visit.page.screenshot(path=tmp_path / f"{name}-{scheme}-{width}.png", full_page=True)
            assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
            assert all(ratio >= 4.5 for ratio in visit.page.evaluate(CONTRASTS))
        worn = visit.page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--strong').trim()")

    assert (worn == THEMES[name].get("primaryColor")) is ("primaryColor" in THEMES[name])


# The contrast of every text that is shown with what lies behind it (WCAG 2.2, 1.4.3).
CONTRASTS = """() => {
  const numbers = (colour) => colour.match(/[0-9.]+/g).map(Number);
  const light = (colour) => {
    const [r, g, b] = numbers(colour).map((part) => {
      const one = part / 255;
      return one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if ((numbers(colour)[3] ?? 1) > 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  return [...document.querySelectorAll("h1, h2, p, dt, dd, label, button")]
    .filter((one) => one.checkVisibility() && one.textContent.trim())
    .map((one) => {
      const [high, low] = [light(getComputedStyle(one).color), light(behind(one))].sort((a, b) => b - a);
      return (high + 0.05) / (low + 0.05);
    });
}"""


def test_somebody_known_elsewhere_keeps_their_own_tenant(service: Service, tenant: Tenant, shop: Shop) -> None:
    with closing(sign_in(service)) as person, visiting(service, shop.link()) as visit:
        with_wallet(visit, person.wallet)
        visit.page.get_by_role("button", name="Use a wallet").click()
        session = shop.session(visit.page)

        assert (session["user"]["id"], session["tenant"]["id"]) == (person.id, tenant.id)
        assert person.ok("GET", "/auth/session")["tenant"]["id"] == person.tenant
