"""Accounts: what they show of their wallets, what changes them, and that both mounts are one thing."""

import uuid
from contextlib import closing
from typing import Any

import pytest

from tests.fixtures.callers import Agent, Tenant, rule
from tests.fixtures.people import Person, member, sign_in
from tests.fixtures.server import Service
from tests.fixtures.signers import new_quorum, new_signer
from tests.routes.accounts.makers import OTHER_SPELLING, audit_of, open_account, status_and_code

EVM = {"sign_transaction", "sign_message", "sign_typed_data", "send_calls", "transfer"}
SOLANA = {"sign_transaction", "sign_message", "solana_transaction"}


def test_an_account_shows_its_wallets_in_full(tenant: Tenant, agent: Agent) -> None:
    made = open_account(tenant, agent, id="treasury", displayName="Treasury", metadata={"team": "ops"})

    evm, solana = made["wallets"]
    assert (made["id"], made["tenantId"], made["displayName"]) == ("treasury", tenant.id, "Treasury")
    assert made["metadata"] == {"team": "ops"}
    assert made["walletIds"] == [agent.id]
    assert (evm["id"], evm["address"], evm["chainType"]) == (f"{agent.id}:evm", agent.evm_address, "ethereum")
    assert (solana["id"], solana["address"], solana["chainType"]) == (
        f"{agent.id}:solana",
        agent.solana_address,
        "solana",
    )
    assert evm["custody"] == {"type": "server", "ownerUserId": None}
    assert evm["signing"] == {
        "signerCount": 0,
        "activeSignerCount": 0,
        "quorumCount": 0,
        "activeQuorumCount": 0,
    }
    assert (set(evm["capabilities"]), set(solana["capabilities"])) == (EVM, SOLANA)
    assert {name for name, offered in evm["capabilityMetadata"]["operations"].items() if offered} == EVM
    assert len(evm["capabilityMetadata"]["operations"]) == 9
    assert (evm["purpose"], evm["venue"], evm["name"]) == (None, None, f"Agent {agent.id}")
    assert set(made["capabilities"]) == EVM | SOLANA
    assert made["capabilityMetadata"] == {
        "walletCount": 2,
        "walletIds": [agent.id],
        "chainFamilies": ["evm", "solana"],
        "custodyTypes": ["server"],
        "walletTypes": ["server"],
        "hasServerWallets": True,
        "hasUserEmbeddedWallets": False,
        "hasActiveDelegatedSigners": False,
        "hasActiveKeyQuorums": False,
    }


def test_every_field_has_both_spellings(tenant: Tenant, agent: Agent) -> None:
    made = open_account(tenant, agent, display_name="Treasury", owner_user_ids=[str(uuid.uuid4())])

    assert {name: made[other] for name, other in OTHER_SPELLING.items()} == {
        name: made[name] for name in OTHER_SPELLING
    }


def test_both_mounts_are_one(tenant: Tenant, agent: Agent) -> None:
    made = tenant.ok("POST", "/v1/accounts", {"id": "one", "walletIds": [agent.id]})

    assert tenant.ok("GET", "/accounts/one") == made == tenant.ok("GET", "/v1/accounts/one")
    assert tenant.ok("GET", "/accounts") == tenant.ok("GET", "/v1/accounts")
    assert tenant.ok("PATCH", "/v1/accounts/one", {"display_name": "One"})["displayName"] == "One"
    assert tenant.ok("DELETE", "/accounts/one") == {"id": "one", "deleted": True}
    assert status_and_code(tenant.get("/v1/accounts/one")) == (404, "account_absent")


def test_a_list_is_paged_newest_first(tenant: Tenant) -> None:
    names = [open_account(tenant)["id"] for _ in range(4)]

    page = tenant.ok("GET", "/accounts?limit=2&offset=1")

    assert [one["id"] for one in page["accounts"]] == names[2:0:-1]
    assert (page["total"], page["limit"], page["offset"]) == (4, 2, 1)
    assert status_and_code(tenant.get("/accounts?limit=101")) == (400, "bad_query")


