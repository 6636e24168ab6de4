"""The operator lists, changes, deactivates and deletes people, and nothing of a tenant's is lost by it."""

import secrets
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import asyncpg
import httpx
import pytest

from tests.fixtures.callers import Agent, Client, Tenant
from tests.fixtures.people import Person, member, says, sign_in
from tests.fixtures.server import Service
from tests.routes.auth.devices import decide, new_device
from tests.routes.platform.test_tenants import _as_operator
from tests.routes.platform.test_users import code_of, name_user

ABSENT = "00000000-0000-4000-8000-000000000000"


def act(operator: Client, user: str, verb: str, **body: Any) -> httpx.Response:
    return operator.post(f"/platform/users/{user}/{verb}", json=body)


def delete(operator: Client, user: str, **body: Any) -> httpx.Response:
    return operator.request("DELETE", f"/platform/users/{user}", json=body)


def read_user(operator: Client, user: str) -> dict[str, Any]:
    found: dict[str, Any] = operator.ok("GET", f"/platform/users/{user}")
    return found


def find(operator: Client, **query: Any) -> tuple[list[str], str | None]:
    """Ids of one page, and the cursor of the next."""
    answer = operator.get("/platform/users", params=query)
    assert answer.is_success, answer.text
    said = answer.json()
    return [one["userId"] for one in said["data"]], said["nextCursor"]


def walk_pages(operator: Client, **query: Any) -> list[list[str]]:
    """Every page of a walk."""
    pages, cursor = find(operator, **query)
    walk = [pages]
    while cursor is not None:
        pages, cursor = find(operator, cursor=cursor, **query)
        walk.append(pages)
    return walk


# ---- list and search


def test_people_are_found_by_a_part_of_name_or_address_page_by_page(as_platform: Client) -> None:
    word = secrets.token_hex(6)
    made = [name_user(as_platform, name=f"Ada {word.upper()} {n}") for n in range(3)]
    made += [name_user(as_platform, f"a.{word}@example.com"), name_user(as_platform, f"b.{word}@example.com")]
    name_user(as_platform, name="Somebody else")

    pages = walk_pages(as_platform, search=word, limit=2)

    assert [one for page in pages for one in page] == made[::-1]
    assert max(len(page) for page in pages) == 2
    assert find(as_platform, search=f"{word}@EXAMPLE.com")[0] == made[:2:-1]
    assert [one for page in walk_pages(as_platform, search=f"%{word}") for one in page] == []


def test_people_are_listed_newest_first_and_by_whether_they_are_active(as_platform: Client) -> None:
    word = secrets.token_hex(6)
    users = [name_user(as_platform, name=word) for _ in range(2)]
    act(as_platform, users[0], "deactivate")

    assert find(as_platform, limit=2)[0] == users[::-1]
    assert [find(as_platform, search=word, active=active)[0] for active in ("true", "false")] == [users[1:], users[:1]]


def test_a_cursor_is_of_its_own_search(as_platform: Client) -> None:
    word = secrets.token_hex(6)
    [name_user(as_platform, name=word) for _ in range(2)]
    cursor = find(as_platform, search=word, limit=1)[1]

    answers = [as_platform.get("/platform/users", params=query) for query in ({"cursor": cursor}, {"search": "x"})]

    assert [code_of(answer) for answer in answers] == [(400, "other_cursor"), (400, "bad_query")]


# ---- change


def test_the_operator_changes_what_is_shown_of_a_user(as_platform: Client) -> None:
    user = name_user(as_platform, name="Ada", customMetadata={"plan": "gold"})
    before = read_user(as_platform, user)

    changed = as_platform.ok("PATCH", f"/platform/users/{user}", {"customMetadata": {"plan": "iron"}})
    unnamed = as_platform.ok("PATCH", f"/platform/users/{user}", {"name": None})

    assert (changed["name"], changed["customMetadata"]) == ("Ada", {"plan": "iron"})
    assert (unnamed["name"], unnamed["customMetadata"], unnamed["email"]) == (None, {"plan": "iron"}, before["email"])
    assert unnamed["updatedAt"] > before["updatedAt"]
    assert read_user(as_platform, user) == unnamed


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"email": "a@example.com"}, "bad_body"),
        ({"customMetadata": None}, "bad_body"),
        ({"customMetadata": {"a": 2**53}}, "bad_custom_metadata"),
        ({"name": ""}, "bad_body"),
    ],
    ids=str,
)
def test_a_change_that_is_none_is_refused(as_platform: Client, body: dict[str, Any], code: str) -> None:
    user = name_user(as_platform, name="Ada")

    assert code_of(as_platform.patch(f"/platform/users/{user}", json=body)) == (400, code)
    assert read_user(as_platform, user)["name"] == "Ada"


# ---- deactivate


def test_a_deactivated_user_is_out_at_once_and_comes_in_again_afterwards(
    service: Service, as_platform: Client, as_nobody: Client, person: Person
) -> None:
    device = new_device(as_nobody, person.tenant)
    assert decide(person, device).status_code == 200

    over = act(as_platform, person.id, "deactivate").json()["data"]
    again = act(as_platform, person.id, "deactivate").json()["data"]
    refused = [
        person.get("/auth/session"),
        person.post("/auth/refresh", json={"refreshToken": person.session["refreshToken"]}),
        device.poll(),
    ]
    with Client(base_url=service.url, timeout=30) as browser:
        proof = person.wallet.sign_in(says(service, browser.ok("GET", "/auth/nonce")["nonce"]))
        turned_away = browser.post("/auth/verify", json={"message": proof.message, "signature": proof.signature})
    back = act(as_platform, person.id, "reactivate").json()["data"]

    assert over["deactivatedAt"] == again["deactivatedAt"] is not None
    assert [answer.status_code for answer in refused] == [401, 401, 400]
    assert code_of(turned_away) == (401, "deactivated")
    assert (back["deactivatedAt"], person.get("/auth/session").status_code) == (None, 401)
    with closing(sign_in(service, person.wallet)) as returned:
        assert returned.id == person.id


