"""People whom the operator names before they ever sign in, and the external ids of their wallets."""

import asyncio
import json
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import asyncpg
import httpx
import pytest

from tests.fixtures.callers import Client, Tenant, new_tenant, platform_client
from tests.fixtures.people import Person, fresh_address
from tests.fixtures.server import Service
from tests.outside.smtp_server import Mailbox

CLIENTS = 64
CONNECT = "/platform/users/wallet/external-id/connect-or-create"


def fresh() -> str:
    """An external id that nobody has."""
    return f"order:{uuid.uuid4().hex[:12]}@shop"


def name_user(operator: Client, email: str | None = None, **fields: Any) -> str:
    """A user whom the operator names; their id."""
    return str(operator.ok("POST", "/platform/users", {"email": email or fresh_address(), **fields})["userId"])


def connect(operator: Client, tenant: Tenant, external_id: str, **fields: Any) -> httpx.Response:
    return operator.post(CONNECT, json={"tenantId": tenant.id, "walletExternalId": external_id, **fields})


def look_up(operator: Client, **query: str) -> dict[str, Any]:
    answer = operator.get("/platform/users/lookup", params=query)
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json()["data"]["user"]
    return found


def code_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["data"]["code"]


# ---- POST /platform/users


def test_a_user_is_made_once_and_found_afterwards(as_platform: Client) -> None:
    address = fresh_address()
    body = {"email": address.upper(), "name": "Ada", "customMetadata": {"plan": "gold", "seats": [1, 2.5]}}

    made = as_platform.post("/platform/users", json=body)
    again = as_platform.post("/platform/users", json={"email": address, "name": "Somebody else"})

    assert (made.status_code, again.status_code) == (201, 200)
    user = made.json()["data"]["userId"]
    assert made.json()["data"] == {"userId": user, "isNew": True, "tenantId": None, "walletExternalId": None}
    assert again.json()["data"]["userId"] == user
    found = look_up(as_platform, email=address)
    assert (found["userId"], found["name"], found["email"], found["emailVerified"]) == (user, "Ada", address, False)
    assert found["customMetadata"] == {"plan": "gold", "seats": [1, 2.5]}
    assert (found["tenantIds"], found["linkedAccounts"], found["walletExternalIds"]) == ([], [], [])
    assert (found["walletAddress"], found["walletChain"], found["deactivatedAt"]) == (None, None, None)
    assert found["updatedAt"] == found["createdAt"]


def test_metadata_may_come_with_every_letter_escaped(as_platform: Client) -> None:
    address, largest = fresh_address(), {"x": "é" * (8 * 1024 - 4)}
    content = json.dumps({"email": address, "customMetadata": largest})

    made = as_platform.post("/platform/users", content=content, headers={"Content-Type": "application/json"})

    assert made.status_code == 201
    assert look_up(as_platform, email=address)["customMetadata"] == largest


def test_a_tenant_gets_a_member_with_an_external_id(as_platform: Client, tenant: Tenant) -> None:
    address, external_id = fresh_address(), fresh()
    body = {"email": address, "emailVerified": True, "tenantId": tenant.id, "externalId": f"  {external_id} "}

    made = as_platform.post("/platform/users", json=body)

    assert made.status_code == 201, made.text
    assert made.json()["data"]["walletExternalId"] == external_id
    found = look_up(as_platform, walletExternalId=external_id, tenantId=tenant.id)
    assert (found["email"], found["emailVerified"], found["tenantIds"]) == (address, True, [tenant.id])
    assert found["walletExternalIds"] == [{"tenantId": tenant.id, "externalId": external_id}]
    (member,) = as_platform.ok("GET", f"/platform/tenants/{tenant.id}/members")
    assert (member["userId"], member["role"]) == (found["userId"], "member")


