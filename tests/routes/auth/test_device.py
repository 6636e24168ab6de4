"""The device flow over HTTP. RFC 8628."""

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import asyncpg
import pytest

from tests.fixtures.callers import Client, Tenant
from tests.fixtures.forgery import claims_of
from tests.fixtures.people import Person, member, sign_in
from tests.fixtures.server import Service
from tests.routes.auth.devices import Device, decide, new_device, page_of, pass_time


@pytest.fixture
def approver(service: Service, tenant: Tenant) -> Iterator[Person]:
    """A member of this test's tenant, signed in there."""
    with closing(member(service, tenant, "viewer")) as somebody:
        yield somebody


@pytest.fixture
def device(as_nobody: Client, tenant: Tenant) -> Device:
    """A device that waits to be let in to this test's tenant."""
    return new_device(as_nobody, tenant.id)


def test_a_code_has_the_fields_of_the_standard_twice(service: Service, as_nobody: Client, tenant: Tenant) -> None:
    answer = as_nobody.post("/auth/device/code", json={"tenantId": tenant.id})

    body = answer.json()
    data = body.pop("data")
    assert body.pop("ok") is True
    assert body == data
    assert (data["expires_in"], data["interval"], data["verification_uri"]) == (600, 5, page_of(service))
    assert data["verification_uri_complete"] == f"{page_of(service)}?user_code={data['user_code']}"
    assert len(data["device_code"]) >= 43
    assert set(data) == {
        "device_code",
        "user_code",
        "verification_uri",
        "verification_uri_complete",
        "expires_in",
        "interval",
    }
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("name", ["tenantId", "tenant_id"])
def test_a_tenant_is_named_in_both_spellings(as_nobody: Client, tenant: Tenant, name: str) -> None:
    assert as_nobody.ok("POST", "/auth/device/code", {name: tenant.id})["user_code"]


def test_a_tenant_that_is_not_there_looks_like_any_other(as_nobody: Client) -> None:
    device = new_device(as_nobody, f"absent-{uuid.uuid4().hex[:12]}")

    assert device.error() == "authorization_pending"


def test_a_person_lets_a_device_in_and_it_gets_one_session(device: Device, approver: Person, tenant: Tenant) -> None:
    assert device.error() == "authorization_pending"
    assert decide(approver, device).json()["data"] == {"userCode": device.code["user_code"], "status": "approved"}

    answer = device.poll()

    body = answer.json()
    data = body.pop("data")
    assert (answer.status_code, body.pop("ok"), answer.headers["Cache-Control"]) == (200, True, "no-store")
    assert body == data
    assert (data["access_token"], data["refresh_token"]) == (data["token"], data["refreshToken"])
    assert (data["token_type"], data["expires_in"], data["expiresIn"]) == ("Bearer", 900, 900)
    assert (data["user"]["id"], data["tenant"], data["provider"]) == (
        approver.id,
        {"id": tenant.id, "name": "A tenant", "role": "viewer"},
        "device",
    )
    assert device.error() == "expired_token"
    bearer = {"Authorization": f"Bearer {data['access_token']}"}
    assert device.client.ok("GET", "/auth/session", None, **bearer)["tenant"]["id"] == tenant.id


def test_the_new_session_has_no_second_factor(service: Service, device: Device, tenant: Tenant) -> None:
    with closing(member(service, tenant, "owner", mfa=True)) as chief:
        decide(chief, device)

    session = device.poll().json()["data"]

    assert session["mfa"]["verifiedAt"] is None
    bearer = {"Authorization": f"Bearer {session['token']}"}
    refused = device.client.post("/agents", json={"id": "a", "name": "A"}, headers=bearer)
    assert (refused.status_code, refused.json()["data"]["code"]) == (403, "mfa_required")


def test_a_refused_device_is_told_so_until_the_end(device: Device, approver: Person) -> None:
    assert decide(approver, device, "deny").json()["data"]["status"] == "denied"

    assert [device.error(), device.error()] == ["access_denied", "access_denied"]
    assert decide(approver, device).json()["data"]["code"] == "device_decided"
    assert device.error() == "access_denied"


async def test_polling_too_fast_lengthens_the_interval(device: Device, owner: asyncpg.Connection) -> None:
    polls = [device.poll(), device.poll(), device.poll()]
    await pass_time(owner, device, 11)
    polls.append(device.poll())
    await pass_time(owner, device, 21)
    polls.append(device.poll())

    said = [(poll.json()["error"], poll.json()["interval"]) for poll in polls]
    assert said == [
        ("authorization_pending", 5),
        ("slow_down", 10),
        ("slow_down", 15),
        ("slow_down", 20),
        ("authorization_pending", 20),
    ]
    assert {poll.status_code for poll in polls} == {400}
    assert polls[1].json() == {
        "ok": False,
        "error": "slow_down",
        "error_description": "Poll every 10 seconds.",
        "interval": 10,
        "data": {"code": "slow_down", "interval": 10},
    }


