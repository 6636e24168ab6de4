"""The security checklist and the figures of idempotency keys."""

import csv
import io
import uuid
from contextlib import closing
from typing import Any

import pytest

from tests.fixtures.approvers import Authenticator, approver, quorum
from tests.fixtures.callers import Agent, Tenant, rule
from tests.fixtures.people import Person, member
from tests.fixtures.server import Service
from tests.routes.tenants.makers import client_body, keep_client, keep_secret

PATHS = ("security-checklist", "idempotency-metrics", "idempotency-metrics/export")
NONE = {
    "observed": 0,
    "reserved": 0,
    "completed": 0,
    "replayed": 0,
    "conflicts": 0,
    "inFlightConflicts": 0,
    "suppressedAuthResponses": 0,
    "invalidKeys": 0,
    "storeErrors": 0,
    "skippedUnsafeContext": 0,
    "releasedOnError": 0,
}


def look(admin: Person) -> dict[str, Any]:
    return {one["id"]: one["status"] for one in admin.ok("GET", f"/tenants/{admin.tenant}/security-checklist")["items"]}


def test_the_checklist_says_what_it_found(as_owner: Person) -> None:
    found = as_owner.ok("GET", f"/tenants/{as_owner.tenant}/security-checklist")

    assert set(found) == {"tenantId", "generatedAt", "summary", "items"}
    assert found["tenantId"] == as_owner.tenant
    assert sum(found["summary"].values()) == len(found["items"])
    assert {frozenset(one) for one in found["items"]} == {
        frozenset({"id", "label", "status", "description", "remediation"})
    }


def test_the_checklist_follows_what_is_done(service: Service, tenant: Tenant, as_owner: Person) -> None:
    tenant.agent(rule("auto-approve-threshold", threshold="5"))
    keep_client(as_owner, allowedOrigins=["http://localhost:3000"])
    with closing(member(service, tenant, "admin")):
        before = look(as_owner)
    tenant.ok("PUT", f"/agents/{tenant.ok('GET', '/agents')[0]['id']}/policies", [rule("rate-limit", maxTxPerHour=1)])
    as_owner.ok("POST", f"/tenants/{tenant.id}/request-signing-keys")
    as_owner.ok("PUT", f"/tenants/{tenant.id}/app-clients", client_body())
    as_owner.ok(
        "PUT",
        f"/tenants/{tenant.id}/config",
        {
            "approvalConfig": {"autoExpireSeconds": 0, "uncoveredEffects": "allow"},
            "authAbuseConfig": {"mfa": {"requireFor": {"approvals": False}}},
        },
    )
    after = look(as_owner)

    assert before["agent-rules"] == "fail"
    assert before["second-factors"] == "fail"
    assert (before["request-signing-keys"], before["app-client-origins"]) == ("warning", "warning")
    assert (before["mfa-policy"], before["approval-expiry"], before["uncovered-effects"]) == ("pass", "pass", "pass")
    assert (after["agent-rules"], after["request-signing-keys"], after["app-client-origins"]) == ("pass",) * 3
    assert (after["mfa-policy"], after["approval-expiry"], after["uncovered-effects"]) == ("fail", "warning", "fail")


def test_the_checklist_tells_no_secret(tenant: Tenant, as_owner: Person) -> None:
    keep_client(as_owner)
    secrets = [
        keep_secret(as_owner)["appSecret"],
        as_owner.ok("POST", f"/tenants/{tenant.id}/request-signing-keys")["signingSecret"],
        tenant.key,
    ]

    told = as_owner.get(f"/tenants/{tenant.id}/security-checklist").text

    assert not any(secret in told or secret[:8] in told for secret in secrets)


def test_without_a_key_nothing_is_counted(as_owner: Person) -> None:
    found = as_owner.ok("GET", f"/tenants/{as_owner.tenant}/idempotency-metrics")

    assert set(found) == {"tenantId", "generatedAt", "windowStartedAt", "lastSeenAt", "ttlMs", "counters"}
    assert (found["windowStartedAt"], found["lastSeenAt"], found["ttlMs"]) == (None, None, 86_400_000)
    assert found["counters"] == NONE


