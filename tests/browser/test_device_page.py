"""The page where a person lets a device in, in a real browser. RFC 8628.

Each test is a plain function, because the browser's client runs a loop of its own on the test's thread.
"""

import asyncio
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import asyncpg
import pytest
from playwright.sync_api import Error, Page, expect

from tests.fixtures.callers import Client
from tests.fixtures.eventually import eventually
from tests.fixtures.people import Person, fresh_address, member, sign_in
from tests.fixtures.postgres import Database
from tests.fixtures.server import EVM_CHAIN, Service
from tests.outside.browser import Visit, browser_page
from tests.outside.smtp_server import Mailbox
from tests.outside.wallet import Wallet
from tests.routes.auth.devices import Device, new_device

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
# Like the wallets that people have: addresses in lower case, text as hex.
WALLET = """window.ethereum = {request: ({method, params}) => window.askWallet(method, params ?? [])};"""


@pytest.fixture
def reader(service: Service, as_nobody: Client, mailbox: Mailbox) -> Iterator[Person]:
    """Somebody who signs in by e-mail; `address` is where."""
    address = fresh_address()
    with Person(base_url=service.url, timeout=30) as person:
        person.ok("POST", "/auth/email/send", {"email": address})
        code = mailbox.code_for(address)
        person.take(person.ok("POST", "/auth/email/verify", {"email": address, "code": code}))
        person.address = address
        yield person


@pytest.fixture
def device(as_nobody: Client, reader: Person) -> Device:
    """A device that waits for the tenant of the one who reads mails."""
    return new_device(as_nobody, reader.tenant)


@contextmanager
def visiting(service: Service, path: str = "/device") -> Iterator[Visit]:
    """The page in a fresh browser; that it complained of nothing is part of every test."""
    with browser_page(f"http://localhost:{service.port}") as visit:
        visit.page.add_init_script(
            "addEventListener('securitypolicyviolation', (event) => console.error(event.violatedDirective))"
        )
        visit.page.goto(path)
        yield visit
        assert [fault for fault in visit.faults if "Failed to load resource" not in fault] == []


def heading(page: Page, text: str) -> None:
    """The step that is shown, which has the focus."""
    expect(page.get_by_role("heading", level=2)).to_have_text(text)
    expect(page.get_by_role("heading", level=2)).to_be_focused()


def enter(page: Page, code: str) -> None:
    page.get_by_label("Code on the device").fill(code)
    page.get_by_role("button", name="The codes match").click()


def sign_in_by_email(page: Page, address: str, mailbox: Mailbox) -> None:
    """Ask for a code, read it, enter it."""
    heading(page, "Sign in")
    seen = mailbox.count(address)
    page.get_by_label("E-mail address").fill(address)
    page.get_by_role("button", name="Send me a code").click()
    page.get_by_label("Code from the e-mail").fill(mailbox.code_for(address, after=seen))
    page.get_by_role("button", name="Sign in", exact=True).click()


def review(page: Page) -> dict[str, str]:
    """Read from the page what the device asks for."""
    heading(page, "Let this device in?")
    terms, values = page.locator("dt").all_inner_texts(), page.locator("dd").all_inner_texts()
    return dict(zip(terms, values, strict=True))


def sessions_of(person: Person) -> list[str]:
    """List the sign-in methods of a person's sessions."""
    return sorted(session["provider"] for session in person.ok("GET", "/auth/sessions"))


def test_a_device_is_let_in_by_email(service: Service, device: Device, reader: Person, mailbox: Mailbox) -> None:
    with visiting(service) as visit:
        enter(visit.page, device.code["user_code"].lower().replace("-", " "))
        sign_in_by_email(visit.page, reader.address, mailbox)
        asked = review(visit.page)
        assert sessions_of(reader) == ["email", "email"]
        visit.page.get_by_role("button", name="Approve").click()
        heading(visit.page, "The device is signed in")
        kept = visit.page.evaluate("[document.cookie, localStorage.length, sessionStorage.length]")

    assert asked["Code on the device"] == device.code["user_code"]
    assert asked["Organisation"] == f"Personal ({reader.tenant})"
    assert asked["Asked from"] == "127.0.0.1"
    assert asked["It will act as"] == reader.address
    assert device.poll().json()["data"]["user"]["id"] == reader.id
    # The page's own session has ended, and nothing of it is left in the browser.
    assert sessions_of(reader) == ["device", "email"]
    assert kept == ["", 0, 0]


