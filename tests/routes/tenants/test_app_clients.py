"""App clients and their secrets."""

from contextlib import closing
from typing import Any

import asyncpg
import msgspec
import pytest

from custody.identity.app_clients import AppClient
from custody.kit import tokens
from custody.kit.paging import MAX_PAGE_BYTES
from custody.worker.proofs import APP_CLIENT_MAC
from custody.worker.sealing import fields
from tests.fixtures.callers import Client, Tenant
from tests.fixtures.forgery import identity_sealer_of
from tests.fixtures.people import Person, member
from tests.fixtures.server import Service
from tests.routes.tenants.makers import as_app, client_body, keep_client, keep_secret

FIELDS = {
    "id",
    "name",
    "environment",
    "enabled",
    "isDefault",
    "allowedOrigins",
    "allowedRedirectUrls",
    "allowedBundleIds",
    "allowedPackageNames",
    "loginMethods",
    "allowRegistration",
    "maxRegistered",
    "appId",
    "createdAt",
    "updatedAt",
}


def path_of(somebody: Person, *rest: str) -> str:
    return "/".join([f"/tenants/{somebody.tenant}/app-clients", *rest])


def ids(admin: Person) -> list[str]:
    return sorted(one["id"] for one in admin.ok("GET", path_of(admin)))


def test_an_app_client_is_created_and_listed(as_owner: Person) -> None:
    answer = as_owner.post(path_of(as_owner), json=client_body("web-app", loginMethods={"oauth": {"google": False}}))

    made = answer.json()["data"]
    assert answer.status_code == 201
    assert set(made) == FIELDS
    assert (made["appId"], made["environment"]) == (f"{as_owner.tenant}/web-app", "production")
    assert (made["enabled"], made["isDefault"]) == (True, False)
    assert as_owner.ok("GET", path_of(as_owner)) == [made]


def test_several_are_created_together_or_none(as_owner: Person) -> None:
    keep_client(as_owner, "taken")

    made = as_owner.post(path_of(as_owner), json={"appClients": [client_body("one-1"), client_body("two-2")]})
    refused = as_owner.post(path_of(as_owner), json={"appClients": [client_body("three"), client_body("taken")]})

    assert [one["id"] for one in made.json()["data"]] == ["one-1", "two-2"]
    assert (refused.status_code, refused.json()["data"]["code"]) == (409, "app_client_taken")
    assert ids(as_owner) == ["one-1", "taken", "two-2"]


def test_put_makes_one_or_replaces_it_whole(as_owner: Person) -> None:
    made = as_owner.ok("PUT", path_of(as_owner), client_body("web-app", allowedBundleIds=["com.example.app"]))

    changed = as_owner.ok("PUT", path_of(as_owner), {"id": "web-app", "name": "Other"})

    assert (changed["name"], changed["allowedOrigins"], changed["allowedBundleIds"]) == ("Other", [], [])
    assert (changed["createdAt"], changed["updatedAt"] >= made["updatedAt"]) == (made["createdAt"], True)
    assert ids(as_owner) == ["web-app"]


def test_put_of_a_list_replaces_all(as_owner: Person) -> None:
    for client_id in ("gone-1", "kept-1"):
        keep_client(as_owner, client_id)

    as_owner.ok("PUT", path_of(as_owner), {"appClients": [client_body("kept-1", name="Kept"), client_body("new-1")]})

    assert ids(as_owner) == ["kept-1", "new-1"]
    assert as_owner.ok("PUT", path_of(as_owner), {"appClients": []}) == []
    assert ids(as_owner) == []


def test_there_is_at_most_one_default(as_owner: Person) -> None:
    keep_client(as_owner, "first", isDefault=True)
    both = [client_body("a-1", isDefault=True), client_body("b-1", isDefault=True)]

    second = as_owner.post(path_of(as_owner), json=client_body("second", isDefault=True))
    together = as_owner.put(path_of(as_owner), json={"appClients": both})
    as_owner.ok("PUT", path_of(as_owner), client_body("first"))

    assert (second.status_code, second.json()["data"]["code"]) == (409, "default_taken")
    assert together.status_code == 400
    assert as_owner.post(path_of(as_owner), json=client_body("second", isDefault=True)).status_code == 201


