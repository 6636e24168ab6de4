"""`custody members`: who is in the tenant, and who is invited."""

import stat

from tests.fixtures.callers import Tenant
from tests.fixtures.people import Person, fresh_address, member
from tests.fixtures.server import Service
from tests.fixtures.tenant_commands import Desk


def test_a_member_gets_another_role_and_goes(service: Service, tenant: Tenant, owner_desk: Desk) -> None:
    person = member(service, tenant, "viewer")
    person.close()
    changed = owner_desk.ok("members", "role", person.wallet.address.lower(), "developer")
    asked = owner_desk.run("members", "remove", person.id)
    removed = owner_desk.ok("members", "remove", person.id, "--yes")
    gone = owner_desk.run("members", "remove", person.id, "--yes")
    unwritten = owner_desk.run("members", "invite", fresh_address(), "viewer", "--to", "absent/token")

    assert (changed["userId"], changed["role"]) == (person.id, "developer")
    assert (asked.status, "--yes" in asked.complained) == (1, True)
    assert removed == {"deleted": person.id}
    assert (gone.status, "No member signs in as" in gone.complained) == (1, True)
    assert (unwritten.status, "cannot be written" in unwritten.complained) == (2, True)
    assert owner_desk.ok("members", "invitations") == []


def test_the_last_owner_stays(owner_desk: Desk, as_owner: Person) -> None:
    ended = owner_desk.run("members", "remove", as_owner.id, "--yes", "--json")

    assert (ended.status, ended.failure["code"]) == (1, "last_owner_stays")


def test_an_address_is_invited_listed_and_withdrawn(owner_desk: Desk) -> None:
    address = fresh_address()
    shown = owner_desk.run("members", "invite", address, "viewer")
    made = owner_desk.ok("members", "invite", address, "billing", "--to", "token")
    listed = owner_desk.ok("members", "invitations")
    ended = owner_desk.ok("members", "withdraw", made["invitation"]["id"])

    file = owner_desk.home / "token"
    token = file.read_text().strip()
    assert shown.said.splitlines()[1] != token
    assert "token" not in made
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [(one["email"], one["role"], one["status"]) for one in listed] == [
        (address, "billing", "pending"),
        (address, "viewer", "revoked"),
    ]
    assert ended["status"] == "revoked"


def test_a_key_names_nobody(desk: Desk, tenant: Tenant) -> None:
    ended = desk.run("members", "invite", fresh_address(), "viewer", "--json")

    assert (ended.status, ended.failure["code"]) == (1, "wrong_kind")
