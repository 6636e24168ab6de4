"""Invitations: made by the operator, accepted once, by the person who has proven the address."""

import datetime as dt
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import asyncpg
import httpx
import pytest

from identity.people.persons import IDENTITY_MAC, Known
from tests.fixtures.callers import Client, Tenant
from tests.fixtures.forgery import identity_sealer_of
from tests.fixtures.people import Person, by_mail, fresh_address
from tests.fixtures.server import Service
from tests.outside.smtp_server import Mailbox
from tests.routes.platform.invited import accept, invite, let_expire, path_of, role_in, states


def outcome(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["data"].get("code", "")


@pytest.fixture
def reader(service: Service, mailbox: Mailbox) -> Iterator[Person]:
    """Somebody who signed in by mail; `address` is where."""
    with closing(by_mail(service, mailbox)) as person:
        yield person


# ---- what works


def test_an_invitation_is_made_accepted_and_listed(
    service: Service, as_platform: Client, tenant: Tenant, reader: Person
) -> None:
    answer = as_platform.post(path_of(tenant), json={"email": reader.address, "role": "developer"})
    made = answer.json()["data"]
    accepted = accept(reader, tenant, made["token"])

    assert answer.status_code == 201
    assert made["emailSent"] is False
    assert (made["invitation"]["status"], made["invitation"]["role"]) == ("pending", "developer")
    assert accepted.status_code == 200
    said = accepted.json()["data"]
    assert (said["tenantId"], said["userId"], said["role"]) == (tenant.id, reader.id, "developer")
    assert reader.switch(tenant.id)["tenant"]["role"] == "developer"
    (listed,) = as_platform.ok("GET", path_of(tenant))["invitations"]
    assert (listed["status"], listed["acceptedBy"]) == ("accepted", reader.id)
    assert "token" not in listed


def test_it_works_for_seven_days_unless_told_otherwise(service: Service, tenant: Tenant) -> None:
    usual = invite(service, tenant)["invitation"]
    short = invite(service, tenant, expiresInSeconds=300)["invitation"]

    assert [seconds_of(one) for one in (usual, short)] == [7 * 86_400, 300]


def seconds_of(invitation: dict[str, Any]) -> float:
    begun, ends = (dt.datetime.fromisoformat(invitation[name]) for name in ("createdAt", "expiresAt"))
    return (ends - begun).total_seconds()


def test_a_revoked_one_works_no_more(service: Service, as_platform: Client, tenant: Tenant, reader: Person) -> None:
    made = invite(service, tenant, reader.address)
    revoked = as_platform.delete(path_of(tenant, made["invitation"]["id"]))
    again = as_platform.delete(path_of(tenant, made["invitation"]["id"]))

    assert revoked.json()["data"] == {"id": made["invitation"]["id"], "status": "revoked"}
    assert outcome(again) == (404, "invitation_absent")
    assert outcome(accept(reader, tenant, made["token"])) == (410, "invitation_revoked")
    assert role_in(reader, tenant) is None


def test_an_accepted_one_cannot_be_revoked(
    service: Service, as_platform: Client, tenant: Tenant, reader: Person
) -> None:
    made = invite(service, tenant, reader.address)
    accept(reader, tenant, made["token"])

    answer = as_platform.delete(path_of(tenant, made["invitation"]["id"]))

    assert outcome(answer) == (409, "invitation_accepted")
    assert role_in(reader, tenant) == "viewer"


def test_without_a_token_the_address_decides_only_where_the_tenant_says_so(
    service: Service, tenant: Tenant, as_owner: Person, reader: Person
) -> None:
    invite(service, tenant, reader.address, role="billing")
    before = accept(reader, tenant)
    as_owner.ok("PUT", f"/tenants/{tenant.id}/config", {"authAbuseConfig": {"invitations": {"requireToken": False}}})
    after = accept(reader, tenant)

    assert outcome(before) == (400, "invitation_token_required")
    assert (after.status_code, after.json()["data"]["role"]) == (200, "billing")


def test_without_a_token_a_stranger_to_the_tenant_stays_out(
    service: Service, tenant: Tenant, as_owner: Person, reader: Person
) -> None:
    as_owner.ok("PUT", f"/tenants/{tenant.id}/config", {"authAbuseConfig": {"invitations": {"requireToken": False}}})
    invite(service, tenant)

    assert outcome(accept(reader, tenant)) == (404, "invitation_invalid")


# ---- I1: role and life


@pytest.mark.parametrize("role", ["owner", "Admin", "root", "", None])
def test_other_roles_are_refused(as_platform: Client, tenant: Tenant, role: Any) -> None:
    answer = as_platform.post(path_of(tenant), json={"email": fresh_address(), "role": role})

    assert answer.status_code == 400
    assert "role" in answer.json()["error"]


@pytest.mark.parametrize("seconds", [299, 2_592_001, "300", 300.5, -1])
def test_other_lives_are_refused(as_platform: Client, tenant: Tenant, seconds: Any) -> None:
    body = {"email": fresh_address(), "role": "viewer", "expiresInSeconds": seconds}

    answer = as_platform.post(path_of(tenant), json=body)

    assert answer.status_code == 400
    assert "expiresInSeconds" in answer.json()["error"]


# ---- I2: the token


def test_a_token_is_of_one_tenant(service: Service, tenant: Tenant, other_tenant: Tenant, reader: Person) -> None:
    token = invite(service, tenant, reader.address)["token"]

    assert outcome(accept(reader, other_tenant, token)) == (404, "invitation_invalid")
    assert outcome(accept(reader, "absent", token)) == (404, "invitation_invalid")
    assert accept(reader, tenant, token).status_code == 200


def test_a_token_works_once(service: Service, tenant: Tenant, reader: Person, as_platform: Client) -> None:
    token = invite(service, tenant, reader.address)["token"]
    assert accept(reader, tenant, token).status_code == 200
    as_platform.ok("DELETE", f"/platform/tenants/{tenant.id}/members/{reader.id}", {})

    assert outcome(accept(reader, tenant, token)) == (409, "invitation_accepted")
    assert role_in(reader, tenant) is None


def test_a_changed_token_is_no_token(service: Service, tenant: Tenant, reader: Person) -> None:
    token = invite(service, tenant, reader.address)["token"]

    changed = [token[:-1], token + "A", token.swapcase(), token.split("/")[1], f"{tenant.id}/inv_"]
    assert {outcome(accept(reader, tenant, other)) for other in changed} == {(404, "invitation_invalid")}
    assert outcome(accept(reader, tenant, token + "\n"))[0] == 400


async def test_it_expires_by_the_databases_clock(
    service: Service, owner: asyncpg.Connection, tenant: Tenant, reader: Person
) -> None:
    made = invite(service, tenant, reader.address)
    await let_expire(service, owner, made["invitation"]["id"])

    assert outcome(accept(reader, tenant, made["token"])) == (410, "invitation_expired")
    assert states(service, tenant) == [(reader.address, "expired")]


async def test_an_expired_one_makes_room_and_stays_expired(
    service: Service, owner: asyncpg.Connection, tenant: Tenant, reader: Person
) -> None:
    first = invite(service, tenant, reader.address)
    await let_expire(service, owner, first["invitation"]["id"])
    second = invite(service, tenant, reader.address)

    assert states(service, tenant) == [(reader.address, "pending"), (reader.address, "expired")]
    assert outcome(accept(reader, tenant, first["token"])) == (410, "invitation_expired")
    assert accept(reader, tenant, second["token"]).status_code == 200


def test_of_two_who_accept_at_once_one_does(service: Service, mailbox: Mailbox, tenant: Tenant, reader: Person) -> None:
    token = invite(service, tenant, reader.address)["token"]
    with closing(by_mail(service, mailbox, reader.address)) as twin, ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda one: accept(one, tenant, token), (reader, twin)))

    assert sorted(answer.status_code for answer in answers) == [200, 409]
    assert role_in(reader, tenant) == "viewer"


