"""Registration by app client: strangers become members who may read nothing of the tenant, as far as it says."""

from contextlib import closing
from typing import Any

import pytest

from tests.fixtures.callers import Tenant
from tests.fixtures.people import Person, fresh_address, member, sign_in
from tests.fixtures.server import Service
from tests.outside.smtp_server import Mailbox
from tests.routes.auth.factors import at_once, refusal
from tests.routes.auth.hosted import CLIENT, Application, come, newcomer, put_client


@pytest.fixture
def open_client(as_owner: Person) -> Person:
    """The owner of a tenant whose client registers people."""
    put_client(as_owner, allowRegistration=True)
    return as_owner


def roles(owner: Person) -> list[str]:
    return sorted(one["role"] for one in owner.ok("GET", f"/tenants/{owner.tenant}/members"))


def test_a_stranger_becomes_a_member_and_has_no_tenant_of_their_own(
    service: Service, tenant: Tenant, open_client: Person
) -> None:
    with closing(newcomer(service, tenant.id)) as person:
        session = person.session["tenant"]
        again = come(service, tenant.id, person.wallet).json()["data"]
        home = person.ok("GET", "/auth/session")["tenant"]

    assert (session["id"], session["role"], session.get("apiKey")) == (tenant.id, "member", None)
    assert again["user"]["id"] == person.id
    assert home["id"] == tenant.id
    assert roles(open_client) == ["member", "owner"]


def test_a_client_that_does_not_say_so_registers_nobody(service: Service, tenant: Tenant, as_owner: Person) -> None:
    put_client(as_owner)

    assert refusal(come(service, tenant.id))[0] == 403
    assert roles(as_owner) == ["owner"]


@pytest.mark.parametrize("switched", [{"enabled": False}, {"allowRegistration": False}])
def test_a_client_that_is_switched_off_registers_nobody(
    service: Service, tenant: Tenant, open_client: Person, switched: dict[str, Any]
) -> None:
    put_client(open_client, **{"allowRegistration": True, **switched})

    assert come(service, tenant.id).status_code in (400, 403)
    assert roles(open_client) == ["owner"]


def test_a_client_of_another_tenant_registers_nobody_here(
    service: Service, tenant: Tenant, open_client: Person, other_tenant: Tenant
) -> None:
    assert refusal(come(service, other_tenant.id)) == (400, "unknown_app_client")


def test_an_app_client_needs_its_tenant(service: Service, tenant: Tenant, open_client: Person) -> None:
    assert refusal(come(service, tenant.id, tenantId=None)) == (400, "tenant_needed")


def test_members_keep_the_role_that_they_have(service: Service, tenant: Tenant, open_client: Person) -> None:
    with closing(member(service, tenant, "developer")) as person:
        answer = come(service, tenant.id, person.wallet)

    assert answer.json()["data"]["tenant"]["role"] == "developer"


def test_no_more_people_register_than_the_client_says_however_many_come_at_once(
    service: Service, tenant: Tenant, open_client: Person
) -> None:
    put_client(open_client, allowRegistration=True, maxRegistered=3)

    answers = at_once(8, lambda _: come(service, tenant.id))

    assert sorted(one.status_code for one in answers)[:3] == [200, 200, 200]
    assert {refusal(one)[1] for one in answers if one.status_code != 200} == {"quota_exceeded"}
    assert roles(open_client) == ["member", "member", "member", "owner"]


def test_a_person_with_an_address_registers_too(
    service: Service, tenant: Tenant, open_client: Person, mailbox: Mailbox
) -> None:
    address = fresh_address()
    with Person(base_url=service.url) as person:
        person.ok("POST", "/auth/email/send", {"email": address})
        body = {"email": address, "code": mailbox.code_for(address), "tenantId": tenant.id, "appClientId": CLIENT}
        session = person.ok("POST", "/auth/email/verify", body)

    assert (session["tenant"]["id"], session["tenant"]["role"]) == (tenant.id, "member")


def test_somebody_known_elsewhere_becomes_a_member_and_keeps_the_rest(
    service: Service, tenant: Tenant, open_client: Person
) -> None:
    with closing(sign_in(service)) as person:
        session = come(service, tenant.id, person.wallet).json()["data"]
        own = person.ok("GET", "/auth/session")

    assert (session["user"]["id"], session["tenant"]["role"]) == (person.id, "member")
    assert own["tenant"]["id"] == person.tenant


def test_registration_is_in_the_tenants_log(service: Service, tenant: Tenant, open_client: Person) -> None:
    with closing(newcomer(service, tenant.id)) as person:
        rows = open_client.ok("GET", "/audit/events?action=membership.added")

    [row] = [one for one in rows["data"] if one["resource_id"] == person.id]
    assert person.id in row["actor_id"]
    assert row["metadata"] == {"role": "member", "clientId": CLIENT}


def test_a_registered_person_reads_nothing_of_the_tenant(service: Service, tenant: Tenant, open_client: Person) -> None:
    agent = tenant.agent()
    with (
        closing(newcomer(service, tenant.id)) as person,
        closing(Application(service, tenant.id).person(person)) as held,
    ):
        paths = (
            f"/tenants/{tenant.id}",
            f"/tenants/{tenant.id}/config",
            f"/tenants/{tenant.id}/members",
            f"/tenants/{tenant.id}/app-clients",
            f"/tenants/{tenant.id}/security-checklist",
            "/agents",
            f"/agents/{agent.id}",
            f"/agents/{agent.id}/policies",
            "/policy-templates",
            "/policy-sets",
            "/secrets",
            "/secrets/routes",
            "/approvals",
            "/audit/events",
            f"/vault/{agent.id}/transactions",
        )
        answers = {path: (one.get(path).status_code for one in (person, held)) for path in paths}

        assert {path: set(codes) for path, codes in answers.items()} == {path: {403} for path in paths}
