"""`ssoRequired`: members with a proven address in the domain get a session in the tenant by its own sign-on alone."""

from collections.abc import AsyncIterator
from contextlib import closing

import asyncpg
import httpx
import pytest

from tests.fixtures.callers import Client, Tenant, platform_client
from tests.fixtures.forgery import add_email
from tests.fixtures.people import Person, member, says, sign_in
from tests.fixtures.server import Service
from tests.outside.authenticator import Authenticator
from tests.outside.dns_server import DnsServer
from tests.outside.smtp_server import Mailbox
from tests.routes.auth.devices import decide, new_device
from tests.routes.tenants.domains import (
    add,
    audit_rows,
    fresh_domain,
    list_entry,
    path,
    provide,
    publish,
    verify_domain,
)

SENTENCE = "The tenant requires single sign-on"


def by_mail(client: Client, mailbox: Mailbox, address: str, tenant: str | None = None) -> httpx.Response:
    """Sign in with a code."""
    sent = mailbox.count(address)
    client.ok("POST", "/auth/email/send", {"email": address})
    body = {"email": address, "code": mailbox.code_for(address, after=sent)}
    return client.post("/auth/email/verify", json=body | ({"tenantId": tenant} if tenant else {}))


def demands_sign_on(answer: httpx.Response, tenant: str) -> bool:
    """Tell whether an answer says that sign-on is required, and where."""
    said = answer.json()["data"]
    return (
        answer.status_code == 403
        and said["code"] == "sso_required"
        and said["tenantId"] == tenant
        and [method["type"] for method in said["methods"]] == ["saml"]
        and said["methods"][0]["url"].endswith(f"/auth/saml/{tenant}/login")
    )


def lives(person: Person) -> bool:
    return person.get("/auth/session").status_code == 200


@pytest.fixture
def domain() -> str:
    return fresh_domain()


@pytest.fixture
async def worker(service: Service, tenant: Tenant, domain: str, owner: asyncpg.Connection) -> AsyncIterator[Person]:
    """A member of this test's tenant with an address in the domain, signed in there with a wallet."""
    person = member(service, tenant, "developer")
    await add_email(service, owner, person.id, f"worker@{domain}")
    yield person
    person.close()


@pytest.fixture
def forcing_tenant(service: Service, as_owner: Person, dns_server: DnsServer, domain: str) -> str:
    """The tenant, which makes people of the domain sign on."""
    provide(service, as_owner)
    verify_domain(as_owner, dns_server, domain, required=True)
    return as_owner.tenant


def test_a_code_by_mail(
    service: Service, worker: Person, forcing_tenant: str, as_nobody: Client, mailbox: Mailbox, domain: str
) -> None:
    assert demands_sign_on(by_mail(as_nobody, mailbox, f"worker@{domain}", forcing_tenant), forcing_tenant)

    assert by_mail(as_nobody, mailbox, f"worker@{domain}").json()["data"]["tenant"]["id"] != forcing_tenant


def test_a_wallet(service: Service, worker: Person, forcing_tenant: str, as_nobody: Client) -> None:
    signed = worker.wallet.sign_in(says(service, as_nobody.ok("GET", "/auth/nonce")["nonce"]))
    body = {"message": signed.message, "signature": signed.signature, "tenantId": forcing_tenant}

    assert demands_sign_on(as_nobody.post("/auth/verify", json=body), forcing_tenant)

    with closing(sign_in(service, worker.wallet)) as at_home:
        assert at_home.tenant != forcing_tenant


async def test_a_passkey(
    service: Service, worker: Person, as_owner: Person, dns_server: DnsServer, domain: str, owner: asyncpg.Connection
) -> None:
    device = Authenticator(f"http://localhost:{service.port}")
    credential = device.create(worker.ok("POST", "/auth/passkeys/register/options", {}))
    worker.ok("POST", "/auth/passkeys/register/verify", {"credential": credential})
    provide(service, as_owner)
    verify_domain(as_owner, dns_server, domain, required=True)

    shown_key = device.get(worker.post("/auth/passkeys/login/options", json={}).json()["data"])
    answer = worker.post("/auth/passkeys/login/verify", json={"credential": shown_key, "tenantId": as_owner.tenant})

    assert demands_sign_on(answer, as_owner.tenant)


