"""Signing in at identity providers, on the pages where people sign in, in a real browser.

Each test is a plain function, because the browser's client runs a loop of its own on the test's thread.
"""

import secrets
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from lxml import etree
from playwright.sync_api import expect

from tests.browser.test_device_page import enter, heading, review, visiting
from tests.fixtures.callers import Client, Tenant
from tests.fixtures.people import Person, by_mail, sign_in
from tests.fixtures.saml_sign_on import SamlTenant, inflate
from tests.fixtures.server import Service
from tests.fixtures.sign_on import verified_domain
from tests.outside.dns_server import DnsServer
from tests.outside.oauth_providers import OAuthProviders
from tests.outside.oidc_server import OidcServer, running_oidc_server
from tests.outside.saml_answers import form_value
from tests.outside.smtp_server import Mailbox
from tests.routes.auth.devices import new_device
from tests.routes.platform.invited import invite

pytestmark = pytest.mark.long


@pytest.fixture
def owner(service: Service) -> Iterator[Person]:
    """Of a tenant, with a second factor shown just now."""
    with closing(sign_in(service)) as person:
        person.enrol_totp()
        yield person


@pytest.fixture
def domain(owner: Person, dns_server: DnsServer) -> str:
    return verified_domain(owner, dns_server)


@pytest.fixture
def oidc() -> Iterator[OidcServer]:
    with running_oidc_server() as server:
        yield server


def with_oidc(owner: Person, server: OidcServer, domain: str) -> None:
    """Let the owner's tenant sign people in at an OIDC provider."""
    server.client_secret = None
    provider = {
        "id": "idp",
        "enabled": True,
        "issuer": server.issuer,
        "clientId": server.client_id,
        "audience": [server.client_id],
        "allowJitProvisioning": True,
    }
    owner.ok("PUT", f"/tenants/{owner.tenant}/oidc-providers", {"providers": [provider]})
    # The person who comes has an address in the tenant's domain.
    server.person = {
        "sub": secrets.token_hex(8),
        "email": f"ann-{secrets.token_hex(4)}@{domain}",
        "email_verified": True,
    }


def leftovers(page: Any) -> Any:
    return page.evaluate("[document.cookie, localStorage.length, sessionStorage.length, location.search]")


def test_a_device_is_let_in_by_an_organisation_with_oidc(
    service: Service, as_nobody: Client, owner: Person, domain: str, oidc: OidcServer
) -> None:
    with_oidc(owner, oidc, domain)
    device = new_device(as_nobody, owner.tenant)
    with visiting(service) as visit:
        enter(visit.page, device.code["user_code"])
        heading(visit.page, "Sign in")
        visit.page.get_by_label("E-mail address").fill(f"anybody@{domain}")
        visit.page.get_by_role("button", name="Sign in with your organisation").click()
        assert review(visit.page)["Code on the device"] == device.code["user_code"]
        left = leftovers(visit.page)
        visit.page.get_by_role("button", name="Approve").click()
        heading(visit.page, "The device is signed in")

    assert left == ["", 0, 0, ""]
    assert device.poll().json()["data"]["tenant"]["id"] == owner.tenant


def test_an_address_of_no_organisation_is_told(service: Service, as_nobody: Client, owner: Person) -> None:
    device = new_device(as_nobody, owner.tenant)
    with visiting(service) as visit:
        enter(visit.page, device.code["user_code"])
        visit.page.get_by_label("E-mail address").fill("anybody@nobody.example.com")
        visit.page.get_by_role("button", name="Sign in with your organisation").click()

        expect(visit.page.get_by_role("alert")).to_contain_text("No organisation signs people in for")


def test_a_refusal_at_the_provider_is_said_and_another_way_is_open(
    service: Service, as_nobody: Client, owner: Person, domain: str, oidc: OidcServer
) -> None:
    with_oidc(owner, oidc, domain)
    oidc.callback_changes = {"code": None, "error": "access_denied"}
    device = new_device(as_nobody, owner.tenant)
    with visiting(service) as visit:
        enter(visit.page, device.code["user_code"])
        visit.page.get_by_label("E-mail address").fill(f"anybody@{domain}")
        visit.page.get_by_role("button", name="Sign in with your organisation").click()
        heading(visit.page, "Sign in")

        expect(visit.page.get_by_role("alert")).not_to_be_empty()
        assert leftovers(visit.page) == ["", 0, 0, ""]