def test_a_device_is_let_in_by_a_passkey(service: Service, as_nobody: Client) -> None:
    with closing(sign_in(service)) as person, visiting(service) as visit:
        device = new_device(as_nobody, person.tenant)
        given = {"options": person.ok("POST", "/auth/passkeys/register/options", {}), "token": person.session["token"]}
        assert visit.page.evaluate(REGISTER, given)
        enter(visit.page, device.code["user_code"])
        heading(visit.page, "Sign in")
        visit.page.get_by_role("button", name="Use a passkey").click()
        assert review(visit.page)["It will act as"] == person.wallet.address
        visit.page.get_by_role("button", name="Approve").click()
        heading(visit.page, "The device is signed in")

        assert device.poll().json()["data"]["user"]["id"] == person.id
        assert sessions_of(person) == ["device", "siwe"]


def test_a_person_without_a_passkey_here_gets_a_clear_message(service: Service, as_nobody: Client) -> None:
    with closing(sign_in(service)) as person, visiting(service) as visit:
        device = new_device(as_nobody, person.tenant)
        enter(visit.page, device.code["user_code"])
        visit.page.get_by_role("button", name="Use a passkey").click()

        expect(visit.page.get_by_role("alert")).to_have_text(
            "No passkey was used. Try again, or sign in in another way."
        )


def with_wallet(visit: Visit, wallet: Wallet, chain: int = EVM_CHAIN) -> None:
    """Give the browser a wallet, and load the page again."""

    def ask(method: str, params: list[str]) -> Any:
        if method == "personal_sign":
            return wallet.sign(bytes.fromhex(params[0].removeprefix("0x")).decode())
        return {"eth_requestAccounts": [wallet.address.lower()], "eth_chainId": hex(chain)}[method]

    visit.page.expose_function("askWallet", ask)
    visit.page.add_init_script(WALLET)
    visit.page.reload()


def test_a_device_is_let_in_by_a_wallet(service: Service, as_nobody: Client) -> None:
    with closing(sign_in(service)) as person, visiting(service) as visit:
        device = new_device(as_nobody, person.tenant)
        with_wallet(visit, person.wallet)
        enter(visit.page, device.code["user_code"])
        visit.page.get_by_role("button", name="Use a wallet").click()
        assert review(visit.page)["It will act as"] == person.wallet.address
        visit.page.get_by_role("button", name="Approve").click()
        heading(visit.page, "The device is signed in")

        assert device.poll().json()["data"]["user"]["id"] == person.id


def test_the_key_of_who_signs_in_for_the_first_time_is_shown(service: Service, as_nobody: Client) -> None:
    wallet = Wallet()
    with visiting(service) as visit:
        page = visit.page
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        with_wallet(visit, wallet)
        enter(page, "BBBB-BBBB")
        expect(page.locator("#made")).to_be_hidden()
        page.get_by_role("button", name="Use a wallet").click()
        # No device waits for a tenant that was made just now; the key is there all the same.
        heading(page, "Which code does your device show?")
        expect(page.locator("#made")).to_contain_text("Its API key, shown this once:")
        key = page.locator("#made-key").inner_text()
        tenant = as_nobody.ok("GET", "/agents", **{"X-Service-Key": key})
        assert tenant == []

        # One waits for it now, and lets its owner read the key to the end.
        with closing(sign_in(service, wallet)) as person:
            device = new_device(as_nobody, person.tenant)
            expect(page.locator("#made")).to_contain_text(person.tenant)
        enter(page, device.code["user_code"])
        review(page)
        page.get_by_role("button", name="Approve").click()
        heading(page, "The device is signed in")
        expect(page.locator("#made-key")).to_have_text(key)
        page.get_by_role("button", name="Copy the key").click()
        expect(page.get_by_role("status")).to_have_text("The key was copied.")
        assert page.evaluate("navigator.clipboard.readText()") == key


