"""The parts of a configuration that decide, and who may change them."""

import json
from contextlib import closing
from typing import Any

import asyncpg
import pytest

from tests.fixtures.callers import Client, Tenant
from tests.fixtures.people import Person, member
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import ask_as_tenant
from tests.routes.tenants.makers import as_app, client_body, keep_client, keep_secret

STRICT = {"maxAgeSeconds": 120, "requireFor": {"audit": False}, "maxAgeFor": {"approvals": 60}}
PARTS: dict[str, dict[str, Any]] = {
    "authAbuseConfig": {"mfa": STRICT},
    "appClients": [client_body("web-app"), client_body("mobile")],
}


TOLD = (
    "SELECT actor_type, actor_id, metadata FROM audit WHERE tenant_id = $1 AND action = 'tenant.config_changed' "
    "ORDER BY seq"
)


def config(somebody: Client, tenant: Tenant) -> dict[str, Any]:
    return somebody.ok("GET", f"/tenants/{tenant.id}/config")


@pytest.mark.parametrize("part", PARTS)
def test_an_owner_with_a_recent_factor_changes_what_decides(tenant: Tenant, as_owner: Person, part: str) -> None:
    stored = as_owner.ok("PUT", f"/tenants/{tenant.id}/config", {part: PARTS[part]})

    if part == "appClients":
        assert {one["id"] for one in stored["appClients"]} == {"web-app", "mobile"}
    else:
        assert stored["authAbuseConfig"]["mfa"]["maxAgeSeconds"] == 120
        assert stored["authAbuseConfig"]["mfa"]["maxAgeFor"] == {"approvals": 60}


@pytest.mark.parametrize("part", PARTS)
def test_the_tenants_key_changes_nothing_that_decides(tenant: Tenant, part: str) -> None:
    before = config(tenant, tenant)

    answer = tenant.put(f"/tenants/{tenant.id}/config", json={"displayName": "New", part: PARTS[part]})

    assert (answer.status_code, answer.json()["data"]["code"]) == (403, "person_required")
    assert config(tenant, tenant) == before


@pytest.mark.parametrize("part", PARTS)
def test_omitted_fields_keep_their_values(tenant: Tenant, as_owner: Person, part: str) -> None:
    as_owner.ok("PUT", f"/tenants/{tenant.id}/config", PARTS)
    before = config(tenant, tenant)

    for somebody in (tenant, as_owner):
        somebody.ok("PUT", f"/tenants/{tenant.id}/config", {"displayName": "Another"})

    assert config(tenant, tenant)[part] == before[part]


def test_the_tenants_key_sends_back_what_it_was_given(tenant: Tenant, as_owner: Person) -> None:
    as_owner.ok("PUT", f"/tenants/{tenant.id}/config", {**PARTS, "theme": {"primaryColor": "#102030"}})
    seen = config(tenant, tenant)

    again = tenant.ok("PUT", f"/tenants/{tenant.id}/config", {**seen, "displayName": "Shown"})

    assert again == {**seen, "displayName": "Shown"}


def test_the_same_policy_in_other_words_is_no_change(tenant: Tenant, as_owner: Person) -> None:
    as_owner.ok("PUT", f"/tenants/{tenant.id}/config", {"authAbuseConfig": {"mfa": {"maxAgeSeconds": 120}}})
    same = {"maxAgeSeconds": 120, "requireFor": {"audit": True}, "maxAgeFor": {"intents": 120}}

    assert tenant.put(f"/tenants/{tenant.id}/config", json={"authAbuseConfig": {"mfa": same}}).status_code == 200


def test_an_empty_list_of_app_clients_is_a_change(tenant: Tenant, as_owner: Person) -> None:
    keep_client(as_owner)

    by_key = tenant.put(f"/tenants/{tenant.id}/config", json={"appClients": []})
    by_owner = as_owner.ok("PUT", f"/tenants/{tenant.id}/config", {"appClients": []})

    assert (by_key.status_code, by_owner["appClients"]) == (403, [])


@pytest.mark.parametrize(
    ("role", "mfa", "code"),
    [
        ("owner", False, "mfa_required"),
        ("admin", False, "mfa_required"),
        ("developer", True, "wrong_role"),
        ("billing", True, "wrong_role"),
        ("viewer", True, "wrong_role"),
        ("member", True, "wrong_role"),
    ],
)
def test_other_people_change_no_configuration(
    service: Service, tenant: Tenant, role: str, mfa: bool, code: str
) -> None:
    with closing(member(service, tenant, role, mfa=mfa)) as somebody:
        answer = somebody.put(f"/tenants/{tenant.id}/config", json={"displayName": "Mine"})

    assert (answer.status_code, answer.json()["data"]["code"]) == (403, code)