def test_a_tenant_has_at_most_fifty(as_owner: Person) -> None:
    fifty = [client_body(f"client-{number}") for number in range(50)]
    as_owner.ok("PUT", path_of(as_owner), {"appClients": fifty})

    more = as_owner.post(path_of(as_owner), json=client_body("one-more"))
    many = as_owner.put(path_of(as_owner), json={"appClients": [*fifty, client_body("one-more")]})

    assert (more.status_code, more.json()["data"]["code"], many.status_code) == (409, "too_many_app_clients", 400)


def large(number: int, entries: int = 50) -> dict[str, Any]:
    """A client as long as one may be, or with shorter lists."""
    begins = f"https://{number}.example/"
    urls = [f"{begins}{entry:02}".ljust(2048, "x") for entry in range(entries)]
    return client_body(f"large-{number}", allowedRedirectUrls=urls)


def test_app_clients_together_are_no_longer_than_an_answer_with_all_of_them(as_owner: Person) -> None:
    bodies = [{"appClients": [large(number), large(number + 1)]} for number in range(0, 40, 2)]
    answers = [as_owner.post(path_of(as_owner), json=body) for body in bodies]

    kept = [answer for answer in answers if answer.is_success]
    assert len(kept) == 15
    assert {one.json()["data"].get("code") for one in answers[15:]} == {"too_many_app_clients"}
    whole = as_owner.get(f"/tenants/{as_owner.tenant}/config")
    assert len(whole.json()["data"]["appClients"]) == 30
    assert 3 * 10**6 < len(whole.content) <= MAX_PAGE_BYTES
    # Room is made as anywhere.
    as_owner.ok("DELETE", path_of(as_owner, "large-0"))
    assert as_owner.post(path_of(as_owner), json=client_body("small")).status_code == 201


async def test_app_clients_of_before_the_bound_may_become_shorter_and_no_longer(
    service: Service, as_owner: Person, owner: asyncpg.Connection
) -> None:
    sealer, tenant = identity_sealer_of(service), as_owner.tenant
    for number in range(32):
        client = msgspec.convert(large(number), AppClient)
        text = msgspec.json.encode(client, order="sorted").decode()
        mac = sealer.mac(APP_CLIENT_MAC, tenant, fields(tenant, client.id, text, "enabled"))
        await owner.execute(
            "INSERT INTO app_clients (tenant_id, id, document, enabled, mac, created_at, updated_at)"
            " VALUES ($1, $2, $3, true, $4, now(), now())",
            *(tenant, client.id, text, mac),
        )
    assert len(ids(as_owner)) == 32

    longer = as_owner.put(path_of(as_owner), json=client_body("one-more"))
    shorter = as_owner.put(path_of(as_owner), json=large(0, 49))
    fewer = as_owner.put(path_of(as_owner), json={"appClients": [large(number, 10) for number in range(1, 3)]})

    assert (longer.status_code, longer.json()["data"]["code"]) == (409, "too_many_app_clients")
    assert (shorter.status_code, fewer.status_code) == (200, 200)
    assert ids(as_owner) == ["large-1", "large-2"]


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        ({"id": "ab"}, "id"),
        ({"id": "Web-app"}, "id"),
        ({"id": "web.app"}, "id"),
        ({"id": "web-app\n"}, "id"),
        ({"id": "x" * 65}, "id"),
        ({"id": "_web"}, "id"),
        ({"name": ""}, "name"),
        ({"surplus": 1}, "surplus"),
        ({"allowedOrigins": ["*"]}, "allowedOrigins"),
        ({"allowedOrigins": ["https://*.example.com"]}, "allowedOrigins"),
        ({"allowedOrigins": ["http://example.com"]}, "allowedOrigins"),
        ({"allowedOrigins": ["https://example.com/"]}, "allowedOrigins"),
        ({"allowedOrigins": ["https://user:pw@example.com"]}, "allowedOrigins"),
        ({"allowedRedirectUrls": ["http://example.com/back"]}, "allowedRedirectUrls"),
        ({"allowedRedirectUrls": ["https://example.com/*"]}, "allowedRedirectUrls"),
        ({"allowedRedirectUrls": ["javascript:alert(1)"]}, "allowedRedirectUrls"),
        ({"allowedBundleIds": ["com.example.*"]}, "allowedBundleIds"),
        ({"allowedBundleIds": ["app"]}, "allowedBundleIds"),
        ({"allowedBundleIds": ["com..app"]}, "allowedBundleIds"),
        ({"allowedPackageNames": ["org.1app"]}, "allowedPackageNames"),
        ({"allowedPackageNames": ["*"]}, "allowedPackageNames"),
        ({"allowedPackageNames": ["org"]}, "allowedPackageNames"),
        ({"loginMethods": {"oauth": {"myspace": True}}}, None),
        ({"appClients": []}, "appClients"),
    ],
    ids=str,
)
@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_a_malformed_app_client_is_refused_before_it_is_stored(
    as_owner: Person, method: str, bad: dict[str, Any], field: str | None
) -> None:
    answer = as_owner.request(method, path_of(as_owner), json=client_body() | bad)

    assert answer.status_code == 400, answer.text
    if field:
        assert answer.json()["data"]["fields"] == [field]
    assert ids(as_owner) == []