def test_a_key_that_the_browser_does_not_copy_is_selected(service: Service) -> None:
    with visiting(service) as visit:
        page = visit.page
        page.add_init_script("navigator.clipboard.writeText = () => Promise.reject(new Error('no'))")
        with_wallet(visit, Wallet())
        enter(page, "BBBB-BBBB")
        page.get_by_role("button", name="Use a wallet").click()
        heading(page, "Which code does your device show?")
        page.get_by_role("button", name="Copy the key").click()

        expect(page.get_by_role("alert")).to_contain_text("copy it yourself")
        assert page.evaluate("getSelection().toString()").strip() == page.locator("#made-key").inner_text()


def test_a_returning_person_is_shown_no_api_key(service: Service, as_nobody: Client) -> None:
    with closing(sign_in(service)) as person, visiting(service) as visit:
        device = new_device(as_nobody, person.tenant)
        with_wallet(visit, person.wallet)
        enter(visit.page, device.code["user_code"])
        visit.page.get_by_role("button", name="Use a wallet").click()
        review(visit.page)

        expect(visit.page.locator("#made")).to_be_hidden()


def test_a_wallet_on_an_unknown_network_is_said_in_plain_words(service: Service, as_nobody: Client) -> None:
    with closing(sign_in(service)) as person, visiting(service) as visit:
        device = new_device(as_nobody, person.tenant)
        with_wallet(visit, person.wallet, chain=987_654)
        enter(visit.page, device.code["user_code"])
        visit.page.get_by_role("button", name="Use a wallet").click()

        expect(visit.page.get_by_role("alert")).to_contain_text("Switch its network")


def test_addresses_are_spelled_as_the_standard_has_it(service: Service) -> None:
    wallets = [Wallet().address for _ in range(30)]
    with visiting(service) as visit:
        spelled = visit.page.evaluate(
            "async (all) => { const {checksum} = await import('/sign-in/checksum.js'); return all.map(checksum); }",
            [address.lower() for address in wallets],
        )

    assert spelled == wallets


def test_a_device_is_turned_away(service: Service, device: Device, reader: Person, mailbox: Mailbox) -> None:
    with visiting(service) as visit:
        enter(visit.page, device.code["user_code"])
        sign_in_by_email(visit.page, reader.address, mailbox)
        review(visit.page)
        visit.page.get_by_role("button", name="Deny").click()
        heading(visit.page, "The device was turned away")

    assert device.error() == "access_denied"
    assert sessions_of(reader) == ["email"]


def test_everything_works_without_a_mouse(service: Service, device: Device, reader: Person, mailbox: Mailbox) -> None:
    with visiting(service, f"/device?user_code={device.code['user_code']}") as visit:
        page, keys = visit.page, visit.page.keyboard
        heading(page, "Which code does your device show?")
        press(page, "Tab", "Tab", "Enter")
        heading(page, "Sign in")
        reach(page, "E-mail address")
        keys.type(reader.address)
        seen = mailbox.count(reader.address)
        keys.press("Enter")
        expect(page.get_by_label("Code from the e-mail")).to_be_focused()
        keys.type(mailbox.code_for(reader.address, after=seen))
        keys.press("Enter")
        review(page)
        press(page, "Tab")
        expect(page.get_by_role("button", name="Approve")).to_be_focused()
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        press(page, "Enter")
        heading(page, "The device is signed in")

    assert device.poll().status_code == 200


def press(page: Page, *names: str) -> None:
    for name in names:
        page.keyboard.press(name)


def reach(page: Page, label: str) -> None:
    """Tab until the field is reached."""
    field = page.get_by_label(label)
    for _ in range(6):
        press(page, "Tab")
        if field.evaluate("(it) => it === document.activeElement"):
            return
    pytest.fail(f"{label} is not reached by keyboard")