def test_signers_and_quorums_say_how_a_wallet_is_signed_for(service: Service, tenant: Tenant, agent: Agent) -> None:
    def show() -> tuple[Any, ...]:
        wallet = tenant.ok("GET", "/accounts/mine")["wallets"][0]
        details = wallet["capabilityMetadata"]["signing"]
        return details["mode"], *wallet["signing"].values()

    open_account(tenant, agent, id="mine")
    with closing(member(service, tenant, "owner", mfa=True)) as owner:
        assert show() == ("server", 0, 0, 0, 0)
        delegated = new_signer(owner, agent, signerType="delegated")["id"]
        assert show() == ("delegated", 1, 1, 0, 0)
        quorum = new_quorum(owner, agent, [delegated], threshold=1)["id"]
        assert show() == ("quorum", 1, 1, 1, 1)
        owner.ok("PATCH", f"/agents/{agent.id}/key-quorums/{quorum}", {"status": "paused"})
        assert show() == ("delegated", 1, 1, 1, 0)
        owner.ok("DELETE", f"/agents/{agent.id}/key-quorums/{quorum}")
        owner.ok("DELETE", f"/agents/{agent.id}/signers/{delegated}")
        assert show() == ("server", 0, 0, 0, 0)


def test_a_frozen_wallet_can_do_nothing(tenant: Tenant, agent: Agent) -> None:
    open_account(tenant, agent, id="mine")
    tenant.ok("POST", f"/agents/{agent.id}/freeze", {})

    found = tenant.ok("GET", "/accounts/mine")

    assert found["capabilities"] == []
    assert not any(found["wallets"][0]["capabilityMetadata"]["operations"].values())


def test_a_frozen_tenants_wallets_can_do_nothing(tenant: Tenant, agent: Agent) -> None:
    open_account(tenant, agent, id="mine")
    tenant.ok("POST", f"/tenants/{tenant.id}/freeze", {})

    assert tenant.ok("GET", "/accounts/mine")["capabilities"] == []


def test_a_deleted_agent_stays_listed_without_an_address(tenant: Tenant, agent: Agent) -> None:
    open_account(tenant, agent, id="mine")
    tenant.ok("DELETE", f"/agents/{agent.id}")

    found = tenant.ok("GET", "/accounts/mine")

    assert found["walletIds"] == [agent.id]
    assert [(one["address"], one["capabilities"], one["createdAt"]) for one in found["wallets"]] == [
        (None, [], None)
    ] * 2


def test_an_agent_made_again_under_the_id_is_another_one(tenant: Tenant, agent: Agent) -> None:
    open_account(tenant, agent, id="mine")
    tenant.ok("DELETE", f"/agents/{agent.id}")
    again = tenant.agent(agent_id=agent.id)

    assert tenant.ok("GET", "/accounts/mine")["wallets"][0]["address"] is None
    # Named once more it belongs to the account again, as what it is now.
    changed = tenant.ok("PATCH", "/accounts/mine", {"wallet_ids": [again.id]})
    assert changed["wallets"][0]["address"] == again.evm_address


def test_wallets_are_made_as_configured_and_found_again(tenant: Tenant) -> None:
    configured = [
        {"chain_type": "ethereum", "name": "Cold"},
        {"chainType": "evm"},
        {"chain_type": "solana"},
    ]
    made = tenant.ok("POST", "/accounts", {"id": "vault", "wallets_configuration": configured})

    assert [(one["walletId"], one["chainFamily"]) for one in made["wallets"]] == [
        ("vault-evm-0", "evm"),
        ("vault-evm-1", "evm"),
        ("vault-solana-0", "solana"),
    ]
    assert made["wallets"][0]["name"] == "Cold"
    again = tenant.ok("PATCH", "/accounts/vault", {"walletsConfiguration": configured[:1]})
    assert [one["address"] for one in again["wallets"]] == [made["wallets"][0]["address"]]
    assert tenant.ok("GET", "/agents/vault-evm-1")["id"] == "vault-evm-1"