@pytest.mark.parametrize(("body", "field"), [({}, "id"), ({"id": "web-app"}, "name"), ({"name": "Web"}, "id")])
def test_one_client_needs_its_id_and_name(as_owner: Person, body: dict[str, Any], field: str) -> None:
    answer = as_owner.post(path_of(as_owner), json=body)

    assert (answer.status_code, answer.json()["data"]["fields"]) == (400, [field])


def test_the_same_client_twice_is_400(as_owner: Person) -> None:
    assert as_owner.post(path_of(as_owner), json={"appClients": [client_body(), client_body()]}).status_code == 400
    assert as_owner.post(path_of(as_owner), json={"appClients": []}).status_code == 400


@pytest.mark.parametrize(
    ("role", "mfa", "reads", "writes"),
    [
        ("owner", False, 200, "mfa_required"),
        ("admin", False, 200, "mfa_required"),
        ("developer", True, 403, "wrong_role"),
        ("viewer", True, 403, "wrong_role"),
        ("member", True, 403, "wrong_role"),
    ],
)
def test_roles_that_may_read_and_roles_that_may_change(
    service: Service, tenant: Tenant, role: str, mfa: bool, reads: int, writes: str
) -> None:
    with closing(member(service, tenant, role, mfa=mfa)) as somebody:
        looked = somebody.get(path_of(somebody))
        changed = [
            somebody.post(path_of(somebody), json=client_body()),
            somebody.delete(path_of(somebody, "web-app")),
            somebody.put(path_of(somebody), json=client_body()),
            somebody.post(path_of(somebody, "web-app", "secrets")),
            somebody.get(path_of(somebody, "web-app", "secrets")),
        ]

    assert looked.status_code == reads
    assert {(one.status_code, one.json()["data"]["code"]) for one in changed} == {(403, writes)}


def test_the_tenants_key_and_the_platform_do_neither(tenant: Tenant, as_platform: Client, as_nobody: Client) -> None:
    path = f"/tenants/{tenant.id}/app-clients"

    assert [one.get(path).status_code for one in (tenant, as_platform, as_nobody)] == [403, 403, 401]
    assert [one.post(path, json=client_body()).status_code for one in (tenant, as_platform)] == [403, 403]


def test_another_tenants_clients_are_not_there(as_owner: Person, other_tenant: Tenant) -> None:
    path = f"/tenants/{other_tenant.id}/app-clients"

    answers = [as_owner.get(path), as_owner.post(path, json=client_body()), as_owner.delete(path + "/web-app")]

    assert {answer.status_code for answer in answers} == {404}


def test_a_deleted_client_is_gone_with_its_secrets(as_owner: Person) -> None:
    keep_client(as_owner)
    made = keep_secret(as_owner)

    gone = as_owner.ok("DELETE", path_of(as_owner, "web-app"))

    assert gone == {"deleted": "web-app"}
    assert as_owner.delete(path_of(as_owner, "web-app")).status_code == 404
    assert as_owner.get(path_of(as_owner, "web-app", "secrets")).status_code == 404
    with as_app(as_owner, made["appId"], made["appSecret"]) as app:
        assert app.get("/agents").status_code == 401


def test_a_secret_lets_an_integration_act_for_the_tenant(as_owner: Person) -> None:
    keep_client(as_owner)

    answer = as_owner.post(path_of(as_owner, "web-app", "secrets"))

    made = answer.json()["data"]
    assert (answer.status_code, answer.headers["Cache-Control"]) == (201, "no-store")
    assert set(made) == {"id", "prefix", "status", "createdAt", "retiresAt", "appId", "appSecret"}
    assert made["appSecret"].startswith(made["prefix"])
    with as_app(as_owner, made["appId"], made["appSecret"]) as app:
        assert app.post("/agents", json={"id": "made-by-app", "name": "x"}).status_code == 201


