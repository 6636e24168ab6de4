"""Discovery of the sign-on by an address: the same shape for every domain, and nothing of any person."""

import asyncpg
import pytest

from tests.fixtures.callers import Client
from tests.fixtures.deployments import partner_of
from tests.fixtures.people import Person
from tests.fixtures.server import Service
from tests.outside.dns_server import DnsServer
from tests.outside.smtp_server import Mailbox
from tests.routes.tenants.domains import add, fresh_domain, provide, verify_domain

SHAPE = {"domain", "tenantId", "ssoRequired", "available", "methods"}


def discover(client: Client, address: str) -> dict[str, object]:
    found: dict[str, object] = client.ok("POST", "/auth/sso/discover", {"email": address})
    assert set(found) == SHAPE
    return found


def unknown(domain: str) -> dict[str, object]:
    return {"domain": domain, "tenantId": None, "ssoRequired": False, "available": False, "methods": []}


def test_a_domain_that_nobody_has_and_a_pending_one_are_unknown(as_nobody: Client, as_owner: Person) -> None:
    domain = fresh_domain()
    pending = add(as_owner, required=True)["domain"]

    assert discover(as_nobody, f"a@{domain}") == unknown(domain)
    assert discover(as_nobody, f"A@{pending.upper()}") == unknown(pending)


async def test_a_verified_domain_names_its_tenant_and_its_providers(
    service: Service, as_nobody: Client, as_owner: Person, dns_server: DnsServer, owner: asyncpg.Connection
) -> None:
    domain = verify_domain(as_owner, dns_server, required=True)["domain"]
    nobody_yet = {**unknown(domain), "tenantId": as_owner.tenant}

    assert discover(as_nobody, f"a@{domain}") == nobody_yet

    provide(service, as_owner, enabled=False)

    assert discover(as_nobody, f"a@{domain}") == nobody_yet

    provide(service, as_owner)
    url = f"http://localhost:{service.port}/auth/saml/{as_owner.tenant}/login"

    assert discover(as_nobody, f"a@{domain}") == {
        "domain": domain,
        "tenantId": as_owner.tenant,
        "ssoRequired": True,
        "available": True,
        "methods": [{"type": "saml", "url": url}],
    }
    # A subdomain is another domain.
    assert discover(as_nobody, f"a@x.{domain}") == unknown(f"x.{domain}")


def test_no_answer_tells_whether_there_is_such_a_person(
    as_nobody: Client, as_owner: Person, dns_server: DnsServer, mailbox: Mailbox
) -> None:
    domain = verify_domain(as_owner, dns_server)["domain"]
    as_nobody.ok("POST", "/auth/email/send", {"email": f"known@{domain}"})
    code = mailbox.code_for(f"known@{domain}")
    as_nobody.ok("POST", "/auth/email/verify", {"email": f"known@{domain}", "code": code})

    assert discover(as_nobody, f"known@{domain}") == discover(as_nobody, f"nobody@{domain}")


@pytest.mark.parametrize("address", ["nobody", "a@localhost", "a@b@example.com", "=?utf-8?q?a?=@example.com"])
def test_a_text_that_is_no_address_is_refused(as_nobody: Client, address: str) -> None:
    answer = as_nobody.post("/auth/sso/discover", json={"email": address})

    assert (answer.status_code, answer.json()["data"]["code"]) == (400, "bad_email_address")


async def test_a_row_that_was_changed_is_refused(
    as_nobody: Client, as_owner: Person, owner: asyncpg.Connection
) -> None:
    domain = add(as_owner)["domain"]
    await owner.execute("UPDATE sso_domains SET verified_at = now() WHERE domain = $1", domain)

    answer = as_nobody.post("/auth/sso/discover", json={"email": f"a@{domain}"})

    assert (answer.status_code, answer.json()["data"]["code"]) == (503, "sealed_value_tampered")
    await owner.execute("DELETE FROM sso_domains WHERE domain = $1", domain)


def test_it_has_a_limit_of_its_own(service: Service) -> None:
    with (
        partner_of(service, SERVICE_RATE_LIMIT_DISCOVER="2") as narrow,
        Client(base_url=narrow.url, timeout=30) as client,
    ):
        answers = [client.post("/auth/sso/discover", json={"email": "a@example.com"}) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [200, 200, 429]
