"""Keys with which a tenant signs its requests."""

from contextlib import closing

import asyncpg
import pytest

from tests.fixtures.callers import Client, Tenant
from tests.fixtures.people import Person, member
from tests.fixtures.server import Service


def path_of(somebody: Person) -> str:
    return f"/tenants/{somebody.tenant}/request-signing-keys"


def test_a_key_is_shown_once_and_listed_without_its_secret(as_owner: Person) -> None:
    answer = as_owner.post(path_of(as_owner))

    made = answer.json()["data"]
    assert (answer.status_code, answer.headers["Cache-Control"]) == (201, "no-store")
    assert set(made) == {"id", "prefix", "status", "createdAt", "retiresAt", "signingSecret"}
    assert made["signingSecret"].startswith(made["prefix"])
    del made["signingSecret"]
    assert as_owner.ok("GET", path_of(as_owner)) == [made]


def test_those_before_go_on_for_seven_days(as_owner: Person) -> None:
    first, second, third = (as_owner.ok("POST", path_of(as_owner)) for _ in range(3))

    listed = as_owner.ok("GET", path_of(as_owner))

    assert [(one["id"], one["status"]) for one in listed] == [
        (third["id"], "active"),
        (second["id"], "retiring"),
        (first["id"], "retiring"),
    ]


async def test_a_revoked_key_ends_at_once_and_its_secret_is_destroyed(
    as_owner: Person, owner: asyncpg.Connection
) -> None:
    made = as_owner.ok("POST", path_of(as_owner))

    gone = as_owner.ok("DELETE", f"{path_of(as_owner)}/{made['id']}")

    assert gone == {"deleted": made["id"]}
    assert [one["status"] for one in as_owner.ok("GET", path_of(as_owner))] == ["revoked"]
    assert as_owner.delete(f"{path_of(as_owner)}/{made['id']}").status_code == 404
    assert await owner.fetchval("SELECT count(*) FROM identity_sealed WHERE owner = $1", made["id"]) == 0


async def test_a_key_past_its_time_is_no_longer_there_to_revoke(as_owner: Person, owner: asyncpg.Connection) -> None:
    first, _ = as_owner.ok("POST", path_of(as_owner)), as_owner.ok("POST", path_of(as_owner))

    await owner.execute("UPDATE signing_keys SET retires_at = now() - interval '1 second' WHERE id = $1", first["id"])

    assert as_owner.delete(f"{path_of(as_owner)}/{first['id']}").status_code == 404
    assert [one["status"] for one in as_owner.ok("GET", path_of(as_owner))] == ["active", "revoked"]


async def test_the_secret_is_sealed(as_owner: Person, owner: asyncpg.Connection) -> None:
    made = as_owner.ok("POST", path_of(as_owner))

    blob = await owner.fetchval("SELECT blob FROM identity_sealed WHERE owner = $1", made["id"])
    told = await owner.fetch("SELECT metadata FROM audit WHERE tenant_id = $1", as_owner.tenant)

    assert made["signingSecret"].encode() not in blob
    assert not any(made["signingSecret"] in one["metadata"] for one in told)


def test_keys_that_work_are_few(as_owner: Person) -> None:
    for _ in range(10):
        as_owner.ok("POST", path_of(as_owner))

    full = as_owner.post(path_of(as_owner))

    assert (full.status_code, full.json()["data"]["code"]) == (409, "too_many_signing_keys")


def test_the_list_comes_in_pages(as_owner: Person) -> None:
    made = [as_owner.ok("POST", path_of(as_owner))["id"] for _ in range(3)]

    page = as_owner.get(f"{path_of(as_owner)}?limit=2&offset=1")

    assert [one["id"] for one in page.json()["data"]] == [made[1], made[0]]
    assert page.headers["X-Total-Count"] == "3"
    assert as_owner.get(f"{path_of(as_owner)}?limit=1001").status_code == 400


async def test_of_dead_keys_the_last_hundred_are_kept(as_owner: Person, owner: asyncpg.Connection) -> None:
    await owner.execute(
        "INSERT INTO signing_keys (tenant_id, id, prefix, mac, created_at, revoked_at) SELECT $1, gen_random_uuid(), "
        "'rsk_' || n, '', now() - interval '1 hour', now() - n * interval '1 second' FROM generate_series(1, 120) n",
        as_owner.tenant,
    )

    as_owner.ok("POST", path_of(as_owner))

    kept = as_owner.ok("GET", path_of(as_owner))
    assert {one["prefix"] for one in kept if one["status"] == "revoked"} == {f"rsk_{n}" for n in range(1, 101)}
    assert len(kept) == 101


def test_a_repeated_request_makes_no_second_key(as_owner: Person) -> None:
    key = {"Idempotency-Key": "make-it-once"}

    answers = [as_owner.post(path_of(as_owner), headers=key) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [201, 409]
    assert answers[1].json()["data"]["code"] == "idempotency_secret_shown"
    assert len(as_owner.ok("GET", path_of(as_owner))) == 1


@pytest.mark.parametrize(("role", "mfa", "code"), [("admin", False, "mfa_required"), ("developer", True, "wrong_role")])
def test_only_admins_with_a_recent_factor_see_and_change_them(
    service: Service, tenant: Tenant, role: str, mfa: bool, code: str
) -> None:
    with closing(member(service, tenant, role, mfa=mfa)) as somebody:
        answers = [somebody.get(path_of(somebody)), somebody.post(path_of(somebody))]

    assert {(answer.status_code, answer.json()["data"]["code"]) for answer in answers} == {(403, code)}


def test_another_tenants_keys_are_not_there(as_owner: Person, tenant: Tenant, other_tenant: Tenant) -> None:
    foreign = f"/tenants/{other_tenant.id}/request-signing-keys"

    answers: list[tuple[Client, str]] = [(as_owner, "GET"), (as_owner, "POST")]

    assert {one.request(method, foreign).status_code for one, method in answers} == {404}
    assert tenant.get(f"/tenants/{tenant.id}/request-signing-keys").status_code == 403