@pytest.mark.parametrize(
    "change",
    ["role = 'admin'", "email = 'thief@example.com'", "expires_at = expires_at + interval '1 day'"],
)
async def test_a_row_that_identity_did_not_write_lets_nobody_in(
    service: Service, owner: asyncpg.Connection, tenant: Tenant, reader: Person, change: str
) -> None:
    made = invite(service, tenant, reader.address)
    await owner.execute(f"UPDATE invitations SET {change} WHERE id = $1", made["invitation"]["id"])

    assert outcome(accept(reader, tenant, made["token"])) == (503, "sealed_value_tampered")
    assert role_in(reader, tenant) is None


async def test_a_used_one_is_not_pending_again_by_a_change_of_its_row(
    service: Service, owner: asyncpg.Connection, tenant: Tenant, as_platform: Client, reader: Person
) -> None:
    made = invite(service, tenant, reader.address)
    accept(reader, tenant, made["token"])
    as_platform.ok("DELETE", f"/platform/tenants/{tenant.id}/members/{reader.id}", {})
    change = "UPDATE invitations SET status = 'pending', accepted_by = NULL, ended_at = NULL WHERE id = $1"
    await owner.execute(change, made["invitation"]["id"])

    assert outcome(accept(reader, tenant, made["token"])) == (503, "sealed_value_tampered")