def test_a_named_user_signs_in_with_the_address_and_has_proven_it_then(
    service: Service, as_platform: Client, tenant: Tenant, mailbox: Mailbox
) -> None:
    address = fresh_address()
    user = name_user(as_platform, address, tenantId=tenant.id)

    with closing(Person(base_url=service.url, timeout=30)) as person:
        person.ok("POST", "/auth/email/send", {"email": address})
        body = {"email": address, "code": mailbox.code_for(address), "tenantId": tenant.id}
        person.take(person.ok("POST", "/auth/email/verify", body))

    assert (person.id, person.role) == (user, "member")
    assert look_up(as_platform, email=address)["emailVerified"] is True


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        ({"email": "nobody"}, "bad_email_address"),
        ({"email": "a@x.com@y.com"}, "bad_email_address"),
        ({"walletExternalId": "x"}, "external_id_needs_tenant"),
        ({"walletExternalId": "a b", "tenantId": "t"}, "bad_external_id"),
        ({"walletExternalId": "x" * 129, "tenantId": "t"}, "bad_external_id"),
        ({"walletExternalId": " ", "tenantId": "t"}, "bad_external_id"),
        ({"walletExternalId": "é", "tenantId": "t"}, "bad_external_id"),
        ({"walletExternalId": "x\n", "tenantId": "absent"}, "tenant_absent"),
        ({"walletExternalId": "x", "externalId": "y", "tenantId": "t"}, "two_external_ids"),
        ({"wallet_external_id": "x", "external_id": "y", "tenantId": "t"}, "two_external_ids"),
        ({"surplus": 1}, "bad_body"),
        ({"emailVerified": "yes"}, "bad_body"),
        ({"role": "owner"}, "bad_body"),
    ],
)
def test_a_bad_body_is_named(as_platform: Client, bad: dict[str, Any], code: str) -> None:
    answer = as_platform.post("/platform/users", json={"email": fresh_address(), **bad})

    assert code_of(answer) == (404 if code == "tenant_absent" else 400, code)


def nest(levels: int) -> Any:
    """Objects and lists by turns, so many of them."""
    found: Any = 1
    for level in range(levels - 1):
        found = [found] if level % 2 else {"a": found}
    return {"a": found}


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        (nest(9), "bad_custom_metadata"),
        ({"a": "x" * (16 * 1024 - 7)}, "bad_custom_metadata"),
        ({"a": "é" * (8 * 1024)}, "bad_custom_metadata"),
        ({"__proto__": {}}, "bad_custom_metadata"),
        ({"a": [{"constructor": 1}]}, "bad_custom_metadata"),
        ({"a": 2**53}, "bad_custom_metadata"),
        ({"a": [-(2**53)]}, "bad_custom_metadata"),
        ({"a": 1e300}, "bad_custom_metadata"),
        ({"a": 2**64}, "number_out_of_range"),
        ([], "bad_body"),
        ("{}", "bad_body"),
        (None, "bad_body"),
    ],
    ids=range(12),
)
@pytest.mark.parametrize("path", ["/platform/users", CONNECT])
def test_metadata_that_readers_would_misread_is_refused(
    as_platform: Client, tenant: Tenant, path: str, metadata: Any, code: str
) -> None:
    where = {"tenantId": tenant.id, "walletExternalId": fresh()}

    answer = as_platform.post(path, json={"email": fresh_address(), **where, "customMetadata": metadata})

    assert code_of(answer) == (400, code)
    assert as_platform.ok("GET", f"/platform/tenants/{tenant.id}/users") == []


@pytest.mark.parametrize("metadata", [nest(8), {"a": "x" * (16 * 1024 - 8)}, {"a": [2**53 - 1, -1.5, True, None]}])
def test_metadata_within_the_bounds_comes_back_as_it_was(as_platform: Client, metadata: Any) -> None:
    address = fresh_address()
    name_user(as_platform, address, customMetadata=metadata)

    assert look_up(as_platform, email=address)["customMetadata"] == metadata


def test_only_the_operator_names_people(as_nobody: Client, as_owner: Person, tenant: Tenant) -> None:
    body = {"email": fresh_address()}

    answers = [one.post("/platform/users", json=body) for one in (as_nobody, tenant, as_owner)]

    assert [answer.status_code for answer in answers] == [401, 403, 403]


# ---- external ids