async def test_the_interval_counts_from_the_poll_before(device: Device, owner: asyncpg.Connection) -> None:
    device.poll()
    for _ in range(3):
        await pass_time(owner, device, 5.5)
        assert device.error() == "authorization_pending"


async def test_an_approved_code_is_given_out_at_once_however_fast_it_is_asked(device: Device, approver: Person) -> None:
    device.poll()
    decide(approver, device)

    assert device.poll().status_code == 200


@pytest.mark.parametrize("approved", [False, True])
async def test_a_code_dies_after_ten_minutes(
    device: Device, approver: Person, owner: asyncpg.Connection, approved: bool
) -> None:
    if approved:
        decide(approver, device)
    await pass_time(owner, device, 601)

    assert device.error() == "expired_token"
    assert decide(approver, device).status_code == 404
    assert approver.get("/auth/device/request", params={"user_code": device.code["user_code"]}).status_code == 404


async def test_a_code_lives_nearly_ten_minutes(device: Device, approver: Person, owner: asyncpg.Connection) -> None:
    await pass_time(owner, device, 590)
    decide(approver, device)

    assert device.poll().status_code == 200


def test_of_two_polls_at_once_one_gets_the_session(device: Device, approver: Person) -> None:
    decide(approver, device)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: device.poll(), range(8)))

    assert sorted(answer.status_code for answer in answers) == [200] + [400] * 7
    assert {answer.json()["error"] for answer in answers if answer.status_code == 400} == {"expired_token"}
    assert [one["provider"] for one in approver.ok("GET", "/auth/sessions")].count("device") == 1


def test_of_two_decisions_at_once_one_counts(device: Device, approver: Person) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: decide(approver, device, ("approve", "deny")[n % 2]), range(8)))

    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 7
    assert {answer.json()["data"]["code"] for answer in answers if answer.status_code == 409} == {"device_decided"}


def test_a_person_sees_what_asks(as_nobody: Client, tenant: Tenant, approver: Person) -> None:
    as_nobody.headers["User-Agent"] = "Television/7"
    device = new_device(as_nobody, tenant.id)

    asked = approver.ok("GET", f"/auth/device/request?user_code={device.code['user_code']}")

    assert (asked.pop("createdAt") < asked.pop("expiresAt"), asked) == (
        True,
        {
            "userCode": device.code["user_code"],
            "tenant": {"id": tenant.id, "name": "A tenant"},
            "client": None,
            "nativeBundleId": None,
            "nativePackageName": None,
            "ipAddress": "127.0.0.1",
            "userAgent": "Television/7",
        },
    )


@pytest.mark.parametrize(
    "typed", [str.lower, lambda code: code.replace("-", ""), lambda code: f" {code[:4]} {code[5:]} "]
)
def test_a_code_is_taken_as_people_type_it(device: Device, approver: Person, typed) -> None:
    code = typed(device.code["user_code"])

    answer = approver.post("/auth/device/verify", json={"userCode": code, "action": "approve"})

    assert answer.json()["data"] == {"userCode": device.code["user_code"], "status": "approved"}


def test_a_member_decides_whatever_tenant_the_session_is_in(device: Device, approver: Person, tenant: Tenant) -> None:
    approver.switch(f"personal-{approver.id}")

    assert decide(approver, device).status_code == 200
    assert device.poll().json()["data"]["tenant"]["id"] == tenant.id


def test_a_code_of_another_tenant_looks_like_none_at_all(device: Device, person: Person) -> None:
    code = device.code["user_code"]
    absent = "BBBB-BBBB"

    for shown in (
        [person.get("/auth/device/request", params={"user_code": one}) for one in (code, absent)],
        [person.post("/auth/device/verify", json={"user_code": one, "action": "approve"}) for one in (code, absent)],
    ):
        assert [answer.status_code for answer in shown] == [404, 404]
        assert shown[0].json() == shown[1].json()
    assert device.error() == "authorization_pending"


def test_guesses_run_out_and_a_right_one_gives_none_back(device: Device, approver: Person) -> None:
    guess = {"user_code": "BBBB-BBBB", "action": "approve"}
    code = device.code["user_code"]
    answers = [approver.post("/auth/device/verify", json=guess).status_code for _ in range(29)]
    assert approver.get("/auth/device/request", params={"user_code": code}).status_code == 200

    late = [decide(approver, device), approver.get("/auth/device/request", params={"user_code": code})]

    assert set(answers) == {404}
    assert [(answer.status_code, answer.json()["data"]["code"]) for answer in late] == [(429, "too_many_attempts")] * 2
    assert 500 < int(late[0].headers["Retry-After"]) <= 600
    assert device.error() == "authorization_pending"


