"""A tenant's API keys: listed, made, replaced with an overlap, revoked."""

from contextlib import closing
from typing import Any

import asyncpg
import httpx
import pytest

from tests.fixtures.callers import Client, Tenant
from tests.fixtures.eventually import eventually
from tests.fixtures.people import Person, member
from tests.fixtures.server import Service

DAY = 86_400


def path_of(tenant: str) -> str:
    return f"/tenants/{tenant}/api-keys"


def make(somebody: Client, tenant: str, **fields: Any) -> dict[str, Any]:
    return somebody.ok("POST", path_of(tenant), fields)


def keys(somebody: Client, tenant: str) -> list[dict[str, Any]]:
    return somebody.ok("GET", path_of(tenant))


def revoke(somebody: Client, tenant: str, key: str, **fields: Any) -> httpx.Response:
    return somebody.request("DELETE", f"{path_of(tenant)}/{key}", json=fields)


def with_key(service: Service, key: str) -> Client:
    return Client(base_url=service.url, headers={"X-Service-Key": key}, timeout=30)


def works(service: Service, key: str) -> bool:
    with with_key(service, key) as client:
        return client.get("/me").status_code == 200


async def lengths(owner: asyncpg.Connection, tenant: str) -> list[int]:
    """For how long each replaced key still serves, in seconds, the shortest first."""
    rows = await owner.fetch(
        "SELECT extract(epoch FROM retires_at - service_now()) AS s FROM tenant_keys "
        "WHERE tenant_id = $1 AND retires_at IS NOT NULL ORDER BY 1",
        tenant,
    )
    return [round(float(row["s"])) for row in rows]


def test_the_first_key_is_a_row_like_the_others(as_owner: Person, tenant: Tenant) -> None:
    (first,) = keys(as_owner, tenant.id)

    assert set(first) == {"id", "name", "prefix", "status", "createdAt", "retiresAt", "lastUsedAt"}
    assert (first["status"], first["name"], first["retiresAt"]) == ("active", None, None)
    assert tenant.key.startswith(first["prefix"])
    assert len(first["prefix"]) == 12


def test_a_new_key_is_shown_once_and_works(service: Service, as_owner: Person, tenant: Tenant) -> None:
    answer = as_owner.post(path_of(tenant.id), json={"name": "the billing job"})

    new = answer.json()["data"]
    assert (answer.status_code, answer.headers["Cache-Control"]) == (201, "no-store")
    shown = new.pop("apiKey")
    assert shown.startswith(new["prefix"])
    assert (new["name"], new["status"], new["lastUsedAt"]) == ("the billing job", "active", None)
    assert keys(as_owner, tenant.id)[0] == new
    assert shown not in as_owner.get(path_of(tenant.id)).text
    with with_key(service, shown) as client:
        assert client.ok("POST", "/agents", {"id": "made-with-it", "name": "A"})["id"] == "made-with-it"


