"""Presets of credential routes: what the tenant keeps, made into routes that are checked like any."""

from typing import Any

from tests.fixtures.callers import Tenant
from tests.fixtures.each import each
from tests.routes.secrets.makers import HOST, keep_secret, preset_fields


def keep_presets(tenant: Tenant, *presets: dict[str, Any]) -> None:
    tenant.ok("PUT", f"/tenants/{tenant.id}/config", {"secretRoutePresets": list(presets)})


def test_a_preset_makes_a_route_with_a_secret_of_the_tenant(tenant: Tenant) -> None:
    secret, agent = keep_secret(tenant), tenant.agent()
    keep_presets(tenant, preset_fields())

    body = {"presetId": "api", "secretId": secret["id"], "agents": [agent.id]}
    made = tenant.ok("POST", "/secrets/routes/preset", body)

    assert made == tenant.ok("GET", f"/secrets/routes/{made['id']}")
    assert (made["secretId"], made["hostPattern"], made["pathPattern"]) == (secret["id"], HOST, "/v1/*")
    assert (made["injectKey"].lower(), made["injectFormat"], made["agents"]) == (
        "authorization",
        "Bearer {value}",
        [agent.id],
    )


def test_a_preset_of_the_platform_brings_its_secret(tenant: Tenant) -> None:
    secret, other = keep_secret(tenant), keep_secret(tenant)
    keep_presets(tenant, preset_fields(provisioning="platform", platformSecretId=secret["id"]))

    made = tenant.ok("POST", "/secrets/routes/preset", {"presetId": "api"})
    refused = tenant.post("/secrets/routes/preset", json={"presetId": "api", "secretId": other["id"]})

    assert made["secretId"] == secret["id"]
    assert (refused.status_code, refused.json()["data"]["code"]) == (400, "preset_names_secret")


@each(
    ("preset", "body", "code"),
    [
        ({}, {"presetId": "other"}, "preset_absent"),
        ({}, {"presetId": "api"}, "preset_needs_secret"),
        ({"provisioning": "platform"}, {"presetId": "api"}, "preset_needs_secret"),
        ({"hostPattern": "*"}, {"presetId": "api", "secretId": None}, "preset_needs_secret"),
    ],
)
def test_a_preset_that_lacks_something_makes_no_route(
    tenant: Tenant, preset: dict[str, Any], body: dict[str, Any], code: str
) -> None:
    keep_presets(tenant, preset_fields(**preset))

    answer = tenant.post("/secrets/routes/preset", json=body)

    assert answer.json()["data"]["code"] == code
    assert tenant.ok("GET", "/secrets/routes") == []


@each("wrong", [{"hostPattern": "*.com"}, {"injectFormat": "no place"}, {"injectKey": "Host"}])
def test_a_preset_is_checked_like_any_route(tenant: Tenant, wrong: dict[str, Any]) -> None:
    secret = keep_secret(tenant)
    keep_presets(tenant, preset_fields(**wrong))

    answer = tenant.post("/secrets/routes/preset", json={"presetId": "api", "secretId": secret["id"]})

    assert (answer.status_code, answer.json()["data"]["code"]) == (400, "invalid_route")
    assert tenant.ok("GET", "/secrets/routes") == []


def test_a_secret_of_another_tenant_makes_no_route(tenant: Tenant, other_tenant: Tenant) -> None:
    keep_presets(tenant, preset_fields())

    body = {"presetId": "api", "secretId": keep_secret(other_tenant)["id"]}

    assert tenant.post("/secrets/routes/preset", json=body).status_code == 404