def test_outcomes_of_idempotency_keys_are_counted_at_once(tenant: Tenant, as_owner: Person) -> None:
    key = {"Idempotency-Key": f"agent-{uuid.uuid4()}"}
    for agent in ("first", "first", "second"):
        tenant.post("/agents", json={"id": agent, "name": "x"}, headers=key)
    tenant.post("/agents", json={"id": "third", "name": "x"}, headers={"Idempotency-Key": "short"})

    found = as_owner.ok("GET", f"/tenants/{tenant.id}/idempotency-metrics")

    counted = {name: count for name, count in found["counters"].items() if count}
    assert counted == {
        "observed": 4,
        "reserved": 1,
        "completed": 1,
        "replayed": 1,
        "conflicts": 1,
        "invalidKeys": 1,
    }
    assert found["windowStartedAt"] <= found["lastSeenAt"] <= found["generatedAt"]


def test_figures_add_up_over_several_writes(tenant: Tenant, as_owner: Person) -> None:
    path = f"/tenants/{tenant.id}/idempotency-metrics"
    seen = []
    for number in range(3):
        tenant.post("/agents", json={"id": f"a{number}", "name": "x"}, headers={"Idempotency-Key": f"number-{number}"})
        seen.append(as_owner.ok("GET", path))

    assert [one["counters"]["completed"] for one in seen] == [1, 2, 3]
    assert len({one["windowStartedAt"] for one in seen}) == 1


def test_the_export_is_one_row(tenant: Tenant, as_owner: Person) -> None:
    tenant.post("/agents", json={"id": "one", "name": "x"}, headers={"Idempotency-Key": "made-just-once"})

    answer = as_owner.get(f"/tenants/{tenant.id}/idempotency-metrics/export")

    (row,) = csv.DictReader(io.StringIO(answer.text))
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/csv; charset=utf-8")
    assert list(row) == [
        "generated_at",
        "window_started_at",
        "last_seen_at",
        "ttl_ms",
        "observed",
        "reserved",
        "completed",
        "replayed",
        "conflicts",
        "in_flight_conflicts",
        "suppressed_auth_responses",
        "invalid_keys",
        "store_errors",
        "skipped_unsafe_context",
        "released_on_error",
    ]
    assert (row["ttl_ms"], row["completed"], row["store_errors"]) == ("86400000", "1", "0")
    assert "made-just-once" not in answer.text


@pytest.mark.parametrize("path", PATHS)
def test_only_admins_with_a_recent_factor_look(service: Service, tenant: Tenant, path: str) -> None:
    with (
        closing(member(service, tenant, "owner")) as without_factor,
        closing(member(service, tenant, "developer", mfa=True)) as developer,
    ):
        answers = [one.get(f"/tenants/{tenant.id}/{path}") for one in (without_factor, developer, tenant)]

    assert [answer.json()["data"]["code"] for answer in answers] == ["mfa_required", "wrong_role", "wrong_kind"]


@pytest.mark.parametrize("path", PATHS)
def test_another_tenants_are_not_there(as_owner: Person, other_tenant: Tenant, path: str) -> None:
    assert as_owner.get(f"/tenants/{other_tenant.id}/{path}").status_code == 404


def test_a_rule_that_names_a_key_of_localhost_is_warned_of(
    as_owner: Person, service: Service, tenant: Tenant, agent: Agent
) -> None:
    loose = approver(service, tenant, authenticator=Authenticator("localhost"))
    assert look(as_owner)["approver-keys"] == "pass"

    as_owner.ok("PUT", f"/agents/{agent.id}/policies", [quorum(1, loose)])

    assert look(as_owner)["approver-keys"] == "warning"
    loose.person.close()