def test_somebody_elses_way_back_signs_nobody_in(service: Service) -> None:
    """O38: a link with a code that another browser got."""
    with visiting(service, "/device?code=exc_another&state=another") as visit:
        heading(visit.page, "Which code does your device show?")
        assert leftovers(visit.page) == ["", 0, 0, ""]


def test_an_invitation_is_accepted_by_an_account_at_google(
    service: Service, tenant: Tenant, mailbox: Mailbox, oauth: OAuthProviders
) -> None:
    with closing(by_mail(service, mailbox)) as person:
        token = invite(service, tenant, person.address)["token"]
        oauth.google.person = {"sub": secrets.token_hex(8), "email": person.address, "email_verified": True}
        with visiting(service, f"/invitation#{token}") as visit:
            visit.page.get_by_role("button", name="Use Google").click()
            heading(visit.page, "Join this organisation?")
            assert (token in visit.page.url, leftovers(visit.page)) == (False, ["", 0, 0, ""])


class _Idp(BaseHTTPRequestHandler):
    """An identity provider with SAML whose page posts its answer, as theirs do."""

    tenant: SamlTenant

    def do_GET(self) -> None:
        asked = parse_qs(urlsplit(self.path).query)
        flow = self.tenant.flow()
        flow.request_id = etree.fromstring(inflate(asked["SAMLRequest"][0])).get("ID")
        answer = flow.answer()
        value = form_value(answer.sign(self.tenant.key))
        page = (
            f'<form method="post" action="{answer.acs_url}"><input name="SAMLResponse" value="{value}">'
            f'<input name="RelayState" value="{asked["RelayState"][0]}"></form>'
            "<script>document.forms[0].submit()</script>"
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def saml_page(tenant: SamlTenant) -> Iterator[str]:
    """Serve the page by a name of the service's own site: over plain HTTP no browser sends the cookie from another."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Idp", (_Idp,), {"tenant": tenant}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://localhost:{server.server_port}/sso"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_device_is_let_in_by_an_organisation_with_saml(
    service: Service, as_nobody: Client, owner: Person, domain: str
) -> None:
    tenant = SamlTenant(service, owner, domain)
    device = new_device(as_nobody, owner.tenant)
    with saml_page(tenant) as address, visiting(service) as visit:
        saved = tenant.put(idpSsoUrl=address)
        assert saved.status_code == 200, saved.text
        enter(visit.page, device.code["user_code"])
        visit.page.get_by_label("E-mail address").fill(f"anybody@{domain}")
        visit.page.get_by_role("button", name="Sign in with your organisation").click()
        review(visit.page)
        visit.page.get_by_role("button", name="Approve").click()
        heading(visit.page, "The device is signed in")

    assert device.poll().json()["data"]["tenant"]["id"] == owner.tenant


def test_a_popup_goes_the_whole_way_too(
    service: Service, as_nobody: Client, owner: Person, domain: str, oidc: OidcServer
) -> None:
    """O38."""
    with_oidc(owner, oidc, domain)
    device = new_device(as_nobody, owner.tenant)
    with visiting(service) as visit:
        with visit.page.expect_popup() as opened:
            visit.page.evaluate("() => { window.open('/device', '_blank', 'popup,width=500,height=700'); }")
        popup = opened.value
        enter(popup, device.code["user_code"])
        popup.get_by_label("E-mail address").fill(f"anybody@{domain}")
        popup.get_by_role("button", name="Sign in with your organisation").click()
        review(popup)
        popup.get_by_role("button", name="Approve").click()
        heading(popup, "The device is signed in")

    assert device.poll().json()["data"]["tenant"]["id"] == owner.tenant
