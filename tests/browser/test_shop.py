"""The application of docs/users-with-wallets.md: `custody.js` in a page of its own, its users and their wallets."""

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_device_page import REGISTER, sign_in_by_email
from tests.fixtures.callers import ADDRESS, Tenant
from tests.fixtures.pages import Reader, programs_of
from tests.fixtures.people import Person, fresh_address, member
from tests.fixtures.server import Service
from tests.outside.browser import browser_page
from tests.outside.evm_node import EvmNode
from tests.outside.processes import PROJECT
from tests.outside.smtp_server import Mailbox

pytestmark = pytest.mark.long

GUIDE = "docs/users-with-wallets.md"
FOLDER = PROJECT / "sdk" / "browser"
WIDTHS = (360, 1280)
LEFT = "JSON.parse(Object.entries(sessionStorage).find(([name]) => name.endsWith(' left'))?.[1] ?? 'null')"
ASK = """async (settings) => {
  const { custody } = await import("/custody.js");
  sessionStorage.setItem(`custody ${settings.service} ${settings.tenant}/shop`, '{"token": "somebodys"}');
  return custody(settings).wallet().then(String, (problem) => problem.name);
}"""


class _Files(SimpleHTTPRequestHandler):
    """The folder of the application, and the settings beside it."""

    settings = b"{}"

    def do_GET(self) -> None:
        if not self.path.endswith("/settings.json"):
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(self.settings)

    def log_message(self, *_said: Any) -> None:
        """Say nothing."""


@contextmanager
def serving(settings: dict[str, str]) -> Iterator[str]:
    """The origin of the application."""
    handler = partial(type("Files", (_Files,), {"settings": msgspec.json.encode(settings)}), directory=str(FOLDER))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture
def shop(service: Service, tenant: Tenant, as_owner: Person, tmp_path: Path) -> Iterator[str]:
    """The address of the application, whose tenant was set up by the commands of the guide."""
    settings = {"service": f"http://localhost:{service.port}", "tenant": tenant.id, "client": "shop"}
    with serving(settings) as origin:
        reader = Reader(tmp_path, service, SESSION=as_owner.session["token"], tenant=tenant.id, origin=origin)
        client, rules = [program for language, program in programs_of(GUIDE) if language == "sh"]
        assert reader.paste(client) == "shop\n"
        assert reader.paste(rules).splitlines() == ["Everybody", "false"]
        yield f"{origin}/example/index.html"


@contextmanager
def using(address: str) -> Iterator[Page]:
    """The application in a fresh browser, which complains of nothing but requests that are refused."""
    with browser_page(address) as visit:
        visit.page.goto(address)
        yield visit.page
        assert [fault for fault in visit.faults if not any(one in fault for one in ("Failed to load", "CORS"))] == []


def pay(page: Page, wei: str) -> None:
    """Ask for a payment."""
    page.get_by_label("Pay to").fill(ADDRESS)
    page.get_by_label("Amount in wei").fill(wei)
    page.get_by_role("button", name="Pay").click()


def leave(page: Page) -> None:
    """Go to sign in, and come back without."""
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url("**/sign-in?*")
    page.go_back()
    expect(page.get_by_role("button", name="Sign in", exact=True)).to_be_visible()


def departure(page: Page) -> Any:
    """The state and verifier with which the page was left."""
    return page.evaluate(LEFT)


def test_the_guide_has_two_programs() -> None:
    assert [language for language, _ in programs_of(GUIDE)] == ["sh", "sh"]


def test_the_script_is_as_small_as_it_says_and_asks_for_nothing_else() -> None:
    script = (FOLDER / "custody.js").read_text()

    assert len(script.encode()) <= 5 * 1024
    assert "import " not in script


