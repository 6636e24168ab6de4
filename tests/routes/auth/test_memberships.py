"""Memberships: how many tenants a person makes, what a removed member keeps, and where they sign in."""

import uuid
from contextlib import closing

import asyncpg
import httpx

from tests.fixtures.callers import Client, Tenant
from tests.fixtures.forgery import claims_of
from tests.fixtures.people import Person, member, says, sign_in
from tests.fixtures.server import Service
from tests.routes.auth.factors import at_once, refusal

MADE = 20


def test_a_person_makes_at_most_twenty_tenants_even_with_parallel_requests(
    person: Person, as_platform: Client, tenant: Tenant
) -> None:
    # Tenants that others made them the owner of do not count.
    as_platform.ok("POST", f"/platform/tenants/{tenant.id}/members", {"userId": person.id, "role": "owner"})
    answers = at_once(25, lambda _: _make(person))
    made = [answer.json()["data"]["id"] for answer in answers if answer.status_code == 201]

    assert len(made) == MADE
    assert {refusal(answer) for answer in answers if answer.status_code != 201} == {(409, "quota_exceeded")}
    as_platform.ok("DELETE", f"/platform/tenants/{made[0]}")
    assert [_make(person).status_code for _ in range(2)] == [201, 409]


async def test_a_session_reads_one_membership_however_many_there_are(
    service: Service, person: Person, owner: asyncpg.Connection
) -> None:
    """The signer checks MACs on the loop on which it signs: those of the others are wrong, and it does not notice."""
    name = f"many-{uuid.uuid4().hex[:8]}-"
    await owner.execute(f"INSERT INTO tenants (id, name) SELECT '{name}' || n, 'Many' FROM generate_series(1, 1500) n")
    await owner.execute(
        f"INSERT INTO memberships SELECT '{name}' || n, $1, 'viewer', '', now() FROM generate_series(1, 1500) n",
        person.id,
    )

    person.take(person.refresh().json()["data"])
    person.switch(person.tenant)
    with closing(sign_in(service, person.wallet)) as again:
        assert again.tenant == person.tenant
        shown = again.ok("GET", "/auth/session")
    assert len(shown["memberships"]) == 1000
    assert shown["memberships"][0]["tenantId"] == person.tenant


async def test_the_tenant_of_a_session_is_shown_though_a_thousand_are_older(
    service: Service, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    with closing(member(service, tenant, "viewer")) as guest:
        name = f"many-{uuid.uuid4().hex[:8]}-"
        await owner.execute(f"INSERT INTO tenants (id, name) SELECT '{name}' || n, 'M' FROM generate_series(1, 1000) n")
        await owner.execute(
            f"INSERT INTO memberships SELECT '{name}' || n, $1, 'viewer', '', now() - interval '1 year' "
            "FROM generate_series(1, 1000) n",
            guest.id,
        )

        shown = guest.ok("GET", "/auth/session")

    assert shown["tenant"]["id"] == tenant.id
    assert shown["memberships"][-1]["tenantId"] == tenant.id


def test_a_removed_member_who_returns_must_sign_in_again(service: Service, tenant: Tenant, as_platform: Client) -> None:
    with closing(member(service, tenant, "owner")) as person:
        held = person.session["refreshToken"]
        # One that was made here, of a session that has gone elsewhere since.
        with closing(sign_in(service, person.wallet, tenant=tenant.id)) as elsewhere:
            token = elsewhere.session["token"]
            elsewhere.switch(f"personal-{person.id}")
            as_platform.ok("DELETE", f"/platform/tenants/{tenant.id}/members/{person.id}", {"force": True})
            _next_second(elsewhere)
            as_platform.ok("POST", f"/platform/tenants/{tenant.id}/members", {"userId": person.id, "role": "owner"})

            assert refusal(person.post("/auth/refresh", json={"refreshToken": held})) == (401, "refresh_token_invalid")
            assert refusal(person.get("/auth/session")) == (401, "session_revoked")
            of_before = {"Authorization": f"Bearer {token}"}
            assert refusal(elsewhere.get("/auth/session", headers=of_before)) == (401, "session_revoked")
            assert elsewhere.switch(tenant.id)["tenant"]["role"] == "owner"
        with closing(sign_in(service, person.wallet, tenant=tenant.id)) as again:
            assert again.role == "owner"


async def test_a_membership_that_is_given_again_has_another_mac(
    service: Service, tenant: Tenant, as_platform: Client, person: Person, owner: asyncpg.Connection
) -> None:
    macs = []
    for _ in range(2):
        as_platform.ok("POST", f"/platform/tenants/{tenant.id}/members", {"userId": person.id, "role": "owner"})
        macs.append(await owner.fetchval("SELECT mac FROM memberships WHERE tenant_id = $1", tenant.id))
        as_platform.ok("DELETE", f"/platform/tenants/{tenant.id}/members/{person.id}", {"force": True})

    assert macs[0] != macs[1]


def test_a_person_removed_from_their_own_tenant_is_a_member_of_none(service: Service, as_platform: Client) -> None:
    with closing(sign_in(service)) as person:
        as_platform.ok("DELETE", f"/platform/tenants/{person.tenant}/members/{person.id}", {"force": True})
        signed = person.wallet.sign_in(says(service, person.ok("GET", "/auth/nonce")["nonce"]))
        answer = person.post("/auth/verify", json={"message": signed.message, "signature": signed.signature})

    assert refusal(answer) == (403, "not_a_member")


def test_a_person_without_their_own_tenant_signs_in_to_another_one(
    service: Service, tenant: Tenant, as_platform: Client
) -> None:
    with closing(member(service, tenant, "viewer")) as person:
        as_platform.ok("DELETE", f"/platform/tenants/personal-{person.id}/members/{person.id}", {"force": True})
        with closing(sign_in(service, person.wallet)) as again:
            assert (again.tenant, again.role) == (tenant.id, "viewer")


def _make(person: Person) -> httpx.Response:
    body = {"id": f"made-{uuid.uuid4().hex}", "name": "Made", "apiKeyHash": f"a-key-of-its-own-{uuid.uuid4().hex}"}
    return person.post("/tenants", json=body)


def _next_second(person: Person) -> None:
    """Tokens say in whole seconds when they were made: refresh until one says another second."""
    began = claims_of(person.session["token"])["iat"]
    for _ in range(1000):
        if claims_of(person.take(person.refresh().json()["data"])["token"])["iat"] > began:
            return
    raise AssertionError("the service's clock stands still")