def test_an_external_id_is_given_once_and_again_the_same(as_platform: Client, tenant: Tenant) -> None:
    user, external_id = name_user(as_platform, tenantId=tenant.id), fresh()
    path = f"/platform/users/{user}/wallet/external-id"

    first = as_platform.ok("POST", path, {"tenantId": tenant.id, "walletExternalId": external_id})
    # Blanks around it are dropped, also those of other alphabets; null is a name that was not sent.
    twins: list[dict[str, Any]] = [
        {"externalId": f"\t{external_id} "},
        {"walletExternalId": None, "external_id": f"\u2003{external_id}\ufeff"},
    ]
    again = [as_platform.ok("POST", path, {"tenantId": tenant.id, **twin}) for twin in twins]
    found = as_platform.ok("GET", f"/platform/tenants/{tenant.id}/users?walletExternalId=%20{external_id}%0A")
    another = as_platform.post(path, json={"tenantId": tenant.id, "walletExternalId": fresh()})

    assert first == {"userId": user, "tenantId": tenant.id, "walletExternalId": external_id}
    assert again == [first] * 2
    assert [one["userId"] for one in found] == [user]
    assert code_of(another) == (409, "external_id_set")


def test_an_external_id_of_somebody_else_is_taken(as_platform: Client, tenant: Tenant) -> None:
    external_id = fresh()
    name_user(as_platform, tenantId=tenant.id, walletExternalId=external_id)
    user = name_user(as_platform, tenantId=tenant.id)
    body = {"tenantId": tenant.id, "walletExternalId": external_id}

    answers = [
        as_platform.post(f"/platform/users/{user}/wallet/external-id", json=body),
        as_platform.post("/platform/users", json={"email": fresh_address(), **body}),
        as_platform.post(CONNECT, json={"email": look_up_email(as_platform, user, tenant), **body}),
    ]

    assert [code_of(answer) for answer in answers] == [(409, "external_id_taken")] * 3
    assert len(as_platform.ok("GET", f"/platform/tenants/{tenant.id}/users")) == 2


def look_up_email(operator: Client, user: str, tenant: Tenant) -> str:
    """The address of a member."""
    found = operator.ok("GET", f"/platform/tenants/{tenant.id}/users")
    return next(str(one["email"]) for one in found if one["userId"] == user)


def test_the_same_external_id_in_another_tenant_is_another(
    as_platform: Client, tenant: Tenant, other_tenant: Tenant
) -> None:
    external_id = fresh()

    users = {name_user(as_platform, tenantId=one.id, walletExternalId=external_id) for one in (tenant, other_tenant)}

    assert len(users) == 2


def test_of_a_missing_user_or_tenant_it_is_404_and_a_membership_is_made(as_platform: Client, tenant: Tenant) -> None:
    user, external_id = name_user(as_platform), fresh()
    absent = f"/platform/users/{uuid.uuid4()}/wallet/external-id"
    here = f"/platform/users/{user}/wallet/external-id"

    answers = [
        as_platform.post(absent, json={"tenantId": tenant.id, "walletExternalId": external_id}),
        as_platform.post(here, json={"tenantId": "absent", "walletExternalId": external_id}),
    ]
    as_platform.ok("POST", here, {"tenantId": tenant.id, "walletExternalId": external_id})

    assert [code_of(answer) for answer in answers] == [(404, "user_absent"), (404, "tenant_absent")]
    [made] = as_platform.ok("GET", f"/platform/tenants/{tenant.id}/members")
    assert (made["userId"], made["role"]) == (user, "member")
    [found] = as_platform.ok("GET", f"/platform/tenants/{tenant.id}/users?walletExternalId={external_id}")
    assert found["userId"] == user


def test_without_an_external_id_it_is_named(as_platform: Client, tenant: Tenant) -> None:
    user = name_user(as_platform, tenantId=tenant.id)
    paths = ["/platform/users/wallet/external-id", f"/platform/users/{user}/wallet/external-id", CONNECT]

    answers = [as_platform.post(path, json={"tenantId": tenant.id}) for path in paths]

    assert [code_of(answer) for answer in answers] == [(400, "external_id_missing")] * 3