def test_a_device_of_somebody_who_was_removed_stays_out(
    service: Service, device: Device, approver: Person, tenant: Tenant, as_platform: Client
) -> None:
    decide(approver, device)
    as_platform.ok("DELETE", f"/platform/tenants/{tenant.id}/members/{approver.id}", {"force": True})

    assert device.error() == "access_denied"


def test_a_session_that_has_ended_lets_nobody_in(device: Device, approver: Person) -> None:
    approver.ok("POST", "/auth/logout")

    assert decide(approver, device).status_code == 401
    assert device.error() == "authorization_pending"


@pytest.mark.parametrize("how", ["from another session", "by name from itself", "after it was signed out"])
def test_devices_admitted_by_an_ended_session_stay_signed_out(
    service: Service, device: Device, approver: Person, how: str
) -> None:
    decide(approver, device)
    session = claims_of(approver.session["token"])["sid"]
    with closing(sign_in(service, approver.wallet)) as elsewhere:
        if how == "after it was signed out":
            # The list no longer shows it; whichever is ended instead, its device stays out too.
            approver.ok("POST", "/auth/logout")
            session = claims_of(elsewhere.session["token"])["sid"]
        (approver if how == "by name from itself" else elsewhere).ok("DELETE", f"/auth/sessions/{session}")

        assert device.error() == "expired_token"
    with closing(sign_in(service, approver.wallet)) as again:
        assert decide(again, device).json()["data"]["code"] == "device_code_absent"


def test_signing_out_keeps_the_devices_that_the_session_admitted(device: Device, approver: Person) -> None:
    decide(approver, device)
    approver.ok("POST", "/auth/logout")

    assert device.poll().status_code == 200


async def test_an_approval_is_of_the_session_that_gave_it(
    service: Service, device: Device, approver: Person, owner: asyncpg.Connection
) -> None:
    decide(approver, device)
    with closing(sign_in(service, approver.wallet)):
        moved = (
            "UPDATE device_codes d SET session_id = (SELECT id FROM sessions WHERE user_id = d.user_id "
            "AND id <> d.session_id ORDER BY created_at DESC LIMIT 1) WHERE user_code = $1"
        )
        await owner.execute(moved, device.code["user_code"])

    assert device.poll().status_code == 503


@pytest.mark.parametrize("kind", ["tenant", "nobody"])
def test_only_people_decide(device: Device, tenant: Tenant, as_nobody: Client, kind: str) -> None:
    answer = decide(tenant if kind == "tenant" else as_nobody, device)

    assert answer.status_code == (403 if kind == "tenant" else 401)


async def test_device_decisions_are_in_the_tenants_audit_log(
    device: Device, approver: Person, tenant: Tenant, owner: asyncpg.Connection, as_nobody: Client
) -> None:
    refused = new_device(as_nobody, tenant.id)
    decide(approver, device)
    decide(approver, refused, "deny")
    session = device.poll().json()["data"]

    rows = await owner.fetch(
        "SELECT action, actor_type, actor_id, resource_id, metadata FROM audit WHERE tenant_id = $1 "
        "AND action LIKE ANY (ARRAY['device.%', 'session.began']) ORDER BY created_at",
        tenant.id,
    )
    kept = [tuple(row)[:4] for row in rows]
    assert kept[:2] == [
        ("device.approved", "user", approver.id, device.code["user_code"]),
        ("device.denied", "user", approver.id, refused.code["user_code"]),
    ]
    assert kept[2][:3] == ("session.began", "user", approver.id)
    assert '"provider":"device"' in rows[2]["metadata"]
    written = "".join(str(tuple(row)) for row in rows)
    assert not any(secret in written for secret in (device.code["device_code"], session["token"]))


async def test_a_code_is_kept_as_a_hash(device: Device, owner: asyncpg.Connection) -> None:
    row = await owner.fetchval("SELECT d::text FROM device_codes d WHERE user_code = $1", device.code["user_code"])

    assert device.code["device_code"].removeprefix("dc_") not in row


@pytest.mark.parametrize(
    "change", ["status = 'approved'", "status = 'approved', user_id = $2", "client_id = 'another'"]
)
async def test_writing_to_the_database_admits_no_device(
    device: Device, approver: Person, owner: asyncpg.Connection, change: str
) -> None:
    given = [approver.id] if "$2" in change else []
    await owner.execute(f"UPDATE device_codes SET {change} WHERE user_code = $1", device.code["user_code"], *given)

    answer = device.poll()

    assert (answer.status_code, answer.json()["data"]["code"]) == (503, "sealed_value_tampered")


