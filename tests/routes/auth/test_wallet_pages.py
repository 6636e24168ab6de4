"""Wallets that sign in at a page of an app client: where, who, and what such a session may not do."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import asyncpg
import httpx
import pytest

from tests.fixtures.callers import Tenant, platform_client
from tests.fixtures.eventually import eventually
from tests.fixtures.people import Person, member, says, sign_in
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import greet
from tests.outside.wallet import Wallet
from tests.routes.test_cors import fresh_origin, put

PAGE = "page"


@pytest.fixture
def origin(as_owner: Person) -> str:
    """An origin that an app client of this test's tenant lists."""
    listed = fresh_origin()
    put(as_owner, PAGE, listed)
    return listed


@pytest.fixture
def at_page(service: Service, tenant: Tenant, origin: str) -> Iterator[Person]:
    """A viewer of the tenant who signed in at the page."""
    with closing(member(service, tenant, "viewer")) as person:
        shown = person.wallet
        person.headers.pop("Authorization")
        answer = signs_in(service, person, shown, origin, tenant.id)
        assert answer.status_code == 200, answer.text
        person.take(answer.json()["data"])
        yield person


def signs_in(
    service: Service,
    client: Person,
    wallet: Wallet,
    origin: str,
    tenant: str | None,
    *,
    client_id: str | None = PAGE,
    header: str | None = "same",
    **said: Any,
) -> httpx.Response:
    """Sign in as the page on this origin does."""
    nonce = client.ok("GET", "/auth/nonce")["nonce"]
    message = {"domain": origin.partition("://")[2], "uri": f"{origin}/login", **said}
    signed = wallet.sign_in(says(service, nonce, **message))
    body = {"message": signed.message, "signature": signed.signature, "tenantId": tenant, "clientId": client_id}
    headers = {"Origin": origin if header == "same" else header} if header else {}
    return client.post("/auth/verify", json={k: v for k, v in body.items() if v is not None}, headers=headers)


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["data"]["code"]


def test_a_member_signs_in_at_the_page_and_stays_in_its_tenant(
    service: Service, tenant: Tenant, at_page: Person, origin: str
) -> None:
    seen = at_page.ok("GET", "/auth/session")
    assert (seen["tenant"]["id"], seen["tenant"]["role"]) == (tenant.id, "viewer")
    # The person has a tenant of their own, too.
    assert [one["tenantId"] for one in seen["memberships"]] == [tenant.id]
    assert at_page.get("/agents", headers={"Origin": origin}).headers["Access-Control-Allow-Origin"] == origin

    for again in range(2):
        refused = [
            at_page.post("/auth/session/tenant", json={"tenantId": f"personal-{at_page.id}"}),
            at_page.get("/auth/sessions"),
            at_page.delete("/auth/sessions/00000000-0000-4000-8000-000000000000"),
            at_page.post("/auth/mfa/totp/enroll", json={}),
            at_page.get("/auth/passkeys"),
            at_page.post("/auth/passkeys/register/options", json={}),
            at_page.get("/auth/device/request?user_code=BCDF-GHJK"),
            at_page.post("/auth/device/verify", json={"userCode": "BCDF-GHJK", "approve": True}),
            at_page.post("/tenants", json={"id": "taken-along", "name": "T"}),
        ]
        assert [code(one) for one in refused] == [(403, "not_for_pages")] * len(refused), again
        # Refreshing makes nothing else of it.
        at_page.take(at_page.refresh().json()["data"])
    at_page.ok("POST", "/auth/logout")
    assert at_page.get("/agents").status_code == 401


def test_the_workers_refuse_a_pages_session_by_themselves(service: Service, at_page: Person) -> None:
    proof = {"kind": "session", "value": at_page.session["token"]}
    asked: dict[str, dict[str, Any]] = {
        "SwitchTenant": {"tenant": f"personal-{at_page.id}"},
        "EndSession": {"session": "00000000-0000-4000-8000-000000000000"},
        "EnrolTotp": {},
        "NewPasskeyChallenge": {"purpose": "register"},
        "RegisterPasskey": {"credential": {}},
        "NewRecoveryCodes": {},
        "LookAtDevice": {"user_code": "BCDF-GHJK"},
        "DecideDevice": {"user_code": "BCDF-GHJK", "approve": True},
        "CreateTenant": {"id": "t", "name": "T"},
    }
    with greet(service) as wire:
        answers = {name: wire.ask(name, body, proof) for name, body in asked.items()}

    assert {name: answer.get("code") for name, answer in answers.items()} == dict.fromkeys(asked, "not_for_pages")


