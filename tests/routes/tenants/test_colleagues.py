"""The people of a tenant, as its own owners and admins name them."""

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from tests.fixtures.callers import Client, Tenant
from tests.fixtures.linking import email_proof, link
from tests.fixtures.people import Person, by_mail, fresh_address, member
from tests.fixtures.server import Service
from tests.outside.smtp_server import Mailbox
from tests.routes.platform.invited import accept, role_in

ROLES = ("owner", "admin", "developer", "billing", "viewer", "member")
BELOW = ROLES[2:]


@pytest.fixture
def as_admin(service: Service, tenant: Tenant, as_owner: Person) -> Iterator[Person]:
    """An admin of a tenant that has an owner, with a second factor shown just now."""
    with closing(member(service, tenant, "admin", mfa=True)) as somebody:
        yield somebody


def at(tenant: Tenant, *rest: str) -> str:
    return "/".join([f"/tenants/{tenant.id}/members", *rest])


def invitations_at(tenant: Tenant, *rest: str) -> str:
    return "/".join([f"/tenants/{tenant.id}/invitations", *rest])


def colleague(service: Service, tenant: Tenant, role: str) -> str:
    with closing(member(service, tenant, role)) as person:
        return person.id


def code_of(answer: object) -> tuple[int, str]:
    return answer.status_code, answer.json()["data"].get("code", "")  # type: ignore[attr-defined]


def roles(caller: Client, tenant: Tenant) -> dict[str, str]:
    return {one["userId"]: one["role"] for one in caller.ok("GET", at(tenant))}


@pytest.mark.parametrize("before", ROLES)
def test_an_owner_gives_and_takes_every_role(service: Service, tenant: Tenant, as_owner: Person, before: str) -> None:
    user = colleague(service, tenant, before)
    for role in ROLES:
        assert as_owner.ok("PATCH", at(tenant, user), {"role": role})["role"] == role
        assert roles(as_owner, tenant)[user] == role
    as_owner.ok("DELETE", at(tenant, user))

    assert user not in roles(as_owner, tenant)


def test_an_admin_gives_and_takes_the_roles_below(
    service: Service, tenant: Tenant, as_admin: Person, as_owner: Person
) -> None:
    user, wrong = colleague(service, tenant, "viewer"), []
    for before, after in itertools.product(ROLES, ROLES):
        as_owner.ok("PATCH", at(tenant, user), {"role": before})
        changed = code_of(as_admin.patch(at(tenant, user), json={"role": after}))
        may = before in BELOW and after in BELOW
        now = roles(as_owner, tenant)[user]
        if (changed, now) != (((200, ""), after) if may else ((403, "higher_role"), before)):
            wrong.append((before, after, changed, now))

    assert wrong == []


@pytest.mark.parametrize("role", ROLES)
def test_an_admin_removes_those_below(service: Service, tenant: Tenant, as_admin: Person, role: str) -> None:
    removed = as_admin.delete(at(tenant, colleague(service, tenant, role)))

    assert code_of(removed) == ((200, "") if role in BELOW else (403, "higher_role"))


def test_a_changed_role_counts_at_once_and_a_removed_member_is_out(
    service: Service, tenant: Tenant, as_owner: Person
) -> None:
    with closing(member(service, tenant, "developer", mfa=True)) as person:
        assert person.get(f"/tenants/{tenant.id}/config").status_code == 200
        as_owner.ok("PATCH", at(tenant, person.id), {"role": "member"})
        assert person.get(f"/tenants/{tenant.id}/config").status_code == 403
        as_owner.ok("DELETE", at(tenant, person.id))
        assert person.get(f"/tenants/{tenant.id}").status_code == 401


def test_the_last_owner_neither_leaves_nor_steps_down(service: Service, tenant: Tenant, as_owner: Person) -> None:
    stays = [as_owner.delete(at(tenant, as_owner.id)), as_owner.patch(at(tenant, as_owner.id), json={"role": "admin"})]
    another = colleague(service, tenant, "owner")
    stepped = as_owner.patch(at(tenant, as_owner.id), json={"role": "viewer"})

    assert [code_of(answer) for answer in stays] == [(409, "last_owner_stays")] * 2
    assert stepped.status_code == 200
    assert another


def test_of_two_owners_who_leave_at_once_one_stays(service: Service, tenant: Tenant, as_owner: Person) -> None:
    with closing(member(service, tenant, "owner", mfa=True)) as other, ThreadPoolExecutor() as pool:
        answers = list(pool.map(lambda person: person.delete(at(tenant, person.id)), (as_owner, other)))

    assert sorted(code_of(answer) for answer in answers) == [(200, ""), (409, "last_owner_stays")]


def test_an_admin_may_leave_and_step_down(service: Service, tenant: Tenant, as_admin: Person) -> None:
    assert as_admin.patch(at(tenant, as_admin.id), json={"role": "owner"}).status_code == 403
    assert as_admin.patch(at(tenant, as_admin.id), json={"role": "developer"}).status_code == 200
    assert as_admin.get(at(tenant)).status_code == 403


def test_an_owner_reaches_no_member_of_another_tenant(
    service: Service, tenant: Tenant, other_tenant: Tenant, as_owner: Person
) -> None:
    stranger = colleague(service, other_tenant, "viewer")

    assert code_of(as_owner.patch(at(tenant, stranger), json={"role": "viewer"})) == (404, "member_absent")
    assert code_of(as_owner.delete(at(tenant, stranger))) == (404, "member_absent")
    assert as_owner.get(at(other_tenant)).status_code in (403, 404)