# ---- connect or create


def test_connect_makes_a_user_and_finds_them_again(as_platform: Client, tenant: Tenant) -> None:
    address, external_id = fresh_address(), fresh()

    made = connect(as_platform, tenant, external_id, email=address, role="admin", name="Ada")
    found = connect(as_platform, tenant, external_id, email=address, role="owner", name="Another")

    assert (made.status_code, found.status_code) == (201, 200)
    first, again = made.json()["data"], found.json()["data"]
    assert (first["isNew"], first["createdExternalId"]) == (True, True)
    assert (again["isNew"], again["createdExternalId"]) == (False, False)
    assert first["user"] == again["user"] == look_up(as_platform, email=address)
    assert (first["user"]["name"], first["walletExternalId"], first["tenantId"]) == ("Ada", external_id, tenant.id)
    (member,) = as_platform.ok("GET", f"/platform/tenants/{tenant.id}/members")
    assert (member["userId"], member["role"]) == (first["userId"], "admin")


def test_connect_gives_the_external_id_to_a_known_address(as_platform: Client, tenant: Tenant) -> None:
    address = fresh_address()
    user = name_user(as_platform, address)

    answer = connect(as_platform, tenant, fresh(), email=address)

    assert answer.status_code == 200, answer.text
    assert answer.json()["data"]["userId"] == user
    assert (answer.json()["data"]["isNew"], answer.json()["data"]["createdExternalId"]) == (False, True)


def test_a_user_without_an_address_gets_one_later_and_keeps_it(as_platform: Client, tenant: Tenant) -> None:
    external_id, address = fresh(), fresh_address()

    nobody_signs_in = connect(as_platform, tenant, external_id).json()["data"]["user"]
    with_address = connect(as_platform, tenant, external_id, email=address, emailVerified=True).json()["data"]["user"]
    as_before = connect(as_platform, tenant, external_id, email=fresh_address()).json()["data"]["user"]

    assert (nobody_signs_in["email"], nobody_signs_in["emailVerified"]) == (None, None)
    assert (with_address["email"], with_address["emailVerified"]) == (address, True)
    assert as_before == with_address


def test_an_external_id_and_an_address_of_two_people_conflict(as_platform: Client, tenant: Tenant) -> None:
    external_id, address = fresh(), fresh_address()
    name_user(as_platform, tenantId=tenant.id, walletExternalId=external_id)
    name_user(as_platform, address)

    assert code_of(connect(as_platform, tenant, external_id, email=address)) == (409, "external_id_taken")


def test_an_address_with_another_external_id_there_conflicts(as_platform: Client, tenant: Tenant) -> None:
    address = fresh_address()
    name_user(as_platform, address, tenantId=tenant.id, walletExternalId=fresh())

    assert code_of(connect(as_platform, tenant, fresh(), email=address)) == (409, "external_id_set")


@pytest.mark.parametrize("role", ["developer", "viewer", "root", ""])
def test_connect_takes_three_roles(as_platform: Client, tenant: Tenant, role: str) -> None:
    assert code_of(connect(as_platform, tenant, fresh(), role=role)) == (400, "bad_body")


def test_a_membership_that_is_there_keeps_its_role(as_platform: Client, as_owner: Person, tenant: Tenant) -> None:
    path = f"/platform/users/{as_owner.id}/wallet/external-id"
    external_id = fresh()
    as_platform.ok("POST", path, {"tenantId": tenant.id, "walletExternalId": external_id})

    connect(as_platform, tenant, external_id, role="member")

    (member,) = as_platform.ok("GET", f"/platform/tenants/{tenant.id}/members")
    assert member["role"] == "owner"