# ---- I3: who accepts


def test_another_address_is_refused(service: Service, mailbox: Mailbox, tenant: Tenant, reader: Person) -> None:
    tokens = [invite(service, tenant, f"other-{reader.address}"), invite(service, tenant, plus(reader.address))]

    assert {outcome(accept(reader, tenant, made["token"])) for made in tokens} == {(403, "email_mismatch")}


def plus(address: str) -> str:
    name, _, domain = address.partition("@")
    return f"{name}+x@{domain}"


def test_the_case_of_an_address_does_not_matter(service: Service, tenant: Tenant, reader: Person) -> None:
    made = invite(service, tenant, reader.address.upper())

    assert made["invitation"]["email"] == reader.address
    assert accept(reader, tenant, made["token"]).status_code == 200


def test_a_person_without_a_proven_address_is_refused(service: Service, tenant: Tenant, person: Person) -> None:
    made = invite(service, tenant)

    assert outcome(accept(person, tenant, made["token"])) == (403, "email_unverified")


async def test_an_address_that_was_only_named_is_refused(
    service: Service, owner: asyncpg.Connection, tenant: Tenant, reader: Person
) -> None:
    made = invite(service, tenant, reader.address)
    await unverify(service, owner, reader)

    assert outcome(accept(reader, tenant, made["token"])) == (403, "email_unverified")


async def unverify(service: Service, owner: asyncpg.Connection, person: Person) -> None:
    """As the operator would have named the address."""
    one = Known(kind="email", subject=person.address, user=person.id, verified=False)
    mac = identity_sealer_of(service).mac(IDENTITY_MAC, "platform", one.content)
    change = "UPDATE identities SET verified = false, mac = $2 WHERE kind = 'email' AND subject = $1"
    await owner.execute(change, person.address, mac)


def test_an_agents_token_accepts_nothing(service: Service, tenant: Tenant, reader: Person) -> None:
    made = invite(service, tenant, reader.address)

    assert outcome(accept(tenant.agent(), tenant, made["token"])) == (403, "wrong_kind")


# ---- I4: who is a member already


def test_a_member_stays_what_they_are(service: Service, mailbox: Mailbox, as_platform: Client, tenant: Tenant) -> None:
    for role in ("owner", "member"):
        with closing(by_mail(service, mailbox)) as person:
            as_platform.ok("POST", f"/platform/tenants/{tenant.id}/members", {"userId": person.id, "role": role})
            made = invite(service, tenant, person.address, role="admin")

            assert outcome(accept(person, tenant, made["token"])) == (409, "already_member")
            assert role_in(person, tenant) == role