def test_an_app_client_changes_no_configuration(tenant: Tenant, as_owner: Person) -> None:
    keep_client(as_owner)
    made = keep_secret(as_owner)

    with as_app(as_owner, made["appId"], made["appSecret"]) as app:
        answer = app.put(f"/tenants/{tenant.id}/config", json={"displayName": "Mine"})
        reads = app.get(f"/tenants/{tenant.id}/config")

    assert (answer.status_code, answer.json()["data"]["code"], reads.status_code) == (403, "wrong_kind", 200)


def test_a_policy_is_changed_with_a_recent_factor_only_though_it_asks_for_none(
    service: Service, tenant: Tenant, as_owner: Person
) -> None:
    path, weak = f"/tenants/{tenant.id}/config", {"authAbuseConfig": {"mfa": {"requireFor": {"tenantAdmin": False}}}}
    weaker = {"authAbuseConfig": {"mfa": {"requireFor": {"tenantAdmin": False, "vaultSigning": False}}}}
    with closing(member(service, tenant, "owner")) as without_factor:
        refused = [without_factor.put(path, json=weak)]
        stored = as_owner.ok("PUT", path, weak)
        # Who needs no factor to administer needs one to open the next gate, and to shut this one.
        refused += [without_factor.put(path, json=one) for one in (weaker, {"authAbuseConfig": {"mfa": {}}})]
        allowed = [without_factor.put(path, json=one) for one in ({"displayName": "Mine"}, {"appClients": []}, weak)]

    assert [answer.status_code for answer in refused] == [403] * 3
    assert [answer.status_code for answer in allowed] == [200] * 3
    assert refused[1].json()["data"] == {
        "code": "mfa_required",
        "action": "tenantAdmin",
        "methods": [],
        "maxAgeSeconds": 300,
    }
    assert config(tenant, tenant)["authAbuseConfig"] == stored["authAbuseConfig"]
    assert as_owner.put(path, json=weaker).status_code == 200


def test_the_tenants_key_takes_no_word_from_a_policy_that_it_sends_in_other_words(
    tenant: Tenant, as_owner: Person
) -> None:
    path, pinned = f"/tenants/{tenant.id}/config", {"maxAgeFor": {"vaultSigning": 300}, "requireFor": {"audit": True}}
    before = as_owner.ok("PUT", path, {"authAbuseConfig": {"mfa": pinned}})

    after = tenant.ok("PUT", path, {"authAbuseConfig": {"mfa": {"maxAgeSeconds": 300}}})

    assert after["authAbuseConfig"] == before["authAbuseConfig"]
    assert after["authAbuseConfig"]["mfa"]["maxAgeFor"] == {"vaultSigning": 300}
    assert as_owner.ok("PUT", path, {"authAbuseConfig": {"mfa": {}}})["authAbuseConfig"]["mfa"]["maxAgeFor"] == {}


def test_the_signer_itself_refuses_a_key_that_changes_what_decides(service: Service, tenant: Tenant) -> None:
    judging = {"autoExpireSeconds": 60, "uncoveredEffects": "allow"}
    weaker = judging | {"mfa": {"requireFor": {"vaultSigning": False}}}

    outcomes = [
        ask_as_tenant(service, tenant.key, "PutConfig", {"document": "{}", "judging": weaker}),
        ask_as_tenant(
            service, tenant.key, "PutConfig", {"document": "{}", "judging": judging, "app_clients": [client_body()]}
        ),
    ]

    assert [(one["type"], one.get("code")) for one in outcomes] == [("Failed", "person_required")] * 2
    assert config(tenant, tenant)["appClients"] == []