def test_a_code_that_nobody_shows_is_asked_for_again(
    service: Service, device: Device, reader: Person, mailbox: Mailbox
) -> None:
    with visiting(service) as visit:
        enter(visit.page, "short")
        expect(visit.page.get_by_role("alert")).to_contain_text("eight letters and digits")
        expect(visit.page.get_by_label("Code on the device")).to_be_focused()
        enter(visit.page, "BBBB-BBBB")
        sign_in_by_email(visit.page, reader.address, mailbox)
        heading(visit.page, "Which code does your device show?")
        expect(visit.page.get_by_role("alert")).to_contain_text("No device that waits for you shows this code.")
        # A person who is signed in is not asked to sign in again.
        enter(visit.page, device.code["user_code"])
        assert review(visit.page)["Code on the device"] == device.code["user_code"]


def test_a_wrong_code_from_the_mail_can_be_corrected(
    service: Service, device: Device, reader: Person, mailbox: Mailbox
) -> None:
    with visiting(service) as visit:
        enter(visit.page, device.code["user_code"])
        seen = mailbox.count(reader.address)
        visit.page.get_by_label("E-mail address").fill(reader.address)
        visit.page.get_by_role("button", name="Send me a code").click()
        right = mailbox.code_for(reader.address, after=seen)
        field = visit.page.get_by_label("Code from the e-mail")
        field.fill(f"{(int(right) + 1) % 1_000_000:06d}")
        press(visit.page, "Enter")
        expect(visit.page.get_by_role("alert")).to_contain_text("wrong or too old")
        field.fill(right)
        press(visit.page, "Enter")
        review(visit.page)


def test_a_code_that_expires_meanwhile_is_asked_for_again(
    service: Service, device: Device, reader: Person, mailbox: Mailbox, database: Database
) -> None:
    with visiting(service) as visit:
        enter(visit.page, device.code["user_code"])
        sign_in_by_email(visit.page, reader.address, mailbox)
        review(visit.page)
        let_expire(database, device)
        visit.page.get_by_role("button", name="Approve").click()
        heading(visit.page, "Which code does your device show?")
        expect(visit.page.get_by_role("alert")).to_contain_text("older than ten minutes")

    assert device.error() == "expired_token"


def let_expire(database: Database, device: Device) -> None:
    """As the database's owner, on a thread that has no loop yet."""

    async def move() -> None:
        connection = await asyncpg.connect(database.owner_url)
        code = device.code["user_code"]
        await connection.execute("UPDATE device_codes SET expires_at = now() WHERE user_code = $1", code)
        await connection.close()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(move())).result()


def test_a_session_that_ends_meanwhile_is_asked_for_again(
    service: Service, device: Device, reader: Person, mailbox: Mailbox
) -> None:
    with visiting(service) as visit:
        enter(visit.page, device.code["user_code"])
        sign_in_by_email(visit.page, reader.address, mailbox)
        review(visit.page)
        for session in reader.ok("GET", "/auth/sessions"):
            if not session["current"]:
                reader.ok("DELETE", f"/auth/sessions/{session['id']}")
        visit.page.get_by_role("button", name="Approve").click()
        heading(visit.page, "Sign in")
        expect(visit.page.get_by_role("alert")).to_contain_text("Your sign-in has ended.")

    assert device.error() == "authorization_pending"


def test_leaving_in_the_middle_signs_the_person_out(
    service: Service, device: Device, reader: Person, mailbox: Mailbox
) -> None:
    with visiting(service) as visit:
        enter(visit.page, device.code["user_code"])
        sign_in_by_email(visit.page, reader.address, mailbox)
        review(visit.page)
        visit.page.goto("/device")

        assert eventually(lambda: sessions_of(reader) == ["email"])


HOSTILE = ['"><img src=x onerror=alert(1)>', "</title><script>alert(1)</script>", "{{user_code}}&lt;"]