async def test_living_sessions_end_once_it_counts_and_those_of_others_go_on(
    service: Service,
    tenant: Tenant,
    worker: Person,
    as_owner: Person,
    dns_server: DnsServer,
    *,
    domain: str,
    owner: asyncpg.Connection,
) -> None:
    colleague = member(service, tenant, "viewer")
    unproven = member(service, tenant, "viewer")
    await add_email(service, owner, unproven.id, f"unproven@{domain}", verified=False)
    await add_email(service, owner, as_owner.id, f"owner@{domain}")
    at_home = sign_in(service, worker.wallet)
    made = add(as_owner, domain, required=True)
    assert list_entry(as_owner, domain)["notCounting"] == "domain_pending"
    publish(dns_server, made)
    as_owner.ok("POST", path(as_owner, made, "verify"))
    assert list_entry(as_owner, domain)["notCounting"] == "no_provider"
    assert lives(worker)
    as_owner.ok("POST", f"/tenants/{tenant.id}/sso-domains", {"domain": domain, "ssoRequired": False})
    provide(service, as_owner)
    assert lives(worker)

    changed = as_owner.ok("POST", f"/tenants/{tenant.id}/sso-domains", {"domain": domain, "ssoRequired": True})

    assert (changed["counts"], changed["notCounting"]) == (True, None)
    assert [lives(one) for one in (worker, colleague, unproven, at_home, as_owner)] == [False, True, True, True, True]
    assert worker.refresh().json()["data"]["code"] == "refresh_token_invalid"
    assert audit_rows(as_owner, "sso.domain_changed")[0]["metadata"] == {"ssoRequired": True, "sessionsEnded": 1}
    for one in (colleague, unproven, at_home):
        one.close()


def test_verification_ends_them_too(
    service: Service, worker: Person, as_owner: Person, dns_server: DnsServer, domain: str
) -> None:
    provide(service, as_owner)

    verify_domain(as_owner, dns_server, domain, required=True)

    assert not lives(worker)
    assert audit_rows(as_owner, "sso.domain_verified")[0]["metadata"] == {"ssoRequired": True, "sessionsEnded": 1}


def test_a_provider_that_is_enabled_ends_them_too(
    service: Service, worker: Person, as_owner: Person, dns_server: DnsServer, domain: str
) -> None:
    provide(service, as_owner, enabled=False)
    verify_domain(as_owner, dns_server, domain, required=True)
    assert lives(worker)

    provide(service, as_owner)

    assert not lives(worker)


async def test_a_refresh(worker: Person, forcing_tenant: str, owner: asyncpg.Connection) -> None:
    """Of a session that began in the moment in which sign-on began to count."""
    await owner.execute(
        "UPDATE sessions SET revoked_at = NULL WHERE user_id = $1 AND tenant_id = $2", worker.id, forcing_tenant
    )

    assert demands_sign_on(worker.refresh(), forcing_tenant)
    # Nothing was used up.
    assert demands_sign_on(worker.refresh(), forcing_tenant)


def test_a_change_of_tenant(service: Service, worker: Person, forcing_tenant: str) -> None:
    with closing(sign_in(service, worker.wallet)) as at_home:
        assert demands_sign_on(at_home.post("/auth/session/tenant", json={"tenantId": forcing_tenant}), forcing_tenant)
        assert lives(at_home)
        at_home.switch(at_home.tenant)


def test_a_device_that_was_let_in_elsewhere(
    service: Service, worker: Person, forcing_tenant: str, as_nobody: Client
) -> None:
    device = new_device(as_nobody, forcing_tenant)
    with closing(sign_in(service, worker.wallet)) as at_home:
        assert decide(at_home, device).is_success

    answer = device.poll()

    assert (answer.status_code, answer.json()["error"]) == (400, "access_denied")
    assert answer.json()["error_description"].startswith(SENTENCE)
    assert device.error() == "access_denied"


async def test_owners_pass(
    service: Service, as_owner: Person, forcing_tenant: str, domain: str, owner: asyncpg.Connection
) -> None:
    await add_email(service, owner, as_owner.id, f"owner@{domain}")

    with closing(sign_in(service, as_owner.wallet, tenant=forcing_tenant)) as again:
        assert again.tenant == forcing_tenant
        again.take(again.refresh().json()["data"])
    with platform_client(service) as platform:
        body = {"userId": as_owner.id, "role": "admin", "force": True}
        platform.ok("POST", f"/platform/tenants/{forcing_tenant}/members", body)

    assert demands_sign_on(as_owner.refresh(), forcing_tenant)


