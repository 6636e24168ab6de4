"""Approver keys: registered by their person, shown to the team's admins, revoked for good."""

import base64
from contextlib import closing
from typing import Any

import asyncpg
import pytest

from tests.fixtures.approvers import Approver, Authenticator, approver, quorum
from tests.fixtures.callers import Tenant
from tests.fixtures.people import member
from tests.fixtures.server import Service


def test_a_key_is_registered_shown_and_revoked(service: Service, tenant: Tenant) -> None:
    one, key = member(service, tenant, "viewer", mfa=True), Authenticator()
    with (
        closing(one),
        closing(member(service, tenant, "admin", mfa=True)) as admin,
        closing(member(service, tenant, "developer", mfa=True)) as other,
    ):
        made = one.ok("POST", "/approver-keys", key.registration(name="Blue stick"))

        assert made["fingerprint"] == key.fingerprint
        assert (made["userId"], made["name"], made["status"], made["revokedAt"]) == (
            one.id,
            "Blue stick",
            "active",
            None,
        )
        assert one.ok("GET", "/approver-keys") == admin.ok("GET", "/approver-keys") == [made]
        assert other.ok("GET", "/approver-keys") == []
        assert other.delete(f"/approver-keys/{made['id']}").status_code == 404
        gone = admin.ok("DELETE", f"/approver-keys/{made['id']}")
        assert (gone["id"], gone["status"]) == (made["id"], "revoked")
        assert one.ok("GET", "/approver-keys") == [gone]
        assert one.ok("DELETE", f"/approver-keys/{made['id']}") == gone


@pytest.mark.parametrize(
    "changed",
    [
        {"publicKey": base64.b64encode(b"\x00" * 91).decode()},
        {"publicKey": "AAAA"},
        {"credentialId": "AB"},
        {"credentialId": "A" * 1365},
        {"rpId": "custody.example.com"},
        {"name": ""},
        {"more": 1},
    ],
    ids=str,
)
def test_a_malformed_key_is_refused(service: Service, tenant: Tenant, changed: dict[str, Any]) -> None:
    with closing(member(service, tenant, "admin", mfa=True)) as person:
        assert person.post("/approver-keys", json=Authenticator().registration(**changed)).status_code == 400


def test_a_key_is_registered_once_in_a_tenant_and_eight_by_a_person(service: Service, tenant: Tenant) -> None:
    first: Approver = approver(service, tenant)
    with closing(first.person), closing(member(service, tenant, "admin", mfa=True)) as other:
        answer = other.post("/approver-keys", json=first.authenticator.registration())
        assert (answer.status_code, answer.json()["data"]["code"]) == (409, "approver_key_taken")
        for _ in range(7):
            first.person.ok("POST", "/approver-keys", Authenticator().registration())
        full = first.person.post("/approver-keys", json=Authenticator().registration())
        assert (full.status_code, full.json()["data"]["code"]) == (409, "too_many_approver_keys")
        first.person.ok("DELETE", f"/approver-keys/{first.authenticator.id}")
        first.person.ok("POST", "/approver-keys", Authenticator().registration())


def test_registering_needs_a_recent_second_factor(service: Service, tenant: Tenant) -> None:
    with closing(member(service, tenant, "admin")) as person:
        answer = person.post("/approver-keys", json=Authenticator().registration())

    assert (answer.status_code, answer.json()["data"]["code"]) == (403, "mfa_required")


async def test_a_revoked_key_is_never_registered_again(
    service: Service, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    key = Authenticator()
    with closing(member(service, tenant, "admin", mfa=True)) as one:
        made = one.ok("POST", "/approver-keys", key.registration())
        one.ok("DELETE", f"/approver-keys/{made['id']}")
        again = key.registration(credentialId=Authenticator().credential_id)

        first = one.post("/approver-keys", json=again)
        # Also not where somebody took its row away.
        await owner.execute("DELETE FROM approver_keys WHERE tenant_id = $1", tenant.id)
        second = one.post("/approver-keys", json=again)

        for answer in (first, second):
            assert (answer.status_code, answer.json()["data"]["code"]) == (409, "approver_key_revoked")


async def test_a_quorum_that_an_agent_was_made_with_is_not_dropped_with_its_seal(
    service: Service, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    one = approver(service, tenant)
    body = {"agents": [{"id": "guarded", "name": "Guarded"}], "applyPolicies": [quorum(1, one)]}
    assert [agent["id"] for agent in one.person.ok("POST", "/agents/batch", body)["created"]] == ["guarded"]

    await owner.execute("UPDATE policy_heads SET mac = 'x' WHERE tenant_id = $1 AND agent_id = 'guarded'", tenant.id)

    assert tenant.put("/agents/guarded/policies", json=[]).status_code in (403, 503)
    one.person.close()