def test_a_removed_member_can_be_invited_again(
    service: Service, tenant: Tenant, as_owner: Person, mailbox: Mailbox
) -> None:
    with closing(by_mail(service, mailbox)) as person:
        for role in ("viewer", "billing"):
            made = as_owner.ok("POST", invitations_at(tenant), {"email": person.address, "role": role})
            assert accept(person, tenant, made["token"]).status_code == 200
            assert role_in(person, tenant) == role
            as_owner.ok("DELETE", at(tenant, person.id))
            assert role_in(person, tenant) is None


@pytest.mark.parametrize("role", ROLES)
def test_an_admin_invites_those_below_and_an_owner_everybody_but_owners(
    tenant: Tenant, as_admin: Person, as_owner: Person, role: str
) -> None:
    body = {"email": fresh_address(), "role": role}
    by_admin = as_admin.post(invitations_at(tenant), json=body)
    by_owner = as_owner.post(invitations_at(tenant), json=body)

    assert by_admin.status_code == (400 if role == "owner" else 201 if role in BELOW else 403)
    assert by_owner.status_code == (400 if role == "owner" else 201)


def test_an_admin_withdraws_no_invitation_of_an_admin(tenant: Tenant, as_admin: Person, as_owner: Person) -> None:
    made = as_owner.ok("POST", invitations_at(tenant), {"email": fresh_address(), "role": "admin"})["invitation"]
    path = invitations_at(tenant, made["id"])

    assert code_of(as_admin.delete(path)) == (403, "higher_role")
    assert as_owner.ok("DELETE", path)["status"] == "revoked"
    assert as_owner.ok("GET", invitations_at(tenant))["invitations"][0]["status"] == "revoked"


def test_an_admin_replaces_no_invitation_of_an_admin(tenant: Tenant, as_admin: Person, as_owner: Person) -> None:
    body = {"email": fresh_address(), "role": "admin"}
    as_owner.ok("POST", invitations_at(tenant), body)
    replaced = as_admin.post(invitations_at(tenant), json=body | {"role": "viewer"})
    before = as_owner.ok("GET", invitations_at(tenant))["invitations"]
    as_owner.ok("POST", invitations_at(tenant), body | {"role": "billing"})
    lower = as_admin.post(invitations_at(tenant), json=body | {"role": "viewer"})

    assert code_of(replaced) == (403, "higher_role")
    assert [(one["role"], one["status"]) for one in before] == [("admin", "pending")]
    assert lower.status_code == 201


def test_each_change_is_told_to_the_others_and_to_whom_it_is_about_once(
    service: Service, tenant: Tenant, as_owner: Person, mailbox: Mailbox
) -> None:
    with closing(member(service, tenant, "admin", mfa=True)) as other, closing(by_mail(service, mailbox)) as them:
        told = fresh_address()
        assert link(other, email=email_proof(other, mailbox, told)).status_code == 201
        seen = {address: mailbox.count(address) for address in (told, them.address)}

        def mails(number: int) -> list[str]:
            """Read the mail to each that comes so many after those before."""
            return [mailbox.mail_for(address, after=before + number).text for address, before in seen.items()]

        body = {"email": them.address, "role": "viewer", "sendEmail": True}
        made = as_owner.ok("POST", invitations_at(tenant), body)
        invited, letter = mails(0)
        accept(them, tenant, made["token"])
        key = {"Idempotency-Key": "the-same-change-of-a-role"}
        for _ in range(2):
            as_owner.patch(at(tenant, them.id), json={"role": "billing"}, headers=key)
        changed = mails(1)
        as_owner.ok("DELETE", at(tenant, them.id))
        # Had the repetition been told, this would be its mail.
        removed = mails(2)

    who = as_owner.wallet.address
    assert f"invited {them.address}, as viewer." in invited
    assert "invites you to join an organisation" in letter
    for mail in changed:
        assert f"gave {them.address} the role billing." in mail
    for mail in removed:
        assert f"removed {them.address}." in mail
        assert who.lower() in mail.lower()


def test_an_address_is_invited_five_times_an_hour_by_all_tenants_together(
    service: Service, tenant: Tenant, other_tenant: Tenant, as_owner: Person
) -> None:
    body = {"email": fresh_address(), "role": "viewer"}
    with closing(member(service, other_tenant, "owner", mfa=True)) as another:
        first = [another.post(invitations_at(other_tenant), json=body).status_code for _ in range(3)]
        then = [as_owner.post(invitations_at(tenant), json=body) for _ in range(3)]

    assert first == [201] * 3
    assert [code_of(answer) for answer in then] == [(201, ""), (201, ""), (429, "too_many_attempts")]
    assert int(then[-1].headers["Retry-After"]) > 0


def test_a_change_stands_in_the_tenants_log_with_the_person(service: Service, tenant: Tenant, as_owner: Person) -> None:
    user = colleague(service, tenant, "viewer")
    as_owner.ok("PATCH", at(tenant, user), {"role": "developer"})
    found = as_owner.ok("GET", "/audit/events?action=membership.changed")["data"]

    assert (found[0]["resource_id"], found[0]["metadata"]) == (user, {"role": "developer", "before": "viewer"})
    assert found[0]["actor_id"] == as_owner.id
