"""The device flow with forms, as stock OAuth clients send it. RFC 8628 and RFC 6749."""

from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlencode

import httpx
import pytest

from tests.fixtures.callers import Client, Tenant
from tests.fixtures.people import Person, member
from tests.fixtures.server import Service
from tests.routes.auth.devices import GRANT_TYPE

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture
def approver(service: Service, tenant: Tenant) -> Iterator[Person]:
    """A member of this test's tenant, signed in there."""
    with closing(member(service, tenant, "viewer")) as somebody:
        yield somebody


def send(client: httpx.Client, step: str, content: str | bytes, media: str = FORM["Content-Type"]) -> httpx.Response:
    return client.post(f"/auth/device/{step}", content=content, headers={"Content-Type": media})


def refusal(answer: httpx.Response) -> tuple[int, str, str]:
    body = answer.json()
    return answer.status_code, body["error"], body["data"]["code"]


def test_a_client_that_knows_only_the_standards_gets_a_session(
    as_nobody: Client, approver: Person, tenant: Tenant
) -> None:
    asked = {"tenant_id": tenant.id, "scope": "openid profile"}
    code = as_nobody.post("/auth/device/code", data=asked).raise_for_status().json()
    poll = {"grant_type": GRANT_TYPE, "device_code": code["device_code"]}

    waiting = as_nobody.post("/auth/device/token", data=poll)
    said = approver.post("/auth/device/verify", data={"user_code": code["user_code"], "action": "approve"})
    session = as_nobody.post("/auth/device/token", data=poll).raise_for_status().json()

    assert (waiting.status_code, waiting.json()["error"]) == (400, "authorization_pending")
    assert said.json()["data"]["status"] == "approved"
    assert (session["token_type"], session["expires_in"]) == ("Bearer", 900)
    with Client(base_url=as_nobody.base_url, headers={"Authorization": f"Bearer {session['access_token']}"}) as device:
        assert device.ok("GET", "/me")["userId"] == approver.id


@pytest.mark.parametrize("charset", ["", ";charset=UTF-8", "; charset=utf-8"])
def test_a_form_may_name_its_letters(as_nobody: Client, tenant: Tenant, charset: str) -> None:
    assert send(as_nobody, "code", f"tenantId={tenant.id}", FORM["Content-Type"] + charset).status_code == 200


def test_a_field_without_a_value_was_not_sent(as_nobody: Client, tenant: Tenant) -> None:
    assert send(as_nobody, "code", f"tenant_id={tenant.id}&client_id=&scope&").status_code == 200
    assert refusal(send(as_nobody, "code", "tenant_id=")) == (400, "invalid_request", "invalid_request")


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("tenant_id=a&tenant_id=a", "duplicate_key"),
        ("tenant_id=a&tenant%5Fid=b", "duplicate_key"),
        ("tenant_id=a&tenantId=b", "duplicate_key"),
        ("tenant_id=a&tenant_id=", "duplicate_key"),
        ("tenant_id=%zz", "bad_form"),
        ("tenant_id=a%2", "bad_form"),
        ("tenant_id=%ff", "bad_form"),
        (b"tenant_id=\xff", "bad_form"),
        ("&".join(f"a{number}=1" for number in range(33)), "bad_form"),
        ("tenant_id=a&surplus=1", "bad_body"),
        ("tenant_id=" + "a" * 1000, "bad_body"),
        ('{"tenant_id": "a"}', "invalid_request"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_form_is_read_as_strictly_as_json(as_nobody: Client, content: str | bytes, code: str) -> None:
    assert refusal(send(as_nobody, "code", content)) == (400, "invalid_request", code)


def test_a_bad_decision_is_refused_and_decides_nothing(as_nobody: Client, approver: Person, tenant: Tenant) -> None:
    code = as_nobody.ok("POST", "/auth/device/code", {"tenantId": tenant.id})
    form = {"user_code": code["user_code"], "action": "yes"}

    answer = send(approver, "verify", urlencode(form))

    assert (answer.status_code, answer.json()["data"]) == (400, {"code": "bad_body", "fields": ["action"]})
    poll = {"grant_type": GRANT_TYPE, "device_code": code["device_code"]}
    assert as_nobody.post("/auth/device/token", data=poll).json()["error"] == "authorization_pending"


@pytest.mark.parametrize("step", ["code", "token"])
def test_a_form_that_is_too_long_is_not_read(as_nobody: Client, step: str) -> None:
    assert send(as_nobody, step, "tenant_id=" + "a" * 21_000).status_code == 413


@pytest.mark.parametrize("step", ["code", "token"])
def test_another_type_of_content_is_told_both(as_nobody: Client, step: str) -> None:
    answer = send(as_nobody, step, "tenant_id=a", "text/plain")

    assert answer.status_code == 415
    assert "application/json or application/x-www-form-urlencoded" in answer.json()["error_description"]


def test_other_routes_take_json_alone(as_nobody: Client) -> None:
    answer = as_nobody.post("/auth/email/send", data={"email": "a@example.com"})

    assert (answer.status_code, answer.json()["data"]["code"]) == (415, "wrong_content_type")
