"""Devices that say which app client and which native application they are."""

import uuid
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.fixtures.callers import Client, Tenant
from tests.fixtures.people import Person, member
from tests.fixtures.server import Service
from tests.routes.auth.devices import Device, decide, new_device

BUNDLE, PACKAGE = "com.example.app", "com.example.android_app"
CLIENT: dict[str, Any] = {
    "id": "tv-app",
    "name": "The television",
    "allowedBundleIds": [BUNDLE],
    "allowedPackageNames": [PACKAGE],
}


@pytest.fixture
def chief(service: Service, tenant: Tenant) -> Iterator[Person]:
    """The owner of this test's tenant, with a second factor shown just now."""
    with closing(member(service, tenant, "owner", mfa=True)) as somebody:
        yield somebody


@pytest.fixture
def tv(chief: Person) -> dict[str, Any]:
    """An app client of the owner's tenant."""
    return put(chief)


def put(chief: Person, **changed: Any) -> dict[str, Any]:
    """Make or change the app client."""
    return chief.ok("PUT", f"/tenants/{chief.tenant}/app-clients", {**CLIENT, **changed})


def refusal_of(client: Client, tenant: str, **asked: Any) -> str:
    """The error of a device that is given no code."""
    answer = client.post("/auth/device/code", json={"tenantId": tenant, **asked})
    assert answer.status_code == 400, answer.text
    return str(answer.json()["error"])


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ({"client_id": "tv-app"}, {}),
        ({"clientId": "tv-app"}, {}),
        ({"client_id": "tv-app", "native_bundle_id": BUNDLE}, {"native_bundle_id": BUNDLE}),
        ({"clientId": "tv-app", "nativeBundleId": BUNDLE}, {"native_bundle_id": BUNDLE}),
        ({"client_id": "tv-app", "native_package_name": PACKAGE}, {"native_package_name": PACKAGE}),
        ({"client_id": "tv-app", "nativePackageName": PACKAGE}, {"native_package_name": PACKAGE}),
    ],
)
@pytest.mark.usefixtures("tv")
def test_a_device_of_a_client_is_let_in(
    as_nobody: Client, chief: Person, asked: dict[str, str], shown: dict[str, str]
) -> None:
    device = new_device(as_nobody, chief.tenant, **asked)
    known = {name: value for name, value in device.code.items() if name == "client_id" or name.startswith("native")}
    assert known == {"client_id": "tv-app", **shown}
    decide(chief, device)

    assert device.poll().json()["data"]["tenant"]["id"] == chief.tenant


@pytest.mark.usefixtures("tv")
def test_native_identifiers_are_taken_from_headers(as_nobody: Client, chief: Person) -> None:
    as_nobody.headers["X-Service-Native-Bundle-Id"] = BUNDLE
    device = new_device(as_nobody, chief.tenant, client_id="tv-app")
    assert device.code["native_bundle_id"] == BUNDLE
    decide(chief, device)

    del as_nobody.headers["X-Service-Native-Bundle-Id"]
    assert device.error() == "invalid_client"
    assert device.poll(native_bundle_id=BUNDLE).status_code == 200


@pytest.mark.usefixtures("tv")
def test_a_header_and_a_body_that_differ_are_refused(as_nobody: Client, chief: Person) -> None:
    as_nobody.headers["X-Service-Native-Bundle-Id"] = "com.example.other"

    assert refusal_of(as_nobody, chief.tenant, client_id="tv-app", native_bundle_id=BUNDLE) == "invalid_request"
    assert refusal_of(as_nobody, chief.tenant, client_id="tv-app", native_package_name=PACKAGE) == "invalid_request"


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"native_bundle_id": "com.example.other"}, "invalid_client"),
        ({"native_bundle_id": PACKAGE.replace("_", "-")}, "invalid_client"),
        ({"native_package_name": BUNDLE}, "invalid_client"),
        ({"native_bundle_id": "com.example.*"}, "invalid_request"),
        ({"native_bundle_id": "example"}, "invalid_request"),
        ({"native_package_name": "com.example.an-app"}, "invalid_request"),
        ({"native_bundle_id": ""}, "invalid_request"),
        ({"native_bundle_id": "com.example.app\x00"}, "invalid_request"),
    ],
)
@pytest.mark.usefixtures("tv")
def test_a_native_application_that_is_not_listed_gets_no_code(
    as_nobody: Client, chief: Person, asked: dict[str, str], error: str
) -> None:
    assert refusal_of(as_nobody, chief.tenant, client_id="tv-app", **asked) == error


@pytest.mark.usefixtures("tv")
def test_a_client_of_another_tenant_is_none(as_nobody: Client, chief: Person, other_tenant: Tenant) -> None:
    assert refusal_of(as_nobody, other_tenant.id, client_id="tv-app") == "invalid_client"


@pytest.mark.parametrize("approved", [False, True])
@pytest.mark.parametrize(
    "changed",
    [
        {"client_id": None},
        {"client_id": "radio"},
        {"native_bundle_id": None},
        {"native_bundle_id": "com.example.other"},
        {"native_bundle_id": None, "native_package_name": PACKAGE},
    ],
)
@pytest.mark.usefixtures("tv")
def test_a_poll_of_somebody_else_changes_nothing(
    as_nobody: Client, chief: Person, approved: bool, changed: dict[str, str | None]
) -> None:
    device = new_device(as_nobody, chief.tenant, client_id="tv-app", native_bundle_id=BUNDLE)
    if approved:
        decide(chief, device)

    assert [device.error(**changed), device.error(**changed)] == ["invalid_client", "invalid_client"]

    # Not even a poll was counted, and an approval waits for the right one.
    answer = device.poll()
    assert answer.status_code == (200 if approved else 400)
    assert approved or answer.json()["error"] == "authorization_pending"


def test_a_client_that_is_switched_off_gets_no_code_and_no_session(
    as_nobody: Client, chief: Person, tv: dict[str, Any]
) -> None:
    before, decided = waiting(as_nobody, chief), waiting(as_nobody, chief)
    decide(chief, decided)
    put(chief, enabled=False)

    assert refusal_of(as_nobody, chief.tenant, client_id="tv-app") == "invalid_client"
    assert decide(chief, before).status_code == 404
    assert decided.error() == "invalid_client"


def test_a_native_application_that_is_taken_off_the_list_gets_no_session(
    as_nobody: Client, chief: Person, tv: dict[str, Any]
) -> None:
    device = waiting(as_nobody, chief)
    decide(chief, device)
    put(chief, allowedBundleIds=[])

    assert device.error() == "invalid_client"


def waiting(client: Client, chief: Person) -> Device:
    """A device of the client that nobody has decided on."""
    return new_device(client, chief.tenant, client_id="tv-app", native_bundle_id=BUNDLE)


def test_a_person_sees_the_name_of_the_client(as_nobody: Client, chief: Person) -> None:
    name = f"Television {uuid.uuid4().hex[:6]}"
    put(chief, name=name)

    device = waiting(as_nobody, chief)

    asked = chief.ok("GET", f"/auth/device/request?user_code={device.code['user_code']}")
    assert asked["client"] == {"id": "tv-app", "name": name}
    assert (asked["nativeBundleId"], asked["nativePackageName"]) == (BUNDLE, None)
