"""A tenant's web page on an origin of its own, in a real browser: it signs in and calls; a page elsewhere cannot."""

import threading
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from playwright.sync_api import Error, Page

from tests.fixtures.callers import Tenant
from tests.fixtures.people import Person, member, says
from tests.fixtures.server import Service
from tests.outside.browser import browser_page
from tests.routes.test_cors import put

pytestmark = pytest.mark.long

CALL = """async ([url, method, headers, body]) => {
  const answer = await fetch(url, {method, headers, body: body === null ? undefined : JSON.stringify(body)});
  return {status: answer.status, data: (await answer.json()).data, id: answer.headers.get("X-Request-Id")};
}"""


class Empty(BaseHTTPRequestHandler):
    """A web page with nothing on it."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>A page</title>")

    def log_message(self, *_said: Any) -> None:
        """Say nothing."""


@contextmanager
def site() -> Iterator[str]:
    """The origin of a page elsewhere."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Empty) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_address[1]}"
        server.shutdown()


def call(page: Page, service: Service, method: str, path: str, body: Any = None, **headers: str) -> dict[str, Any]:
    """Call the API from the page's own script, and return what it reads of the answer."""
    sent = headers | ({"Content-Type": "application/json"} if body is not None else {})
    found: dict[str, Any] = page.evaluate(CALL, [f"{service.url}{path}", method, sent, body])
    return found


def signed_in(page: Page, service: Service, person: Person, origin: str, tenant: str) -> dict[str, Any]:
    nonce = call(page, service, "GET", "/auth/nonce")["data"]["nonce"]
    said = says(service, nonce, domain=origin.partition("://")[2], uri=f"{origin}/")
    signed = person.wallet.sign_in(said)
    body = {"message": signed.message, "signature": signed.signature, "tenantId": tenant, "clientId": "page"}
    return call(page, service, "POST", "/auth/verify", body)


def test_a_page_signs_in_with_a_wallet_and_calls_and_another_one_cannot(
    service: Service, tenant: Tenant, as_owner: Person
) -> None:
    with (
        site() as origin,
        site() as elsewhere,
        closing(member(service, tenant, "developer", mfa=True)) as person,
        browser_page(origin) as visit,
    ):
        page = visit.page
        put(as_owner, "page", origin)
        page.goto("/")
        session = signed_in(page, service, person, origin, tenant.id)
        assert session["status"] == 200, session
        shown = {"Authorization": f"Bearer {session['data']['token']}"}
        request = uuid.uuid4().hex
        read = call(page, service, "GET", "/agents", **shown, **{"X-Request-Id": request})
        refused = call(page, service, "POST", "/agents", {"id": "made", "name": "M"}, **shown)
        unknown = call(page, service, "GET", "/agents", Authorization="Bearer nothing")

        page.goto(elsewhere)
        for path, headers in (("/chains", {}), ("/auth/nonce", {}), ("/agents", shown)):
            with pytest.raises(Error, match="Failed to fetch"):
                call(page, service, "GET", path, **headers)

    assert (read["status"], read["data"], read["id"]) == (200, [], request)
    # In a browser, an error is an answer too: the second factor is wanted in this session.
    assert (refused["status"], refused["data"]["code"]) == (403, "mfa_required")
    assert (unknown["status"], unknown["data"]["code"]) == (401, "bad_token")