def test_rotating_lets_the_one_before_go_on_for_a_day(as_owner: Person) -> None:
    keep_client(as_owner)
    first, second = keep_secret(as_owner), keep_secret(as_owner)

    listed = as_owner.ok("GET", path_of(as_owner, "web-app", "secrets"))

    assert [(one["id"], one["status"]) for one in listed] == [(second["id"], "active"), (first["id"], "retiring")]
    assert listed[0]["retiresAt"] is None
    assert listed[1]["retiresAt"][:10] > first["createdAt"][:10]
    assert not any("appSecret" in one for one in listed)
    for made in (first, second):
        with as_app(as_owner, made["appId"], made["appSecret"]) as app:
            assert app.delete("/agents/nobody").status_code == 404


async def test_after_that_day_it_works_no_more(as_owner: Person, owner: asyncpg.Connection) -> None:
    keep_client(as_owner)
    first, _ = keep_secret(as_owner), keep_secret(as_owner)

    await owner.execute("UPDATE app_secrets SET retires_at = now() - interval '1 second' WHERE id = $1", first["id"])

    with as_app(as_owner, first["appId"], first["appSecret"]) as app:
        assert app.get("/agents").status_code == 401
        assert app.post("/agents", json={"id": "late", "name": "x"}).status_code == 401
    statuses = {one["id"]: one["status"] for one in as_owner.ok("GET", path_of(as_owner, "web-app", "secrets"))}
    assert statuses[first["id"]] == "revoked"
    assert as_owner.delete(path_of(as_owner, "web-app", "secrets", first["id"])).status_code == 404


def test_a_revoked_secret_ends_at_once(as_owner: Person) -> None:
    keep_client(as_owner)
    made = keep_secret(as_owner)
    with as_app(as_owner, made["appId"], made["appSecret"]) as app:
        assert app.get("/agents").status_code == 200

        as_owner.ok("DELETE", path_of(as_owner, "web-app", "secrets", made["id"]))

        assert app.get("/agents").status_code == 401
        assert app.post("/agents", json={"id": "late", "name": "x"}).status_code == 401
    assert as_owner.delete(path_of(as_owner, "web-app", "secrets", made["id"])).status_code == 404


def test_a_disabled_client_does_nothing(as_owner: Person) -> None:
    keep_client(as_owner)
    made = keep_secret(as_owner)

    as_owner.ok("PUT", path_of(as_owner), client_body(enabled=False))

    with as_app(as_owner, made["appId"], made["appSecret"]) as app:
        assert app.get("/agents").status_code == 401


def test_a_secret_belongs_to_one_client_of_one_tenant(as_owner: Person, other_tenant: Tenant) -> None:
    keep_client(as_owner, "web-app")
    keep_client(as_owner, "mobile")
    made = keep_secret(as_owner)

    for app_id in (f"{as_owner.tenant}/mobile", f"{other_tenant.id}/web-app", "web-app", "/"):
        with as_app(as_owner, app_id, made["appSecret"]) as app:
            assert app.get("/agents").status_code == 401
    assert as_owner.delete(path_of(as_owner, "mobile", "secrets", made["id"])).status_code == 404


async def test_a_secret_is_kept_only_as_its_hash(as_owner: Person, owner: asyncpg.Connection) -> None:
    keep_client(as_owner)
    made = keep_secret(as_owner)

    row = await owner.fetchrow("SELECT * FROM app_secrets WHERE id = $1", made["id"])
    told = await owner.fetch("SELECT metadata FROM audit WHERE tenant_id = $1", as_owner.tenant)

    assert row["secret_hash"] == tokens.digest(made["appSecret"])
    assert not any(made["appSecret"] in str(value) for value in row.values())
    assert not any(made["appSecret"] in one["metadata"] for one in told)


def test_secrets_that_work_are_few(as_owner: Person) -> None:
    keep_client(as_owner)
    made = [keep_secret(as_owner) for _ in range(10)]

    full = as_owner.post(path_of(as_owner, "web-app", "secrets"))
    as_owner.ok("DELETE", path_of(as_owner, "web-app", "secrets", made[0]["id"]))

    assert (full.status_code, full.json()["data"]["code"]) == (409, "too_many_app_secrets")
    assert as_owner.post(path_of(as_owner, "web-app", "secrets")).status_code == 201