@pytest.mark.parametrize(
    "why", ["pending", "not required", "no provider", "provider disabled", "removed", "another domain"]
)
async def test_a_domain_that_does_not_count_demands_nothing(
    service: Service,
    worker: Person,
    as_owner: Person,
    dns_server: DnsServer,
    domain: str,
    owner: asyncpg.Connection,
    *,
    why: str,
) -> None:
    if why != "no provider":
        provide(service, as_owner, enabled=why != "provider disabled")
    if why == "pending":
        add(as_owner, domain, required=True)
    else:
        given = f"x.{domain}" if why == "another domain" else domain
        made = verify_domain(as_owner, dns_server, given, required=why != "not required")
        if why == "removed":
            as_owner.ok("DELETE", path(as_owner, made))

    with closing(sign_in(service, worker.wallet, tenant=as_owner.tenant)) as again:
        assert again.refresh().status_code == 200


async def test_members_of_another_tenant_are_none_of_its_business(
    service: Service, worker: Person, forcing_tenant: str, other_tenant: Tenant
) -> None:
    with platform_client(service) as platform:
        platform.ok("POST", f"/platform/tenants/{other_tenant.id}/members", {"userId": worker.id, "role": "viewer"})

    with closing(sign_in(service, worker.wallet, tenant=other_tenant.id)) as elsewhere:
        assert elsewhere.tenant == other_tenant.id


SPOILED = {
    "no demand": "UPDATE sso_domains SET sso_required = false WHERE domain = $1",
    "not verified": "UPDATE sso_domains SET verified_at = NULL WHERE domain = $1",
    "address not proven": "UPDATE identities SET verified = false WHERE subject = 'worker@' || $1",
}


@pytest.mark.parametrize("what", SPOILED)
async def test_a_row_that_was_changed_lets_nobody_in(
    service: Service,
    worker: Person,
    forcing_tenant: str,
    as_nobody: Client,
    domain: str,
    owner: asyncpg.Connection,
    *,
    what: str,
) -> None:
    await owner.execute(SPOILED[what], domain)
    signed = worker.wallet.sign_in(says(service, as_nobody.ok("GET", "/auth/nonce")["nonce"]))
    body = {"message": signed.message, "signature": signed.signature, "tenantId": forcing_tenant}

    answer = as_nobody.post("/auth/verify", json=body)

    assert (answer.status_code, answer.json()["data"]["code"]) == (503, "sealed_value_tampered")
    await owner.execute("DELETE FROM sso_domains WHERE domain = $1", domain)
    await owner.execute("DELETE FROM identities WHERE subject = 'worker@' || $1", domain)


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_a_second_factor_is_no_way_around_it(
    service: Service,
    tenant: Tenant,
    as_owner: Person,
    dns_server: DnsServer,
    owner: asyncpg.Connection,
    domain: str,
    *,
    elsewhere: bool,
) -> None:
    # A session that lives on: an owner's, who is one no more, or one that was in another tenant when it began to count.
    with closing(member(service, tenant, "admin" if elsewhere else "owner", mfa=True)) as somebody:
        await add_email(service, owner, somebody.id, f"somebody@{domain}")
        kept = somebody.headers["Authorization"]
        if elsewhere:
            somebody.switch(f"personal-{somebody.id}")
        provide(service, as_owner)
        verify_domain(as_owner, dns_server, domain, required=True)
        if not elsewhere:
            with platform_client(service) as platform:
                body = {"userId": somebody.id, "role": "admin"}
                platform.ok("POST", f"/platform/tenants/{tenant.id}/members", body)
        somebody.headers["Authorization"] = kept
        stepped = somebody.post("/auth/mfa/recovery-codes/step-up", json={"code": somebody.recovery_codes[0]})
        enrolled = somebody.post("/auth/mfa/totp/enroll", json={})

    assert demands_sign_on(stepped, tenant.id)
    assert enrolled.status_code in (403, 409)