def test_a_new_user_signs_in_and_pays_with_a_wallet_of_their_own(
    tenant: Tenant, shop: str, mailbox: Mailbox, evm_node: EvmNode, tmp_path: Path
) -> None:
    with using(shop) as page:
        page.get_by_role("button", name="Sign in", exact=True).click()
        sign_in_by_email(page, address := fresh_address(), mailbox)
        expect(page.locator("#who")).to_have_text(address)
        expect(page.locator("#address")).to_contain_text("0x")
        wallet = page.locator("#address").inner_text()
        assert page.url == shop
        page.get_by_role("button", name="Sign a greeting").click()
        expect(page.locator("#said")).to_contain_text("Signed: 0x")
        page.reload()
        expect(page.locator("#address")).to_have_text(wallet)
        evm_node.fund(wallet)
        pay(page, "1")
        expect(page.locator("#said")).to_contain_text("Paid: 0x")
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 800})
            page.screenshot(path=tmp_path / f"shop-{width}.png", full_page=True)
            assert page.evaluate("document.documentElement.scrollWidth") == width
        pay(page, "200000000000000000")
        expect(page.locator("#said")).to_contain_text("would exceed the limit")
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("button", name="Sign in", exact=True)).to_be_visible()
        kept = page.evaluate("sessionStorage.length")

    [agent] = tenant.ok("GET", "/agents")
    assert agent["walletAddresses"]["evm"] == wallet
    assert kept == 0


def test_a_passkey_is_the_factor_that_a_tenant_wants_for_wallets(
    service: Service, tenant: Tenant, as_owner: Person, shop: str
) -> None:
    as_owner.ok("PUT", f"/tenants/{tenant.id}/config", {"authAbuseConfig": {"mfa": {}}})
    with closing(member(service, tenant, "member")) as person, using(shop) as page:
        page.goto(f"http://localhost:{service.port}/ready")
        given = {"options": person.ok("POST", "/auth/passkeys/register/options", {}), "token": person.session["token"]}
        assert page.evaluate(REGISTER, given)
        page.goto(shop)
        page.get_by_role("button", name="Sign in", exact=True).click()
        page.get_by_role("button", name="Use a passkey").click()
        expect(page.locator("#address")).to_contain_text("0x")
        page.get_by_role("button", name="Sign a greeting").click()
        expect(page.locator("#said")).to_contain_text("Signed: 0x")


def test_an_answer_that_nobody_asked_for_is_not_taken_and_words_are_text(service: Service, shop: str) -> None:
    at = f"http://localhost:{service.port}"
    with using(shop) as page:
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        planted = {"code": "of somebody else", "state": "a guess", "iss": at}
        page.goto(f"{shop}?{urlencode(planted)}")
        expect(page.get_by_role("button", name="Sign in", exact=True)).to_be_visible()
        leave(page)
        for changed in ({"iss": "https://evil.example"}, {"state": "a guess"}):
            page.goto(f"{shop}?{urlencode(planted | {'state': departure(page)['state']} | changed)}")
            expect(page.get_by_role("button", name="Sign in", exact=True)).to_be_visible()
        assert [url for url in asked if "exchange" in url] == []
        refused = {"state": departure(page)["state"], "iss": at, "error_description": "<img src=x onerror=alert(1)>"}
        page.goto(f"{shop}?{urlencode(refused)}")
        expect(page.locator("#said")).to_have_text("<img src=x onerror=alert(1)>")

        assert page.locator("#said *").count() == 0
        assert departure(page) is None


def test_a_session_that_was_ended_elsewhere_leaves_nothing_in_the_page(
    tenant: Tenant, as_owner: Person, shop: str, mailbox: Mailbox
) -> None:
    with using(shop) as page:
        page.get_by_role("button", name="Sign in", exact=True).click()
        sign_in_by_email(page, fresh_address(), mailbox)
        expect(page.locator("#address")).to_contain_text("0x")
        [user] = [one for one in as_owner.ok("GET", f"/tenants/{tenant.id}/members") if one["role"] == "member"]
        as_owner.ok("DELETE", f"/tenants/{tenant.id}/members/{user['userId']}")
        page.get_by_role("button", name="Sign a greeting").click()
        expect(page.locator("#said")).not_to_be_empty()
        expect(page.get_by_role("button", name="Sign in", exact=True)).to_be_visible()
        kept = page.evaluate("sessionStorage.length")

    assert kept == 0


def test_a_page_elsewhere_is_sent_no_code_and_reads_nothing(service: Service, tenant: Tenant, shop: str) -> None:
    settings = {"service": f"http://localhost:{service.port}", "tenant": tenant.id, "client": "shop"}
    with serving(settings) as origin, using(f"{origin}/example/index.html") as page:
        page.get_by_role("button", name="Sign in", exact=True).click()
        page.wait_for_url("**/sign-in?*")
        expect(page.get_by_role("button", name="Use a passkey")).to_have_count(0)
        page.goto(f"{origin}/example/index.html")
        read = page.evaluate(ASK, settings)

    assert read == "TypeError"