def test_a_tenant_goes_on_without_its_user(as_platform: Client, as_owner: Person, tenant: Tenant, agent: Agent) -> None:
    act(as_platform, as_owner.id, "deactivate", force=True)

    assert agent.sign().status_code == 200
    assert tenant.get("/agents").status_code == 200


def test_the_last_owner_of_a_tenant_goes_by_force_alone(
    service: Service, as_platform: Client, as_owner: Person, tenant: Tenant
) -> None:
    refused = act(as_platform, as_owner.id, "deactivate")
    with closing(member(service, tenant, "owner")) as second:
        spared = act(as_platform, as_owner.id, "deactivate")
        other = act(as_platform, second.id, "deactivate")

    assert code_of(refused) == code_of(other) == (409, "last_owner")
    assert refused.json()["data"]["tenantIds"] == [tenant.id]
    assert tenant.id in refused.json()["error"]
    assert spared.status_code == 200
    assert act(as_platform, second.id, "deactivate", force=True).status_code == 200


def test_of_two_owners_who_go_at_once_one_stays(
    service: Service, as_platform: Client, as_owner: Person, tenant: Tenant
) -> None:
    with closing(member(service, tenant, "owner")) as second:
        pair = (as_owner.id, second.id)
    with ThreadPoolExecutor(2) as both:
        answers = list(both.map(lambda user: act(as_platform, user, "deactivate"), pair))

    assert sorted(answer.status_code for answer in answers) == [200, 409]


# ---- delete


async def test_a_user_is_deleted_with_what_they_sign_in_with(
    service: Service, as_platform: Client, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    with closing(member(service, tenant, "viewer", mfa=True)) as person:
        user, wallet = person.id, person.wallet
    active = delete(as_platform, user)
    act(as_platform, user, "deactivate")
    as_platform.ok("DELETE", f"/platform/tenants/personal-{user}")

    gone = delete(as_platform, user)

    assert code_of(active) == (409, "user_active")
    assert gone.json()["data"] == {"deleted": user}
    assert code_of(as_platform.get(f"/platform/users/{user}")) == (404, "user_absent")
    for table in ("sessions", "memberships", "identities", "factors"):
        assert await owner.fetchval(f"SELECT count(*) FROM {table} WHERE user_id = $1", user) == 0
    with closing(sign_in(service, wallet)) as stranger:
        assert stranger.id != user


def test_a_user_with_an_own_tenant_keeps_it(as_platform: Client, person: Person) -> None:
    person.enrol_totp()
    wallet = person.ok("POST", "/user/me/wallet", {})
    act(as_platform, person.id, "deactivate")

    refused = delete(as_platform, person.id, force=True)

    own = f"personal-{person.id}"
    assert code_of(refused) == (409, "user_has_tenant")
    assert refused.json()["data"]["tenantId"] == own
    assert read_user(as_platform, person.id)["tenantIds"] == [own]
    assert as_platform.ok("GET", f"/platform/tenants/{own}")["agentCount"] == 1
    assert wallet["agentId"]


def test_the_last_owner_of_a_tenant_is_deleted_by_force_alone(as_platform: Client, tenant: Tenant) -> None:
    user = name_user(as_platform)
    as_platform.ok("POST", f"/platform/tenants/{tenant.id}/members", {"userId": user, "role": "owner"})
    act(as_platform, user, "deactivate", force=True)

    assert code_of(delete(as_platform, user)) == (409, "last_owner")
    assert delete(as_platform, user, force=True).status_code == 200


# ---- who may


def test_the_operator_alone_ends_people(as_nobody: Client, as_owner: Person, tenant: Tenant) -> None:
    user = as_owner.id

    for client, status in ((as_nobody, 401), (tenant, 403), (as_owner, 403)):
        answers = [
            client.get("/platform/users"),
            client.get(f"/platform/users/{user}"),
            client.patch(f"/platform/users/{user}", json={"name": "x"}),
            act(client, user, "deactivate"),
            act(client, user, "reactivate"),
            delete(client, user),
        ]
        assert [answer.status_code for answer in answers] == [status] * 6
    assert as_owner.get("/auth/session").status_code == 200


def test_reading_people_takes_another_scope_than_ending_them(service: Service, as_platform: Client) -> None:
    user = name_user(as_platform)
    keys = {
        scope: _as_operator(service, "CreatePlatformKey", {"name": "a test", "scopes": [scope]})["data"]["key"]
        for scope in ("platform:user:read", "platform:user:write")
    }
    said = {}
    for scope, key in keys.items():
        with Client(base_url=service.url, headers={"X-Service-Platform-Key": key}, timeout=30) as client:
            paths = ("/platform/users", f"/platform/users/{user}")
            answers = (*(client.get(path) for path in paths), act(client, user, "deactivate"))
            said[scope] = [answer.status_code for answer in answers]

    assert said == {"platform:user:read": [200, 200, 403], "platform:user:write": [403, 403, 200]}


@pytest.mark.parametrize("verb", ["deactivate", "reactivate"])
def test_a_user_who_is_not_there_is_404(as_platform: Client, verb: str) -> None:
    answers = [
        act(as_platform, ABSENT, verb),
        delete(as_platform, ABSENT),
        as_platform.get(f"/platform/users/{ABSENT}"),
    ]

    assert [code_of(answer) for answer in answers] == [(404, "user_absent")] * 3
