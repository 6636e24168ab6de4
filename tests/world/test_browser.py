"""The browser of the tests makes and uses passkeys that the library accepts, and shows what a page complains of."""

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest
import webauthn
from playwright.sync_api import Error, Page
from webauthn.helpers import base64url_to_bytes, options_to_json
from webauthn.helpers.structs import AuthenticatorSelectionCriteria, ResidentKeyRequirement

from tests.outside.browser import Visit, browser_page

pytestmark = pytest.mark.long

PAGE = b"""<!doctype html><title>Passkeys</title><link rel="icon" href="data:,"><h1>Ready</h1><script>
const json = async (promise) => (await promise).toJSON();
const create = (it) => json(navigator.credentials.create(
  {publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(it)}));
const get = (it) => json(navigator.credentials.get(
  {publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(it)}));
</script>"""
CHALLENGE = b"c" * 32


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    class Connection(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(PAGE)

        def log_message(self, *_: object) -> None:
            """Stay quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Connection) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield f"http://localhost:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def create(page: Page) -> dict[str, Any]:
    options = webauthn.generate_registration_options(
        rp_id="localhost",
        rp_name="App",
        user_name="ann",
        user_id=b"person",
        challenge=CHALLENGE,
        authenticator_selection=AuthenticatorSelectionCriteria(resident_key=ResidentKeyRequirement.REQUIRED),
    )
    return page.evaluate("create", msgspec.json.decode(options_to_json(options)))


def get(page: Page) -> dict[str, Any]:
    options = webauthn.generate_authentication_options(rp_id="localhost", challenge=CHALLENGE)
    return page.evaluate("get", msgspec.json.decode(options_to_json(options)))


def complain(visit: Visit, heard: list[str]) -> None:
    visit.page.goto("/")
    visit.page.evaluate("console.error('so bad')")
    heard.extend(visit.faults)
    visit.page.evaluate("throw new Error('no such thing')")


async def test_a_loop_runs_before_the_browser() -> None:
    await asyncio.sleep(0)


def test_a_passkey_is_made_and_used(origin: str, tmp_path: Path) -> None:
    picture = tmp_path / "page.png"
    with browser_page(origin, picture) as visit:
        visit.page.goto("/")
        made = create(visit.page)
        used = get(visit.page)
        held = visit.authenticator.passkeys()
        faults = visit.faults

    known = webauthn.verify_registration_response(
        credential=made,
        expected_challenge=CHALLENGE,
        expected_rp_id="localhost",
        expected_origin=origin,
        require_user_verification=True,
    )
    proven = webauthn.verify_authentication_response(
        credential=used,
        expected_challenge=CHALLENGE,
        expected_rp_id="localhost",
        expected_origin=origin,
        credential_public_key=known.credential_public_key,
        credential_current_sign_count=known.sign_count,
        require_user_verification=True,
    )
    assert proven.new_sign_count > known.sign_count
    assert used["response"]["userHandle"] == webauthn.helpers.bytes_to_base64url(b"person")
    assert [(each["rpId"], each["signCount"]) for each in held] == [("localhost", proven.new_sign_count)]
    assert base64url_to_bytes(used["rawId"]) == known.credential_id
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert faults == []


async def test_a_loop_runs_after_the_browser() -> None:
    await asyncio.sleep(0)
    assert asyncio.get_running_loop().is_running()


def test_an_owner_who_is_not_recognised_is_refused(origin: str) -> None:
    with browser_page(origin) as visit:
        visit.page.goto("/")
        create(visit.page)
        visit.authenticator.verify_user(False)

        with pytest.raises(Error, match="NotAllowedError"):
            get(visit.page)

        visit.authenticator.verify_user(True)
        assert get(visit.page)["id"]


def test_a_lost_passkey_is_lost(origin: str) -> None:
    with browser_page(origin) as visit:
        visit.page.goto("/")
        create(visit.page)
        visit.authenticator.forget()

        with pytest.raises(Error, match="NotAllowedError"):
            get(visit.page)

        assert visit.authenticator.passkeys() == []


def test_a_pages_complaints_are_heard_and_a_failure_leaves_a_picture(origin: str, tmp_path: Path) -> None:
    picture = tmp_path / "page.png"
    heard: list[str] = []

    with pytest.raises(Error, match="no such thing"), browser_page(origin, picture) as visit:
        complain(visit, heard)

    assert heard == ["so bad"]
    assert picture.exists()


def test_no_other_machine_has_a_name(origin: str) -> None:
    with browser_page(origin) as visit, pytest.raises(Error, match="ERR_NAME_NOT_RESOLVED"):
        visit.page.goto("http://example.com/")