@pytest.mark.parametrize(
    ("mfa", "field"),
    [
        ({"maxAgeSeconds": 29}, "authAbuseConfig.mfa.maxAgeSeconds"),
        ({"maxAgeSeconds": 3601}, "authAbuseConfig.mfa.maxAgeSeconds"),
        ({"maxAgeSeconds": "300"}, "authAbuseConfig.mfa.maxAgeSeconds"),
        ({"maxAgeFor": {"audit": 29}}, "authAbuseConfig.mfa.maxAgeFor[...]"),
        ({"maxAgeFor": {"everything": 300}}, None),
        ({"requireFor": {"audit": "no"}}, "authAbuseConfig.mfa.requireFor[...]"),
        ({"requireFor": {"everything": False}}, None),
        ({"disableFor": {"keyUse": True}}, "keyUse"),
        ({"surplus": 1}, "surplus"),
    ],
    ids=str,
)
def test_a_policy_out_of_bounds_is_400(tenant: Tenant, as_owner: Person, mfa: dict[str, Any], field: str) -> None:
    before = config(tenant, tenant)

    answer = as_owner.put(f"/tenants/{tenant.id}/config", json={"authAbuseConfig": {"mfa": mfa}})

    assert answer.status_code == 400, answer.text
    if field:
        assert answer.json()["data"]["fields"] == [field]
    assert config(tenant, tenant) == before


@pytest.mark.parametrize("seconds", [30, 3600])
def test_the_bounds_themselves_are_taken(tenant: Tenant, as_owner: Person, seconds: int) -> None:
    policy = {"maxAgeSeconds": seconds, "maxAgeFor": {"audit": seconds}}

    stored = as_owner.ok("PUT", f"/tenants/{tenant.id}/config", {"authAbuseConfig": {"mfa": policy}})

    assert stored["authAbuseConfig"]["mfa"]["maxAgeSeconds"] == seconds


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        ({"theme": {"primaryColor": "red"}}, "theme.primaryColor"),
        ({"theme": {"fontFamily": "x;} body{display:none"}}, "fontFamily"),
        ({"theme": {"logoUrl": "javascript:alert(1)//.png"}}, "logoUrl"),
        ({"theme": {"faviconUrl": "http://example.com/a.ico"}}, "faviconUrl"),
        ({"theme": {"borderRadius": 33}}, "theme.borderRadius"),
        ({"secretRoutePresets": [{"id": "x"}]}, "name"),
        ({"policyTemplates": [{"id": "x", "name": "X", "policies": [{"type": "a b"}]}]}, None),
        ({"authAbuseConfig": None}, "authAbuseConfig"),
        ({"appClients": None}, "appClients"),
        ({"appClients": [client_body(allowedOrigins=["https://*.example.com"])]}, "allowedOrigins"),
    ],
    ids=str,
)
def test_a_bad_part_is_400_and_named(tenant: Tenant, as_owner: Person, bad: dict[str, Any], field: str) -> None:
    answer = as_owner.put(f"/tenants/{tenant.id}/config", json=bad)

    assert answer.status_code == 400, answer.text
    if field:
        assert answer.json()["data"]["fields"] == [field]


def test_display_texts_are_stored_unchanged(tenant: Tenant) -> None:
    shown = {
        "theme": {"primaryColor": "#A1b2C3", "colorScheme": "dark", "logoUrl": "https://example.com/logo.png"},
        "policyTemplates": [
            {
                "id": "daily",
                "name": "Daily",
                "description": "",
                "icon": "",
                "policies": [{"id": None, "type": "spending-limit", "enabled": True, "config": {"maxPerDay": "1"}}],
                "customizableFields": [
                    {
                        "path": "policies[0].config.maxPerDay",
                        "label": "Most",
                        "description": "",
                        "type": "amount",
                        "default": "1",
                        "min": "0",
                        "max": None,
                    }
                ],
            }
        ],
        "secretRoutePresets": [
            {
                "id": "openai",
                "name": "OpenAI",
                "hostPattern": "api.openai.com",
                "pathPattern": "/*",
                "injectAs": "header",
                "injectKey": "authorization",
                "injectFormat": "Bearer {value}",
                "provisioning": "user",
                "platformSecretId": None,
            }
        ],
    }

    stored = tenant.ok("PUT", f"/tenants/{tenant.id}/config", shown)

    assert {name: stored[name] for name in shown} == shown


def test_an_empty_address_clears_the_saved_one(tenant: Tenant) -> None:
    path = f"/tenants/{tenant.id}/config"
    tenant.ok("PUT", path, {"theme": {"logoUrl": "https://example.com/logo.png"}})

    assert tenant.ok("PUT", path, {"theme": {"logoUrl": ""}})["theme"] == {}


