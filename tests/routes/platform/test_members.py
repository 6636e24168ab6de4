"""Members of a tenant, named by the operator; what they may do follows at once."""

import asyncio
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import asyncpg
import httpx
import pytest

from tests.fixtures.callers import Client, Tenant
from tests.fixtures.people import Person, member
from tests.fixtures.postgres import Database
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import greet
from tests.routes.tenants.makers import client_body, holding, somebody_waits


def path_of(tenant: Tenant, *rest: str) -> str:
    return "/".join([f"/platform/tenants/{tenant.id}/members", *rest])


def test_a_user_becomes_a_member_and_gets_another_role(as_platform: Client, tenant: Tenant, person: Person) -> None:
    added = as_platform.post(path_of(tenant), json={"userId": person.id, "role": "viewer"})
    changed = as_platform.post(path_of(tenant), json={"userId": person.id, "role": "admin"})

    assert [answer.status_code for answer in (added, changed)] == [201, 200]
    assert added.json()["data"] == {**changed.json()["data"], "role": "viewer"}
    assert changed.json()["data"]["role"] == "admin"
    assert person.switch(tenant.id)["tenant"]["role"] == "admin"


def test_members_are_listed(as_platform: Client, tenant: Tenant, person: Person) -> None:
    as_platform.ok("POST", path_of(tenant), {"userId": person.id, "role": "billing"})

    answer = as_platform.get(path_of(tenant))

    (found,) = answer.json()["data"]
    assert (found["userId"], found["role"], found["email"]) == (person.id, "billing", None)
    assert found["walletAddress"].lower() == person.wallet.address.lower()
    assert answer.headers["X-Total-Count"] == "1"


def test_a_missing_tenant_or_member_is_404(as_platform: Client, tenant: Tenant, person: Person) -> None:
    nobody = str(uuid.uuid4())
    known = {"userId": person.id, "role": "viewer"}

    answers = [
        as_platform.post(path_of(tenant), json={"userId": nobody, "role": "viewer"}),
        as_platform.post("/platform/tenants/absent/members", json=known),
        as_platform.get("/platform/tenants/absent/members"),
        as_platform.delete(path_of(tenant, nobody)),
        as_platform.delete(f"/platform/tenants/absent/members/{person.id}"),
    ]

    assert [answer.status_code for answer in answers] == [404] * 5
    assert [answer.json()["data"]["code"] for answer in answers] == [
        "user_absent",
        "tenant_absent",
        "tenant_absent",
        "member_absent",
        "tenant_absent",
    ]


@pytest.mark.parametrize(
    ("bad", "field"),
    [({"role": "root"}, "role"), ({"role": ""}, "role"), ({"userId": "x"}, "userId"), ({"surplus": 1}, "surplus")],
)
def test_a_bad_body_is_400(as_platform: Client, tenant: Tenant, bad: dict[str, object], field: str) -> None:
    answer = as_platform.post(path_of(tenant), json={"userId": str(uuid.uuid4()), "role": "viewer"} | bad)

    assert (answer.status_code, answer.json()["data"]["fields"]) == (400, [field])


def test_only_the_operator_names_members(as_nobody: Client, as_owner: Person, tenant: Tenant) -> None:
    body = {"userId": as_owner.id, "role": "owner"}

    answers = [one.post(path_of(tenant), json=body) for one in (as_nobody, tenant, as_owner)]

    assert [answer.status_code for answer in answers] == [401, 403, 403]


@pytest.mark.parametrize("role", ["developer", "viewer", "member"])
def test_a_changed_role_counts_at_once_for_a_living_session(
    as_platform: Client, as_owner: Person, tenant: Tenant, role: str
) -> None:
    clients = f"/tenants/{tenant.id}/app-clients"
    as_owner.ok("POST", clients, client_body())

    as_platform.ok("POST", path_of(tenant), {"userId": as_owner.id, "role": role, "force": True})

    answer = as_owner.post(clients, json=client_body("another"))
    assert (answer.status_code, answer.json()["data"]["code"]) == (403, "wrong_role")


def test_a_removed_member_reaches_the_tenant_no_more(as_platform: Client, as_owner: Person, tenant: Tenant) -> None:
    gone = as_platform.ok("DELETE", path_of(tenant, as_owner.id), {"force": True})

    answers = [
        as_owner.get(f"/tenants/{tenant.id}"),
        as_owner.post(f"/tenants/{tenant.id}/app-clients", json=client_body()),
        as_owner.post("/agents", json={"id": "late", "name": "x"}),
    ]
    assert gone == {"deleted": as_owner.id}
    assert {(answer.status_code, answer.json()["data"]["code"]) for answer in answers} == {(401, "session_revoked")}
    assert as_platform.get(path_of(tenant)).json()["data"] == []


@pytest.mark.parametrize("role", ["viewer", None])
def test_the_signer_looks_itself_whatever_the_api_believes(
    service: Service, as_platform: Client, as_owner: Person, tenant: Tenant, role: str | None
) -> None:
    proof = {"kind": "session", "value": as_owner.session["token"]}
    if role is None:
        as_platform.ok("DELETE", path_of(tenant, as_owner.id), {"force": True})
    else:
        as_platform.ok("POST", path_of(tenant), {"userId": as_owner.id, "role": role, "force": True})

    with greet(service) as wire:
        outcomes = [
            wire.ask("CreateSigningKey", {}, proof),
            wire.ask("FreezeTenant", {"reason": None}, proof),
            wire.ask("PutAppClients", {"clients": [client_body()], "mode": "upsert"}, proof),
        ]

    expected = ("BadProof", "session_revoked") if role is None else ("Forbidden", "wrong_role")
    assert {(one["kind"], one["code"]) for one in outcomes} == {expected}


