"""Bodies and paths of accounts that are refused, each with a sentence that names the cure."""

import json
import uuid
from typing import Any

import pytest

from tests.fixtures.callers import Tenant
from tests.routes.accounts.makers import open_account, status_and_code

UUID = "7f1d1a6e-0000-4000-8000-000000000000"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"id": ""}, "bad_body"),
        ({"id": "a" * 65}, "bad_body"),
        ({"id": "a/b"}, "bad_body"),
        ({"id": ".."}, "bad_body"),
        ({"id": "a\n"}, "bad_body"),
        ({"unknown": 1}, "bad_body"),
        ({"display_name": ""}, "bad_body"),
        ({"display_name": "a\x00"}, "bad_body"),
        ({"metadata": None}, "bad_body"),
        ({"metadata": []}, "bad_body"),
        ({"metadata": {"authorization": None}}, "metadata_reserved"),
        ({"metadata": {"x": "a" * (16 * 1024 - 7)}}, "account_metadata_too_large"),
        ({"displayName": "a", "display_name": "b"}, "alias_conflict"),
        ({"ownerUserIds": [UUID], "owner_user_ids": []}, "alias_conflict"),
        ({"walletIds": [], "wallet_ids": ["a"]}, "alias_conflict"),
        ({"owner_user_ids": [str(uuid.UUID(int=n)) for n in range(33)]}, "bad_assignment"),
        ({"owner_user_ids": [""]}, "bad_assignment"),
        ({"owner_user_ids": [f" {UUID}"]}, "bad_assignment"),
        ({"additional_signer_ids": [UUID]}, "bad_assignment"),
        ({"additional_signer_ids": [""]}, "bad_assignment"),
        ({"signer_policy_ids": ["none"]}, "bad_assignment"),
        ({"wallet_ids": ["nobody"]}, "unknown_wallet"),
        ({"wallet_ids": ["a b"]}, "bad_body"),
        ({"wallets_configuration": [{}]}, "bad_configuration"),
        ({"wallets_configuration": [{"chain_type": "bitcoin"}]}, "bad_body"),
        ({"wallets_configuration": [{"chain_type": "evm", "chainType": "solana"}]}, "alias_conflict"),
        ({"wallets_configuration": [{"chain_type": "evm", "wallet_id": "nobody"}]}, "unknown_wallet"),
        ({"wallets_configuration": [{"chain_type": "evm"}] * 6}, "too_many_wallets"),
        ({"id": "user-wallet-x", "wallets_configuration": [{"chain_type": "evm"}]}, "agent_id_reserved"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_body_that_cannot_be_meant_is_400(tenant: Tenant, body: dict[str, Any], code: str) -> None:
    assert status_and_code(tenant.post("/accounts", json=body)) == (400, code)
    assert tenant.ok("GET", "/accounts")["total"] == 0


def test_both_spellings_of_the_same_are_taken(tenant: Tenant) -> None:
    assert open_account(tenant, displayName="a", display_name="a")["displayName"] == "a"


def test_metadata_has_16_kib_and_comes_back_as_it_was(tenant: Tenant) -> None:
    largest = {"x": "a" * (16 * 1024 - 8)}
    odd = {"z": 1, "a": [None, True, 1.5, 2**53], "nul": "\x00", "": {"deep": {}}}

    assert open_account(tenant, metadata=largest)["metadata"] == largest
    made = open_account(tenant, metadata=odd)
    assert tenant.ok("GET", f"/accounts/{made['id']}")["metadata"] == odd


def test_metadata_may_come_with_every_letter_escaped(tenant: Tenant) -> None:
    # Two bytes each as they are counted, six as many encoders send them.
    largest = {"x": "é" * (8 * 1024 - 4)}
    sent = {"headers": {"Content-Type": "application/json"}, "content": json.dumps({"metadata": largest})}

    made = tenant.post("/accounts", **sent)
    account = made.json()["data"]["id"]
    answers = [
        tenant.patch(f"/accounts/{account}", **sent),
        tenant.post(f"/accounts/{account}/aggregations", **sent),
    ]

    assert made.json()["data"]["metadata"] == largest
    assert [answer.status_code for answer in answers] == [200, 201], answers[1].text


def test_deep_metadata_is_refused_at_once(tenant: Tenant) -> None:
    content = b'{"metadata": {"a": ' + b"[" * 1000 + b"]" * 1000 + b"}}"

    answer = tenant.post("/accounts", content=content, headers={"Content-Type": "application/json"})

    assert answer.status_code in (201, 400)
    if answer.status_code == 201:
        assert json.loads(content)["metadata"] == answer.json()["data"]["metadata"]


def test_a_taken_id_is_409(tenant: Tenant) -> None:
    open_account(tenant, id="mine")

    assert status_and_code(tenant.post("/accounts", json={"id": "mine"})) == (409, "account_taken")


@pytest.mark.parametrize("name", ["a" * 65, "%2e%2e", "a%2Fb", "a%0a"])
def test_an_id_in_the_path_is_held_to_its_shape(tenant: Tenant, name: str) -> None:
    assert tenant.get(f"/accounts/{name}").status_code in (400, 404)


def test_five_wallets_and_no_sixth(tenant: Tenant) -> None:
    agents = [tenant.agent() for _ in range(6)]

    assert len(open_account(tenant, *agents[:5], id="mine")["wallets"]) == 10
    assert status_and_code(tenant.post("/accounts", json={"wallet_ids": [one.id for one in agents]})) == (
        400,
        "too_many_wallets",
    )
    assert status_and_code(tenant.patch("/accounts/mine", json={"wallet_ids": [one.id for one in agents]})) == (
        400,
        "too_many_wallets",
    )


def test_a_wallet_belongs_to_an_account_once(tenant: Tenant) -> None:
    agent = tenant.agent()
    evm = {"chain_type": "evm", "wallet_id": agent.id}

    for body in (
        {"wallet_ids": [agent.id, agent.id]},
        {"wallet_ids": [agent.id], "wallets_configuration": [evm]},
        {"wallets_configuration": [evm, evm]},
    ):
        assert status_and_code(tenant.post("/accounts", json=body)) == (400, "wallet_twice")
    families = [evm, {**evm, "chain_type": "solana"}]
    assert len(tenant.ok("POST", "/accounts", {"wallets_configuration": families})["wallets"]) == 2