@pytest.mark.parametrize("with_address", [True, False])
async def test_of_64_clients_at_once_one_makes_the_person(
    service: Service, as_platform: Client, tenant: Tenant, owner: asyncpg.Connection, *, with_address: bool
) -> None:
    external_ids = [fresh() for _ in range(4)]
    addresses = [fresh_address() if with_address else None for _ in external_ids]

    def one(number: int) -> httpx.Response:
        place = number % len(external_ids)
        more = {"email": addresses[place]} if with_address else {}
        with platform_client(service) as operator:
            return connect(operator, tenant, external_ids[place], **more)

    with ThreadPoolExecutor(CLIENTS) as pool:
        answers = await asyncio.to_thread(lambda: list(pool.map(one, range(CLIENTS))))

    assert Counter(answer.status_code for answer in answers) == {
        201: len(external_ids),
        200: CLIENTS - len(external_ids),
    }
    users = {(answer.json()["data"]["walletExternalId"], answer.json()["data"]["userId"]) for answer in answers}
    assert len(users) == len(external_ids)
    assert len(as_platform.ok("GET", f"/platform/tenants/{tenant.id}/users")) == len(external_ids)
    made = "SELECT count(*) FROM audit WHERE tenant_id = $1 AND action = 'user.created'"
    assert await owner.fetchval(made, tenant.id) == len(external_ids)


def test_of_16_clients_with_one_address_in_two_tenants_one_makes_the_person(
    service: Service, tenant: Tenant, other_tenant: Tenant
) -> None:
    address, external_id = fresh_address(), fresh()

    def one(number: int) -> httpx.Response:
        with platform_client(service) as operator:
            return connect(operator, (tenant, other_tenant)[number % 2], external_id, email=address)

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(one, range(16)))

    assert sorted(answer.status_code for answer in answers) == [200] * 15 + [201]
    assert len({answer.json()["data"]["userId"] for answer in answers}) == 1


async def test_each_act_is_told_in_the_tenants_log(
    as_platform: Client, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    external_id = fresh()
    user = connect(as_platform, tenant, external_id).json()["data"]["userId"]
    connect(as_platform, tenant, external_id, email=fresh_address())
    connect(as_platform, tenant, external_id)

    rows = await owner.fetch(
        "SELECT action, metadata FROM audit WHERE tenant_id = $1 AND resource_id = $2 ORDER BY seq", tenant.id, user
    )

    assert [row["action"] for row in rows] == [
        "user.created",
        "user.external_id_assigned",
        "membership.added",
        "user.email_added",
    ]
    assert all("@example.com" not in row["metadata"] for row in rows)


async def test_an_external_id_that_somebody_else_wrote_is_not_believed(
    as_platform: Client, tenant: Tenant, person: Person, owner: asyncpg.Connection
) -> None:
    external_id = fresh()
    connect(as_platform, tenant, external_id)
    await owner.execute("UPDATE wallet_external_ids SET user_id = $1 WHERE external_id = $2", person.id, external_id)

    answer = connect(as_platform, tenant, external_id, role="owner")

    assert code_of(answer) == (503, "sealed_value_tampered")
    assert len(as_platform.ok("GET", f"/platform/tenants/{tenant.id}/members")) == 1


def test_a_repeated_request_gets_the_first_answer(as_platform: Client, tenant: Tenant) -> None:
    key = {"Idempotency-Key": f"connect-{uuid.uuid4()}"}
    body = {"tenantId": tenant.id, "walletExternalId": fresh(), "email": fresh_address()}

    answers = [as_platform.post(CONNECT, json=body, headers=key) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].json() == answers[1].json()
    assert answers[1].headers["Idempotency-Replayed"] == "true"


def test_a_tenant_has_so_many_members_and_what_is_too_much_makes_nobody(service: Service, as_platform: Client) -> None:
    address = fresh_address()
    with new_tenant(service, "few-members") as few:
        name_user(as_platform, tenantId=few.id)

        answers = [
            as_platform.post("/platform/users", json={"email": address, "tenantId": few.id}),
            connect(as_platform, few, fresh()),
        ]

        assert [code_of(answer) for answer in answers] == [(409, "quota_exceeded")] * 2
        assert as_platform.get("/platform/users/lookup", params={"email": address}).status_code == 404
    as_platform.ok("DELETE", "/platform/tenants/few-members")