async def test_the_one_before_goes_on_for_a_day_and_those_that_retire_keep_their_time(
    service: Service, as_owner: Person, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    make(as_owner, tenant.id, overlapSeconds=604_800)
    make(as_owner, tenant.id)
    make(as_owner, tenant.id, overlapSeconds=60)

    assert [one["status"] for one in keys(as_owner, tenant.id)] == ["active", "retiring", "retiring", "retiring"]
    assert all(abs(a - b) < 30 for a, b in zip(await lengths(owner, tenant.id), [60, DAY, 7 * DAY], strict=True))
    assert works(service, tenant.key)


def test_without_an_overlap_the_one_before_ends_at_once(service: Service, as_owner: Person, tenant: Tenant) -> None:
    assert works(service, tenant.key)

    new = make(as_owner, tenant.id, overlapSeconds=0)

    assert eventually(lambda: works(service, tenant.key), lambda good: not good, seconds=2) is False
    assert works(service, new["apiKey"])
    assert [one["status"] for one in keys(as_owner, tenant.id)] == ["active", "revoked"]


async def test_a_key_past_its_overlap_is_over(
    service: Service, as_owner: Person, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    (first,) = keys(as_owner, tenant.id)
    make(as_owner, tenant.id, overlapSeconds=60)

    await owner.execute("UPDATE tenant_keys SET retires_at = service_now() WHERE id = $1", first["id"])

    assert eventually(lambda: works(service, tenant.key), lambda good: not good, seconds=2) is False
    assert tenant.post("/agents", json={"id": "late", "name": "A"}).status_code == 401
    assert revoke(as_owner, tenant.id, first["id"]).status_code == 404


@pytest.mark.parametrize("seconds", [-1, 604_801, 1.5, "60", None])
def test_the_overlap_has_bounds(as_owner: Person, tenant: Tenant, seconds: object) -> None:
    answer = as_owner.post(path_of(tenant.id), json={"overlapSeconds": seconds})

    assert (answer.status_code, answer.json()["data"]["fields"]) == (400, ["overlapSeconds"])
    assert len(keys(as_owner, tenant.id)) == 1


def test_the_last_active_key_goes_only_by_force(service: Service, as_owner: Person, tenant: Tenant) -> None:
    (first,) = keys(as_owner, tenant.id)
    agent = tenant.agent()

    asked = revoke(as_owner, tenant.id, first["id"])
    still = works(service, tenant.key)
    forced = revoke(as_owner, tenant.id, first["id"], force=True)

    assert (asked.status_code, asked.json()["data"]["code"]) == (409, "last_api_key")
    assert still
    ended = forced.json()["data"]
    assert (forced.status_code, ended["id"], ended["status"]) == (200, first["id"], "revoked")
    assert eventually(lambda: works(service, tenant.key), lambda good: not good, seconds=2) is False
    # People and agents go on, and an owner makes the next one.
    assert agent.sign().status_code == 200
    assert as_owner.ok("GET", f"/agents/{agent.id}")["id"] == agent.id
    assert works(service, make(as_owner, tenant.id)["apiKey"])


def test_a_key_that_retires_goes_without_force_unless_none_is_left(as_owner: Person, tenant: Tenant) -> None:
    (first,) = keys(as_owner, tenant.id)
    second = make(as_owner, tenant.id)

    only_active = revoke(as_owner, tenant.id, second["id"])
    assert revoke(as_owner, tenant.id, second["id"], force=True).is_success
    none_left = revoke(as_owner, tenant.id, first["id"])
    third = make(as_owner, tenant.id)
    retiring = revoke(as_owner, tenant.id, first["id"])

    assert [one.status_code for one in (only_active, none_left, retiring)] == [409, 409, 200]
    assert {one["id"]: one["status"] for one in keys(as_owner, tenant.id)} == {
        first["id"]: "revoked",
        second["id"]: "revoked",
        third["id"]: "active",
    }


def test_keys_that_work_are_few(as_owner: Person, tenant: Tenant) -> None:
    for _ in range(9):
        make(as_owner, tenant.id)

    full = as_owner.post(path_of(tenant.id), json={})
    # The one that is replaced at once makes room for the next.
    at_once = as_owner.post(path_of(tenant.id), json={"overlapSeconds": 0})

    assert (full.status_code, full.json()["data"]["code"]) == (409, "too_many_api_keys")
    assert at_once.status_code == 201
    assert sum(one["status"] != "revoked" for one in keys(as_owner, tenant.id)) == 10


async def test_of_dead_keys_the_last_hundred_are_kept(
    as_owner: Person, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    await owner.execute(
        "INSERT INTO tenant_keys (tenant_id, key_hash, prefix, mac, created_at, revoked_at) SELECT $1, "
        "sha256(convert_to($1 || n, 'UTF8')), 'ck_' || n, '', now() - interval '1 hour', now() - n * interval '1 s' "
        "FROM generate_series(1, 120) n",
        tenant.id,
    )

    make(as_owner, tenant.id)

    kept = keys(as_owner, tenant.id)
    assert {one["prefix"] for one in kept if one["status"] == "revoked"} == {f"ck_{n}" for n in range(1, 101)}
    assert len(kept) == 102


async def test_the_audit_log_names_the_keys_and_shows_none(
    as_owner: Person, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    (first,) = keys(as_owner, tenant.id)
    new = make(as_owner, tenant.id, overlapSeconds=60)
    revoke(as_owner, tenant.id, first["id"])

    rows = await owner.fetch(
        "SELECT * FROM audit WHERE tenant_id = $1 AND action LIKE 'api_key.%' ORDER BY seq", tenant.id
    )

    assert [(row["action"], row["resource_id"], row["actor_id"]) for row in rows] == [
        ("api_key.created", new["id"], as_owner.id),
        ("api_key.revoked", first["id"], as_owner.id),
    ]
    assert first["prefix"] in rows[0]["metadata"]
    assert not any(new["apiKey"] in row["metadata"] for row in rows)


def test_the_last_use_is_shown(service: Service, as_owner: Person, tenant: Tenant) -> None:
    new = make(as_owner, tenant.id)
    assert keys(as_owner, tenant.id)[0]["lastUsedAt"] is None

    assert works(service, new["apiKey"])

    used = keys(as_owner, tenant.id)[0]["lastUsedAt"]
    assert used is not None
    assert used >= new["createdAt"]


def test_a_repeated_request_makes_no_second_key(as_owner: Person, tenant: Tenant) -> None:
    headers = {"Idempotency-Key": "make-it-once"}

    answers = [as_owner.post(path_of(tenant.id), json={}, headers=headers) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [201, 409]
    assert answers[1].json()["data"]["code"] == "idempotency_secret_shown"
    assert len(keys(as_owner, tenant.id)) == 2


def test_the_operator_does_the_same(service: Service, as_platform: Client, tenant: Tenant) -> None:
    path = f"/platform/tenants/{tenant.id}/api-keys"
    (first,) = as_platform.ok("GET", path)

    new = as_platform.ok("POST", path, {"name": "from the operator"})
    ended = as_platform.request("DELETE", f"{path}/{first['id']}", json={})
    last = as_platform.request("DELETE", f"{path}/{new['id']}", json={})

    assert works(service, new["apiKey"])
    assert (ended.json()["data"]["status"], last.status_code) == ("revoked", 409)
    assert [one["status"] for one in as_platform.ok("GET", path)] == ["active", "revoked"]
    for method in ("GET", "POST"):
        assert as_platform.request(method, "/platform/tenants/nobody-at-all/api-keys").status_code == 404


@pytest.mark.parametrize(("role", "mfa", "code"), [("admin", False, "mfa_required"), ("developer", True, "wrong_role")])
def test_only_admins_with_a_recent_factor_see_and_change_them(
    service: Service, tenant: Tenant, role: str, mfa: bool, code: str
) -> None:
    with closing(member(service, tenant, role, mfa=mfa)) as somebody:
        answers = [somebody.get(path_of(tenant.id)), somebody.post(path_of(tenant.id), json={})]

    assert {(answer.status_code, answer.json()["data"]["code"]) for answer in answers} == {(403, code)}


def test_a_key_changes_no_keys(tenant: Tenant) -> None:
    answers = [tenant.request(method, path_of(tenant.id)) for method in ("GET", "POST")]

    assert {(answer.status_code, answer.json()["data"]["code"]) for answer in answers} == {(403, "wrong_kind")}


def test_another_tenants_keys_are_not_there(
    service: Service, as_owner: Person, tenant: Tenant, other_tenant: Tenant, as_platform: Client
) -> None:
    (foreign,) = as_platform.ok("GET", f"/platform/tenants/{other_tenant.id}/api-keys")

    answers = [
        as_owner.get(path_of(other_tenant.id)),
        as_owner.post(path_of(other_tenant.id), json={}),
        revoke(as_owner, other_tenant.id, foreign["id"], force=True),
        revoke(as_owner, tenant.id, foreign["id"], force=True),
        as_platform.request("DELETE", f"/platform/tenants/{tenant.id}/api-keys/{foreign['id']}", json={"force": True}),
    ]

    assert {answer.status_code for answer in answers} == {404}
    assert works(service, other_tenant.key)