FALSE: dict[str, dict[str, str]] = {
    "our own": {"domain": "localhost", "uri": "http://localhost/"},
    "another scheme": {"uri": "http://HOST:8443/"},
    "another scheme in the opening": {"scheme": "http"},
    "another host in the address": {"uri": "https://HOST.example.org:8443/"},
    "another host in the opening": {"domain": "x.HOST:8443"},
    "no port": {"uri": "https://HOST/", "domain": "HOST"},
    "another port": {"uri": "https://HOST:8444/", "domain": "HOST:8444"},
    "a name before the host": {"uri": "https://a@HOST:8443/", "domain": "a@HOST:8443"},
    "another client": {"client_id": "other"},
}


@pytest.mark.parametrize("changed", FALSE.values(), ids=FALSE)
def test_a_message_for_any_other_place_is_refused(
    service: Service, tenant: Tenant, at_page: Person, origin: str, changed: dict[str, str]
) -> None:
    host = origin.removeprefix("https://").removesuffix(":8443")
    said: dict[str, Any] = {name: value.replace("HOST", host) for name, value in changed.items()}

    answer = signs_in(service, at_page, at_page.wallet, origin, tenant.id, header=None, **said)

    assert code(answer) == (401, "siwe_domain_mismatch")


def test_a_page_is_named_by_its_tenant_and_client(
    service: Service, tenant: Tenant, other_tenant: Tenant, at_page: Person, origin: str
) -> None:
    def outcome_of(**changed: Any) -> tuple[int, str]:
        given = {"tenant": tenant.id, **changed}
        return code(signs_in(service, at_page, at_page.wallet, origin, **given))

    assert outcome_of(header="https://elsewhere.example.com") == (401, "siwe_domain_mismatch")
    assert outcome_of(tenant=other_tenant.id) == (401, "siwe_domain_mismatch")
    assert outcome_of(client_id=None) == (401, "siwe_domain_mismatch")
    assert outcome_of(tenant=None) == (400, "tenant_needed")


def test_a_tenant_gets_no_session_of_another_ones_people(service: Service, tenant: Tenant, origin: str) -> None:
    # An owner lists a page of theirs, and somebody who is a member of other tenants only is lured there.
    with closing(sign_in(service)) as lured:
        assert code(signs_in(service, lured, lured.wallet, origin, tenant.id)) == (403, "not_a_member")
        assert code(signs_in(service, lured, lured.wallet, origin, lured.tenant)) == (401, "siwe_domain_mismatch")
    # Nobody is made a user there either.
    with closing(Person(base_url=service.url, timeout=30)) as fresh:
        assert code(signs_in(service, fresh, Wallet(), origin, tenant.id)) == (403, "not_a_member")


@pytest.mark.parametrize("change", ["disabled", "delisted", "deleted", "removed"])
def test_a_session_ends_with_its_page(
    service: Service, tenant: Tenant, as_owner: Person, at_page: Person, origin: str, change: str
) -> None:
    assert at_page.get("/agents").status_code == 200
    if change == "disabled":
        put(as_owner, PAGE, origin, enabled=False)
    elif change == "delisted":
        put(as_owner, PAGE, fresh_origin())
    elif change == "deleted":
        as_owner.ok("DELETE", f"/tenants/{tenant.id}/app-clients/{PAGE}")
    else:
        with platform_client(service) as platform:
            platform.ok("DELETE", f"/platform/tenants/{tenant.id}/members/{at_page.id}")

    eventually(lambda: at_page.get("/agents").status_code, 401, seconds=3)
    with greet(service) as wire:
        told = wire.ask("Vouch", {}, {"kind": "session", "value": at_page.session["token"]})
    assert told["type"] == "Failed"
    assert at_page.refresh().status_code == 401 if change != "removed" else True
    if change in ("disabled", "delisted"):
        assert code(signs_in(service, at_page, at_page.wallet, origin, tenant.id)) == (401, "siwe_domain_mismatch")


async def test_a_planted_origin_opens_no_session(
    service: Service, tenant: Tenant, at_page: Person, origin: str, owner: asyncpg.Connection
) -> None:
    planted = fresh_origin()
    plant = "UPDATE app_clients SET document = replace(document, $2, $3) WHERE tenant_id = $1"
    await owner.execute(plant, tenant.id, origin, planted)

    answer = signs_in(service, at_page, at_page.wallet, planted, tenant.id)

    assert code(answer) == (401, "siwe_domain_mismatch")


@pytest.mark.parametrize("column", ["client_id", "origin", "tenant_id"])
async def test_a_session_cannot_be_loosened_in_its_row(
    service: Service, other_tenant: Tenant, at_page: Person, owner: asyncpg.Connection, column: str
) -> None:
    changed = {"client_id": None, "origin": "https://elsewhere.example.com", "tenant_id": other_tenant.id}[column]
    session = at_page.ok("GET", "/auth/session")["id"]
    await owner.execute(f"UPDATE sessions SET {column} = $2 WHERE id = $1", session, changed)

    assert at_page.refresh().status_code >= 400
    assert at_page.get("/auth/sessions").status_code in (401, 403)