@pytest.mark.parametrize("role", ["viewer", "admin", None])
async def test_a_role_that_changes_while_the_act_is_under_way_ends_it(
    as_platform: Client,
    as_owner: Person,
    tenant: Tenant,
    database: Database,
    owner: asyncpg.Connection,
    role: str | None,
) -> None:
    async with holding(database, "SELECT FROM tenants WHERE id = $1 FOR UPDATE", tenant.id) as meanwhile:
        acting = asyncio.create_task(
            asyncio.to_thread(as_owner.post, f"/tenants/{tenant.id}/app-clients", json=client_body())
        )
        # The signer has believed the session by now, and waits for its turn.
        await somebody_waits(owner, "begin_administration")
        where = "WHERE tenant_id = $1 AND user_id = $2"
        if role is None:
            await meanwhile.execute(f"DELETE FROM memberships {where}", tenant.id, as_owner.id)
        else:
            await meanwhile.execute(
                f"UPDATE memberships SET role = $3, mac = $4 {where}", tenant.id, as_owner.id, role, b"another"
            )

    answer = await acting
    assert answer.status_code == 401
    assert await owner.fetchval("SELECT count(*) FROM app_clients WHERE tenant_id = $1", tenant.id) == 0


async def test_a_membership_that_somebody_else_wrote_is_not_believed(
    service: Service, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    with closing(member(service, tenant, "viewer", mfa=True)) as somebody:
        await owner.execute("UPDATE memberships SET role = 'owner' WHERE user_id = $1", somebody.id)

        answer = somebody.post(f"/tenants/{tenant.id}/app-clients", json=client_body())

    assert answer.status_code == 401


@pytest.mark.parametrize("act", ["removed", "made a viewer"])
def test_the_last_owner_goes_only_when_asked_for(
    as_platform: Client, as_owner: Person, tenant: Tenant, person: Person, act: str
) -> None:
    def attempt(**force: bool) -> httpx.Response:
        if act == "removed":
            return as_platform.request("DELETE", path_of(tenant, as_owner.id), json=force)
        return as_platform.post(path_of(tenant), json={"userId": as_owner.id, "role": "viewer", **force})

    refused = [attempt(), attempt(force=False)]
    as_platform.ok("POST", path_of(tenant), {"userId": person.id, "role": "admin"})
    refused.append(attempt())

    assert {(answer.status_code, answer.json()["data"]["code"]) for answer in refused} == {(409, "last_owner")}
    assert "force" in refused[0].json()["error"]
    assert as_owner.get(f"/tenants/{tenant.id}").status_code == 200
    assert attempt(force=True).status_code == 200
    assert tenant.get(f"/tenants/{tenant.id}").status_code == 200


@pytest.mark.parametrize("act", ["removed", "made a viewer"])
def test_of_two_owners_one_goes_and_the_other_is_the_last(
    as_platform: Client, as_owner: Person, tenant: Tenant, person: Person, act: str
) -> None:
    as_platform.ok("POST", path_of(tenant), {"userId": person.id, "role": "owner"})

    def go(user: str) -> int:
        if act == "removed":
            return as_platform.delete(path_of(tenant, user)).status_code
        return as_platform.post(path_of(tenant), json={"userId": user, "role": "viewer"}).status_code

    with ThreadPoolExecutor(2) as pool:
        statuses = sorted(pool.map(go, [as_owner.id, person.id]))

    assert statuses == [200, 409]


async def test_a_deactivated_person_owns_nothing(
    as_platform: Client, as_owner: Person, tenant: Tenant, person: Person, owner: asyncpg.Connection
) -> None:
    as_platform.ok("POST", path_of(tenant), {"userId": person.id, "role": "owner"})
    await owner.execute("UPDATE users SET deactivated_at = now() WHERE id = $1", person.id)

    assert as_platform.delete(path_of(tenant, as_owner.id)).status_code == 409


def test_an_owner_who_stays_owner_is_no_change(as_platform: Client, as_owner: Person, tenant: Tenant) -> None:
    assert as_platform.post(path_of(tenant), json={"userId": as_owner.id, "role": "owner"}).status_code == 200


async def test_each_change_is_told_in_the_tenants_log(
    as_platform: Client, person: Person, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    for role in ("viewer", "viewer", "owner"):
        as_platform.ok("POST", path_of(tenant), {"userId": person.id, "role": role})
    as_platform.ok("DELETE", path_of(tenant, person.id), {"force": True})

    rows = await owner.fetch(
        "SELECT action, metadata, actor_id FROM audit WHERE tenant_id = $1 AND action LIKE 'membership.%' ORDER BY seq",
        tenant.id,
    )
    assert [(row["action"], row["metadata"]) for row in rows] == [
        ("membership.added", '{"role":"viewer"}'),
        ("membership.changed", '{"role":"owner","before":"viewer"}'),
        ("membership.removed", '{"before":"owner"}'),
    ]
    assert {row["actor_id"].split(":")[0] for row in rows} == {"platform-key"}


def test_a_repeated_request_gets_the_first_answer(as_platform: Client, person: Person, tenant: Tenant) -> None:
    key = {"Idempotency-Key": f"member-{uuid.uuid4()}"}
    body = {"userId": person.id, "role": "viewer"}

    answers = [as_platform.post(path_of(tenant), json=body, headers=key) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[1].headers["Idempotency-Replayed"] == "true"