@pytest.mark.parametrize("given", HOSTILE)
def test_a_hostile_code_in_the_address_is_shown_as_text(service: Service, given: str) -> None:
    with visiting(service) as visit:
        visit.page.on("dialog", lambda dialog: pytest.fail(dialog.message))
        visit.page.evaluate("(code) => { location.href = '/device?user_code=' + encodeURIComponent(code) }", given)
        expect(visit.page.get_by_label("Code on the device")).to_have_value(given[:32])
        assert visit.page.locator("img, body script").count() == 0


def test_hostile_names_are_shown_as_text(service: Service, as_nobody: Client, as_platform: Client) -> None:
    name, tenant = "<img src=x onerror=alert(1)> & <b>bold</b>", f"hostile-{uuid.uuid4().hex[:8]}"
    as_platform.ok("POST", "/platform/tenants", {"id": tenant, "name": name})
    as_nobody.headers["User-Agent"] = "<script>alert(1)</script>"
    with closing(member(service, tenant, "owner", mfa=True)) as person, visiting(service) as visit:
        person.ok("PUT", f"/tenants/{tenant}/app-clients", {"id": "tv-app", "name": name})
        device = new_device(as_nobody, tenant, client_id="tv-app")
        with_wallet(visit, person.wallet)
        enter(visit.page, device.code["user_code"])
        visit.page.get_by_role("button", name="Use a wallet").click()
        asked = review(visit.page)

        assert asked["Organisation"] == f"{name} ({tenant})"
        assert asked["Application"] == f"{name} (tv-app)"
        assert asked["It calls itself"] == "<script>alert(1)</script>"
        assert visit.page.locator("img, b, body script").count() == 0


@pytest.fixture
def other_site() -> Iterator[str]:
    """A site of somebody else, with a page that frames whatever its query names."""

    class Connection(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            framed = self.path.partition("?")[2]
            self.wfile.write(f"<!doctype html><title>x</title><iframe src='{framed}'></iframe>".encode())

        def log_message(self, *_: object) -> None:
            """Stay quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Connection) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_no_other_site_frames_the_page(service: Service, other_site: str) -> None:
    with browser_page(other_site) as visit:
        # What the browser says of it and what it shows instead come in their own time; it fails here if one never does.
        with visit.page.expect_console_message(lambda said: "frame-ancestors" in said.text):
            visit.page.goto(f"/?http://localhost:{service.port}/device")
        visit.page.frames[1].wait_for_url("chrome-error://chromewebdata/")


def test_another_site_cannot_act_for_a_person_who_has_the_page_open(service: Service, other_site: str) -> None:
    with browser_page(other_site) as visit:
        visit.page.goto("/")

        with pytest.raises(Error, match="Failed to fetch"):
            visit.page.evaluate(
                "(url) => fetch(url, {method: 'POST', headers: {'Content-Type': 'application/json'}, body: '{}'})",
                f"http://localhost:{service.port}/auth/device/verify",
            )


def test_without_scripts_the_page_says_what_it_needs(service: Service) -> None:
    with browser_page(f"http://localhost:{service.port}") as visit:
        context = visit.page.context.browser.new_context(java_script_enabled=False)
        page = context.new_page()
        page.goto(f"http://localhost:{service.port}/device")

        expect(page.locator("noscript p")).to_be_visible()
        expect(page.locator("noscript p")).to_contain_text("cannot work without JavaScript")
        assert page.locator("section:visible").count() == 0
        context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_a_small_phone(
    service: Service, device: Device, reader: Person, mailbox: Mailbox, scheme: Any
) -> None:
    with visiting(service) as visit:
        page = visit.page
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": 360, "height": 640})
        fits(page)
        enter(page, device.code["user_code"])
        heading(page, "Sign in")
        fits(page)
        sign_in_by_email(page, reader.address, mailbox)
        review(page)
        fits(page)


def fits(page: Page) -> None:
    """Nothing stands out to the side, and what is pressed is large enough for a thumb."""
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    heights = page.locator("button:visible").evaluate_all("(all) => all.map((one) => one.offsetHeight)")
    assert min(heights) >= 44