async def test_an_approval_does_not_serve_another_person(
    service: Service, device: Device, approver: Person, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    decide(approver, device)
    with closing(member(service, tenant, "owner")) as other:
        await owner.execute(
            "UPDATE device_codes SET user_id = $2 WHERE user_code = $1", device.code["user_code"], other.id
        )

    assert device.poll().status_code == 503


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({}, "invalid_request"),
        ({"tenantId": "a tenant"}, "invalid_request"),
        ({"tenantId": 1}, "invalid_request"),
        ({"tenantId": "nobody", "surplus": 1}, "invalid_request"),
        ({"tenantId": "a", "tenant_id": "a"}, "invalid_request"),
        ({"tenantId": "$tenant", "client_id": "nobody"}, "invalid_client"),
        ({"tenantId": "$tenant", "client_id": "A client"}, "invalid_request"),
        ({"tenantId": "$tenant", "native_bundle_id": "com.example.app"}, "invalid_request"),
        ({"tenantId": "$tenant", "native_bundle_id": "com.a.b", "native_package_name": "com.a.b"}, "invalid_request"),
    ],
)
def test_a_bad_request_for_a_code_is_refused_in_the_words_of_the_standard(
    as_nobody: Client, tenant: Tenant, body: dict[str, object], error: str
) -> None:
    body = {name: tenant.id if value == "$tenant" else value for name, value in body.items()}

    answer = as_nobody.post("/auth/device/code", json=body)

    said = answer.json()
    assert (answer.status_code, said["ok"], said["error"]) == (400, False, error)
    assert said["error_description"].endswith(".")


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"grant_type": None}, "invalid_request"),
        ({"grant_type": "authorization_code"}, "unsupported_grant_type"),
        ({"grant_type": "authorization_code", "device_code": None}, "unsupported_grant_type"),
        ({"device_code": None}, "invalid_request"),
        ({"device_code": "dc_unknown"}, "expired_token"),
        ({"device_code": 1}, "invalid_request"),
        ({"client_id": "another"}, "invalid_client"),
        ({"native_package_name": "com.example.app"}, "invalid_client"),
        ({"surplus": 1}, "invalid_request"),
    ],
)
def test_a_bad_poll_is_refused_in_the_words_of_the_standard(
    device: Device, changed: dict[str, object], error: str
) -> None:
    assert device.error(**changed) == error
    # None of them counts as a poll.
    assert device.error() == "authorization_pending"


def test_a_poll_takes_both_spellings(device: Device) -> None:
    body = {"grantType": "urn:ietf:params:oauth:grant-type:device_code", "deviceCode": device.code["device_code"]}

    assert device.client.post("/auth/device/token", json=body).json()["error"] == "authorization_pending"


@pytest.mark.parametrize(
    "body",
    [
        {"action": "approve"},
        {"user_code": "BBBB-BBBB"},
        {"user_code": "BBBB-BBBB", "action": "yes"},
        {"user_code": "BBBB-BBBB", "userCode": "CCCC-CCCC", "action": "deny"},
        {"user_code": "B" * 33, "action": "deny"},
        {"user_code": "", "action": "deny"},
    ],
)
def test_a_decision_says_one_code_and_one_of_two_things(person: Person, body: dict[str, str]) -> None:
    answer = person.post("/auth/device/verify", json=body)

    assert (answer.status_code, answer.json()["ok"]) == (400, False)


def test_the_second_person_is_not_asked_again(service: Service, device: Device, approver: Person) -> None:
    decide(approver, device)

    answer = approver.get("/auth/device/request", params={"user_code": device.code["user_code"]})

    assert (answer.status_code, answer.json()["data"]["code"]) == (409, "device_decided")


def test_a_personal_tenant_is_signed_in_to_as_well(service: Service, as_nobody: Client) -> None:
    with closing(sign_in(service)) as person:
        device = new_device(as_nobody, person.tenant)
        decide(person, device)

        assert device.poll().json()["data"]["tenant"]["role"] == "owner"


def test_answers_do_not_tell_which_tenants_exist(as_nobody: Client, tenant: Tenant, approver: Person) -> None:
    there, nowhere = new_device(as_nobody, tenant.id), new_device(as_nobody, f"{tenant.id}-not")

    asked = [one.poll() for one in (there, nowhere)]

    assert set(there.code) == set(nowhere.code)
    assert [(answer.status_code, answer.json()["error"]) for answer in asked] == [(400, "authorization_pending")] * 2
    assert decide(approver, nowhere).status_code == 404