def test_a_refused_account_makes_no_agents(tenant: Tenant) -> None:
    open_account(tenant, id="taken")
    for body, code in (
        ({"id": "taken"}, "account_taken"),
        ({"id": "other", "wallet_ids": ["nobody"]}, "unknown_wallet"),
        ({"id": "other", "metadata": {"authorization": {}}}, "metadata_reserved"),
        ({"id": "other", "signer_policy_ids": ["none"]}, "bad_assignment"),
    ):
        answer = tenant.post("/accounts", json={**body, "wallets_configuration": [{"chain_type": "evm"}]})
        assert answer.json()["data"]["code"] == code
    assert tenant.ok("GET", "/agents") == []


def test_a_configured_wallet_may_be_an_agents_of_one_family(tenant: Tenant, agent: Agent) -> None:
    made = tenant.ok(
        "POST",
        "/accounts",
        {"wallets_configuration": [{"chain_type": "solana", "wallet_id": agent.id, "name": "Payouts"}]},
    )

    assert [(one["id"], one["name"], one["address"]) for one in made["wallets"]] == [
        (f"{agent.id}:solana", "Payouts", agent.solana_address)
    ]


def test_the_same_request_under_a_key_is_one_account(tenant: Tenant) -> None:
    body = {"displayName": "One", "wallets_configuration": [{"chain_type": "evm"}]}
    first, second = (
        tenant.post("/accounts", json=body, headers={"Idempotency-Key": "open one account"}) for _ in range(2)
    )

    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json()["data"] == second.json()["data"]
    assert "Idempotency-Replayed" not in first.headers
    assert second.headers["Idempotency-Replayed"] == "true"
    assert tenant.ok("GET", "/accounts")["total"] == 1
    changed = {**body, "displayName": "Two"}
    other = tenant.post("/accounts", json=changed, headers={"Idempotency-Key": "open one account"})
    assert status_and_code(other) == (409, "idempotency_mismatch")


def test_every_change_is_in_the_audit_trail(service: Service, tenant: Tenant, agent: Agent) -> None:
    with closing(member(service, tenant, "admin", mfa=True)) as admin:
        open_account(admin, agent, id="mine")
        admin.ok("PATCH", "/accounts/mine", {"display_name": "Mine", "wallet_ids": []})
        admin.ok("DELETE", "/accounts/mine")

        assert audit_of(admin, "mine") == [
            ("account.created", {"walletIds": [agent.id]}),
            ("account.changed", {"fields": ["display_name", "wallet_ids"], "walletIds": []}),
            ("account.deleted", {"walletIds": []}),
        ]
        [row] = admin.ok("GET", "/audit/events?action=account.deleted")["data"]
        assert (row["actor_type"], row["actor_id"]) == ("user", admin.id)


def test_a_persons_wallets_belong_to_accounts_of_their_own_tenant(service: Service, tenant: Tenant) -> None:
    with closing(sign_in(service)) as person:
        person.enrol_totp()
        wallet = person.ok("POST", "/user/me/wallet", {})

        made = person.ok("POST", "/accounts", {"user_wallet_ids": [wallet["agentId"]]})

        assert made["wallets"][0]["custody"] == {"type": "user_embedded", "ownerUserId": person.id}
        assert made["wallets"][0]["capabilityMetadata"]["signing"]["mode"] == "user"
        assert made["wallets"][0]["capabilityMetadata"]["custody"]["userOwned"] is True
        assert made["capabilityMetadata"]["custodyTypes"] == ["user_embedded"]
        for client, field in ((person, "wallet_ids"), (tenant, "user_wallet_ids"), (tenant, "wallet_ids")):
            answer = client.post("/accounts", json={field: [wallet["agentId"]]})
            assert status_and_code(answer) == (400, "unknown_wallet")