def test_lists_come_in_pages_the_newest_first(as_owner: Person) -> None:
    made = [keep_client(as_owner, client_id)["id"] for client_id in ("one-1", "two-2", "three-3")]
    secrets = [keep_secret(as_owner, "one-1")["id"] for _ in range(3)]

    for path, all_of in ((path_of(as_owner), made), (path_of(as_owner, "one-1", "secrets"), secrets)):
        page = as_owner.get(f"{path}?limit=1&offset=1")
        assert [one["id"] for one in page.json()["data"]] == [all_of[1]]
        assert page.headers["X-Total-Count"] == "3"
        assert as_owner.get(f"{path}?offset=9").json()["data"] == []
        assert as_owner.get(f"{path}?limit=0").status_code == 400


async def test_of_dead_secrets_the_last_hundred_are_kept(as_owner: Person, owner: asyncpg.Connection) -> None:
    keep_client(as_owner)
    living = [keep_secret(as_owner)["id"] for _ in range(2)]
    await owner.execute(
        "INSERT INTO app_secrets (tenant_id, id, client_id, secret_hash, prefix, mac, created_at, revoked_at) "
        "SELECT $1, gen_random_uuid(), 'web-app', sha256(convert_to($1 || n, 'UTF8')), 'as_' || n, '', "
        "now() - interval '1 hour', now() - n * interval '1 second' FROM generate_series(1, 120) n",
        as_owner.tenant,
    )

    made = keep_secret(as_owner)["id"]

    kept = as_owner.get(path_of(as_owner, "web-app", "secrets"))
    assert kept.headers["X-Total-Count"] == "103"
    assert {one["id"] for one in kept.json()["data"] if one["status"] != "revoked"} == {made, *living}
    dead = {one["prefix"] for one in kept.json()["data"] if one["status"] == "revoked"}
    assert dead == {f"as_{number}" for number in range(1, 101)}


def test_a_repeated_request_is_done_once_and_shows_no_secret_again(as_owner: Person) -> None:
    key = {"Idempotency-Key": "make-it-once"}
    made = [as_owner.post(path_of(as_owner), json=client_body(), headers=key) for _ in range(2)]
    shown = [as_owner.post(path_of(as_owner, "web-app", "secrets"), headers=key) for _ in range(2)]

    assert [answer.status_code for answer in made] == [201, 201]
    assert made[0].json() == made[1].json()
    assert made[1].headers["Idempotency-Replayed"] == "true"
    assert (shown[0].status_code, shown[1].status_code) == (201, 409)
    assert shown[1].json()["data"]["code"] == "idempotency_secret_shown"
    assert len(as_owner.ok("GET", path_of(as_owner, "web-app", "secrets"))) == 1


@pytest.mark.parametrize(
    "forgery",
    [
        "UPDATE app_clients SET document = replace(document, 'app.example', 'evil.example') WHERE tenant_id = $1",
        "UPDATE app_clients SET enabled = NOT enabled WHERE tenant_id = $1",
        "UPDATE app_clients SET id = 'other' WHERE tenant_id = $1",
    ],
)
async def test_a_client_that_somebody_else_wrote_is_not_believed(
    as_owner: Person, owner: asyncpg.Connection, forgery: str
) -> None:
    keep_client(as_owner)
    await owner.execute(forgery, as_owner.tenant)

    answer = as_owner.post(path_of(as_owner), json=client_body("another"))

    assert (answer.status_code, answer.json()["data"]["code"]) == (503, "sealed_value_tampered")


async def test_a_secret_that_somebody_else_wrote_does_nothing(as_owner: Person, owner: asyncpg.Connection) -> None:
    keep_client(as_owner)
    await owner.execute(
        "INSERT INTO app_secrets (tenant_id, id, client_id, secret_hash, prefix, mac, created_at) "
        "VALUES ($1, gen_random_uuid(), 'web-app', $2, 'as_x', decode('00', 'hex'), now())",
        as_owner.tenant,
        tokens.digest("forged-secret"),
    )

    with as_app(as_owner, f"{as_owner.tenant}/web-app", "forged-secret") as app:
        assert app.post("/agents", json={"id": "forged", "name": "x"}).status_code == 401