# ---- I6: how many


async def test_five_hundred_are_pending_at_most(
    service: Service, owner: asyncpg.Connection, as_platform: Client, tenant: Tenant
) -> None:
    first = invite(service, tenant)["invitation"]
    fill = (
        "INSERT INTO invitations (tenant_id, id, token_hash, email, role, status, created_at, expires_at, mac) "
        "SELECT tenant_id, gen_random_uuid(), sha256(g::text::bytea || token_hash), g || email, role, status, "
        "created_at, expires_at, mac FROM invitations, generate_series(2, 500) g WHERE id = $1"
    )
    await owner.execute(fill, first["id"])

    beyond = as_platform.post(path_of(tenant), json={"email": fresh_address(), "role": "viewer"})
    instead = as_platform.post(path_of(tenant), json={"email": first["email"], "role": "viewer"})

    assert outcome(beyond) == (409, "too_many_invitations")
    assert instead.status_code == 201


def test_a_second_one_to_an_address_ends_the_first(service: Service, tenant: Tenant, reader: Person) -> None:
    first = invite(service, tenant, reader.address)
    second = invite(service, tenant, reader.address, role="admin")

    assert outcome(accept(reader, tenant, first["token"])) == (410, "invitation_revoked")
    assert accept(reader, tenant, second["token"]).json()["data"]["role"] == "admin"


def test_of_two_to_an_address_at_once_one_is_pending(service: Service, tenant: Tenant) -> None:
    address = fresh_address()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: invite(service, tenant, address), range(4)))

    assert sorted(status for _, status in states(service, tenant)) == ["pending", "revoked", "revoked", "revoked"]


# ---- I7: who invites


def test_only_a_platform_key_with_the_scope_invites(
    service: Service, tenant: Tenant, as_owner: Person, as_nobody: Client
) -> None:
    body = {"email": fresh_address(), "role": "viewer"}

    answers = [client.post(path_of(tenant), json=body) for client in (tenant, as_owner, tenant.agent(), as_nobody)]

    assert [answer.status_code for answer in answers] == [403, 403, 403, 401]
    assert states(service, tenant) == []


def test_an_invitation_is_found_under_its_tenant_alone(
    service: Service, as_platform: Client, tenant: Tenant, other_tenant: Tenant
) -> None:
    made = invite(service, tenant)["invitation"]

    answers = [
        as_platform.delete(path_of(other_tenant, made["id"])),
        as_platform.delete(path_of(tenant, str(uuid.uuid4()))),
        as_platform.delete(path_of("absent", made["id"])),
        as_platform.get(path_of("absent")),
        as_platform.post(path_of("absent"), json={"email": fresh_address(), "role": "viewer"}),
    ]

    assert [outcome(answer) for answer in answers] == [
        (404, "invitation_absent"),
        (404, "invitation_absent"),
        (404, "tenant_absent"),
        (404, "tenant_absent"),
        (404, "tenant_absent"),
    ]
    assert states(service, tenant) == [(made["email"], "pending")]


# ---- what is written down


def test_the_audit_trail_says_who_invited_and_who_came(
    service: Service, tenant: Tenant, as_owner: Person, reader: Person
) -> None:
    made = invite(service, tenant, reader.address)
    accept(reader, tenant, made["token"])

    rows = as_owner.ok("GET", "/audit/events?actionPrefix=invitation.")["data"]
    joined = as_owner.ok("GET", f"/audit/events?action=membership.added&actorId={reader.id}")["data"]

    assert [(row["action"], row["actor_type"]) for row in rows] == [
        ("invitation.accepted", "user"),
        ("invitation.created", "system"),
    ]
    assert [row["resource_id"] for row in rows] == [made["invitation"]["id"]] * 2
    assert joined[0]["metadata"] == {"role": "viewer", "invitationId": made["invitation"]["id"]}
    assert made["token"] not in str(rows)
