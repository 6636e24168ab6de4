"""Aggregations: what an account's wallets were when somebody looked."""

from contextlib import closing

import pytest

from tests.fixtures.callers import Tenant
from tests.fixtures.people import member
from tests.fixtures.server import Service
from tests.routes.accounts.makers import audit_of, open_account, status_and_code


def test_a_snapshot_stays_until_it_is_taken_again(tenant: Tenant) -> None:
    first, second = tenant.agent(), tenant.agent()
    open_account(tenant, first, id="mine")
    made = tenant.ok("POST", "/accounts/mine/aggregations", {"id": "q1", "displayName": "Q1", "metadata": {"a": 1}})
    configured = [{"chain_type": "solana", "wallet_id": second.id}]
    tenant.ok("PATCH", "/accounts/mine", {"wallets_configuration": configured})

    kept = tenant.ok("GET", "/accounts/mine/aggregations/q1")
    fresh = tenant.ok("PATCH", "/accounts/mine/aggregations/q1", {"refresh": True})

    assert kept == made
    assert (made["walletIds"], made["chainFamilies"]) == ([first.id], ["evm", "solana"])
    assert (made["wallet_ids"], made["chain_families"], made["display_name"]) == ([first.id], ["evm", "solana"], "Q1")
    assert (made["accountId"], made["account_id"], made["tenantId"]) == ("mine", "mine", tenant.id)
    assert (fresh["walletIds"], fresh["chainFamilies"]) == ([second.id], ["solana"])
    assert (fresh["displayName"], fresh["metadata"], fresh["createdAt"]) == ("Q1", {"a": 1}, made["createdAt"])


def test_without_refresh_only_what_is_sent_changes(tenant: Tenant) -> None:
    agent = tenant.agent()
    open_account(tenant, agent, id="mine")
    tenant.ok("POST", "/accounts/mine/aggregations", {"id": "q1"})
    tenant.ok("PATCH", "/accounts/mine", {"wallet_ids": []})

    changed = tenant.ok("PATCH", "/accounts/mine/aggregations/q1", {"display_name": "Q1"})

    assert (changed["displayName"], changed["walletIds"]) == ("Q1", [agent.id])


def test_a_deleted_account_takes_its_aggregations_along(tenant: Tenant) -> None:
    open_account(tenant, id="mine")
    open_account(tenant, id="other")
    for account, name in (("mine", "q1"), ("mine", "q2"), ("other", "q3")):
        tenant.ok("POST", f"/accounts/{account}/aggregations", {"id": name})
    assert tenant.ok("DELETE", "/accounts/mine/aggregations/q2") == {"id": "q2", "deleted": True}
    tenant.ok("DELETE", "/accounts/mine")

    for name in ("q1", "q2"):
        assert status_and_code(tenant.get(f"/accounts/mine/aggregations/{name}")) == (404, "aggregation_absent")
    assert tenant.ok("GET", "/accounts/other/aggregations")["total"] == 1


def test_an_aggregation_of_another_account_does_not_exist(tenant: Tenant) -> None:
    open_account(tenant, id="mine")
    open_account(tenant, id="other")
    tenant.ok("POST", "/accounts/mine/aggregations", {"id": "q1"})

    for method in ("GET", "PATCH", "DELETE"):
        answer = tenant.request(
            method, "/accounts/other/aggregations/q1", json={"refresh": True} if method == "PATCH" else None
        )
        assert status_and_code(answer) == (404, "aggregation_absent")
    assert status_and_code(tenant.post("/accounts/other/aggregations", json={"id": "q1"})) == (409, "aggregation_taken")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"id": ".."}, "bad_body"),
        ({"metadata": {"authorization": {}}}, "metadata_reserved"),
        ({"metadata": {"x": "a" * 16 * 1024}}, "account_metadata_too_large"),
        ({"displayName": "a", "display_name": None}, "alias_conflict"),
        ({"walletIds": []}, "bad_body"),
    ],
    ids=["id", "reserved", "large", "spellings", "wallets"],
)
def test_a_bad_body_is_400(tenant: Tenant, body: dict[str, object], code: str) -> None:
    open_account(tenant, id="mine")

    assert status_and_code(tenant.post("/accounts/mine/aggregations", json=body)) == (400, code)


def test_pages_and_keys_and_the_audit_trail(service: Service, tenant: Tenant) -> None:
    open_account(tenant, id="mine")
    names = []
    for number in range(5):
        headers = {"Idempotency-Key": f"aggregation {number}"}
        made = [tenant.post("/accounts/mine/aggregations", json={}, headers=headers) for _ in range(2)]
        assert made[0].json()["data"] == made[1].json()["data"]
        names.append(made[0].json()["data"]["id"])

    page = tenant.ok("GET", "/accounts/mine/aggregations?limit=2&offset=2")

    assert ([one["id"] for one in page["aggregations"]], page["total"]) == (names[2:0:-1], 5)
    tenant.ok("PATCH", f"/accounts/mine/aggregations/{names[0]}", {"refresh": True})
    tenant.ok("DELETE", f"/accounts/mine/aggregations/{names[0]}")
    with closing(member(service, tenant, "owner", mfa=True)) as owner:
        assert [action for action, _ in audit_of(owner, names[0])] == [
            "aggregation.created",
            "aggregation.changed",
            "aggregation.deleted",
        ]