async def test_a_configuration_that_somebody_else_wrote_is_not_built_upon(
    tenant: Tenant, as_owner: Person, owner: asyncpg.Connection
) -> None:
    tenant.ok("PUT", f"/tenants/{tenant.id}/config", {})
    await owner.execute(
        "UPDATE tenant_config SET judging = replace(judging, '86400', '60') WHERE tenant_id = $1", tenant.id
    )

    answer = tenant.put(f"/tenants/{tenant.id}/config", json={"displayName": "Mine"})

    assert (answer.status_code, answer.json()["data"]["code"]) == (503, "sealed_value_tampered")


async def test_a_change_says_in_the_log_what_only_people_may_change(
    tenant: Tenant, as_owner: Person, owner: asyncpg.Connection
) -> None:
    as_owner.ok("PUT", f"/tenants/{tenant.id}/config", PARTS)

    row = await owner.fetchrow(TOLD, tenant.id)
    said = json.loads(row["metadata"])
    assert (row["actor_type"], row["actor_id"]) == ("user", as_owner.id)
    assert said["changed"] == ["authAbuseConfig", "appClients"]
    assert (said["before"]["mfa"]["maxAgeSeconds"], said["after"]["mfa"]["maxAgeSeconds"]) == (300, 120)
    assert said["after"]["mfa"]["requireFor"] == {"audit": False}
    assert {*said["before"], *said["after"]} == {"mfa"}


async def test_a_change_says_in_the_log_what_is_judged_by_otherwise(tenant: Tenant, owner: asyncpg.Connection) -> None:
    path, lax = f"/tenants/{tenant.id}/config", {"autoExpireSeconds": 0, "uncoveredEffects": "allow"}
    for body in ({"approvalConfig": lax}, {"displayName": "Shown", "approvalConfig": lax}):
        tenant.ok("PUT", path, body)

    told = [json.loads(row["metadata"]) for row in await owner.fetch(TOLD, tenant.id)]

    assert told == [{"before": {"autoExpireSeconds": 86400, "uncoveredEffects": "queue"}, "after": lax}, {}]


def test_a_repeated_request_gets_the_first_answer(tenant: Tenant, as_owner: Person) -> None:
    path, key = f"/tenants/{tenant.id}/config", {"Idempotency-Key": "configure-it-once"}
    body = {"displayName": "First", **PARTS}
    first = as_owner.put(path, json=body, headers=key)
    as_owner.ok("PUT", path, {"displayName": "Second", "appClients": []})

    again = as_owner.put(path, json=body, headers=key)

    assert (again.json(), again.headers["Idempotency-Replayed"]) == (first.json(), "true")
    assert config(tenant, tenant)["displayName"] == "Second"


def test_an_answer_too_long_to_keep_is_not_told_as_the_first_one(tenant: Tenant, as_owner: Person) -> None:
    path, key = f"/tenants/{tenant.id}/config", {"Idempotency-Key": "configure-it-once"}
    rules = [{"type": "spending-limit", "config": {"maxPerDay": "1" * 14_000}}]
    long = [{"id": f"p-{n}", "name": "P", "description": "", "icon": "", "policies": rules} for n in range(16)]
    for number in range(4):
        urls = [f"https://app.example.com/{n}/{'x' * 1_900}" for n in range(50)]
        keep_client(as_owner, f"client-{number}", allowedRedirectUrls=urls)
    first = tenant.put(path, json={"policyTemplates": long}, headers=key)
    assert first.status_code == 200, first.text
    tenant.ok("PUT", path, {"displayName": "Second"})

    again = tenant.put(path, json={"policyTemplates": long}, headers=key)

    assert (again.status_code, again.json()["data"]["displayName"]) == (200, "Second")
    assert "Idempotency-Replayed" not in again.headers


def test_a_known_tenant_without_a_saved_configuration_has_a_preset(as_platform: Client, as_nobody: Client) -> None:
    key = {"X-Service-Key": as_platform.ok("POST", "/platform/tenants", {"id": "demo", "name": "Demo"})["apiKey"]}

    preset = as_nobody.get("/tenants/demo/config", headers=key).json()["data"]
    saved = as_nobody.put("/tenants/demo/config", headers=key, json={}).json()["data"]
    as_platform.ok("DELETE", "/platform/tenants/demo")

    assert (preset["displayName"], saved["displayName"]) == ("Demo", None)
    assert [one["provisioning"] for one in preset["secretRoutePresets"]] == ["user"]
    assert saved["policyTemplates"] == []