@pytest.fixture
def owner(service: Service, tenant: Tenant) -> Any:
    with closing(member(service, tenant, "owner", mfa=True)) as person:
        yield person


def test_assignments_are_told_and_kept_when_metadata_changes(tenant: Tenant, owner: Person) -> None:
    agent = tenant.agent({**rule("rate-limit", maxTxPerHour=1), "id": "hourly"})
    signer = new_signer(owner, agent)["id"]
    assigned = {"ownerUserIds": [owner.id], "additionalSignerIds": [signer], "signerPolicyIds": ["hourly"]}

    made = open_account(tenant, agent, id="mine", metadata={"a": 1}, **assigned)
    changed = tenant.ok("PATCH", "/accounts/mine", {"metadata": {"b": 2}})

    assert made["metadata"] == {"a": 1, "authorization": assigned}
    assert changed["metadata"] == {"b": 2, "authorization": assigned}
    assert {name: changed[name] for name in assigned} == assigned
    emptied = tenant.ok("PATCH", "/accounts/mine", {"owner_user_ids": []})
    assert emptied["metadata"]["authorization"] == {name: assigned[name] for name in assigned if name[0] != "o"}


def test_new_wallets_must_have_those_who_are_assigned(tenant: Tenant, owner: Person) -> None:
    first, second = tenant.agent(), tenant.agent()
    signer = new_signer(owner, first)["id"]
    open_account(tenant, first, id="mine", additional_signer_ids=[signer])

    assert status_and_code(tenant.patch("/accounts/mine", json={"wallet_ids": [second.id]})) == (400, "bad_assignment")
    both = {"wallet_ids": [second.id], "additional_signer_ids": []}
    assert tenant.ok("PATCH", "/accounts/mine", both)["walletIds"] == [second.id]


def test_a_revoked_signer_is_assigned_to_nothing(tenant: Tenant, owner: Person, agent: Agent) -> None:
    signer = new_signer(owner, agent)["id"]
    owner.ok("DELETE", f"/agents/{agent.id}/signers/{signer}")

    answer = tenant.post("/accounts", json={"wallet_ids": [agent.id], "additional_signer_ids": [signer]})

    assert status_and_code(answer) == (400, "bad_assignment")


def test_an_assignment_grants_nothing(service: Service, tenant: Tenant, agent: Agent) -> None:
    with closing(member(service, tenant, "viewer", mfa=True)) as viewer:
        open_account(tenant, agent, id="mine", owner_user_ids=[viewer.id])

        assert viewer.get("/accounts/mine").status_code == 200
        assert viewer.patch("/accounts/mine", json={"display_name": "Mine"}).status_code == 403
        assert viewer.delete("/accounts/mine").status_code == 403


def test_another_tenants_account_does_not_exist(tenant: Tenant, other_tenant: Tenant, agent: Agent) -> None:
    open_account(tenant, agent, id="shared-name")

    for method, path in (
        ("GET", ""),
        ("PATCH", ""),
        ("DELETE", ""),
        ("GET", "/balance"),
        ("GET", "/aggregations"),
        ("POST", "/aggregations"),
    ):
        body = {} if method in ("PATCH", "POST") else None
        answer = other_tenant.request(method, f"/accounts/shared-name{path}", json=body)
        assert status_and_code(answer) == (404, "account_absent")
    assert status_and_code(other_tenant.post("/accounts", json={"wallet_ids": [agent.id]})) == (400, "unknown_wallet")
    # The id is taken in one tenant alone.
    assert open_account(other_tenant, id="shared-name")["walletIds"] == []
    assert tenant.ok("GET", "/accounts/shared-name")["walletIds"] == [agent.id]


def test_no_cache_keeps_an_answer(tenant: Tenant, agent: Agent) -> None:
    open_account(tenant, agent, id="mine")

    for path in ("/accounts", "/accounts/mine", "/accounts/mine/balance", "/accounts/mine/aggregations"):
        assert tenant.get(path).headers["cache-control"] == "no-store"
