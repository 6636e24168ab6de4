"""A receipt says what the signer recorded, and one changed letter is detected."""

import json
import subprocess
import sys
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import asyncpg
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from custody.kit.jwt import TokenKeys, UnknownKey
from custody.receipts.verify import NotValid, Unreadable
from custody.receipts.verify import verify as check
from tests.fixtures.authorised import Order
from tests.fixtures.callers import Agent, Client, Tenant, rule
from tests.fixtures.eventually import eventually
from tests.fixtures.people import Person
from tests.fixtures.signers import new_key, new_signer
from tests.outside.evm_node import EvmNode
from tests.outside.processes import PROJECT
from tests.routes.orders import message, note, permit, solana_payment

ABSENT = "00000000-0000-4000-8000-000000000000"
LIMIT = rule("spending-limit", maxPerDay="1000", maxPerWeek="5000")


def receipt_of(client: Client, agent: Agent, tx_id: str) -> Any:
    return client.ok("GET", f"/vault/{agent.id}/transactions/{tx_id}/receipt")


def sign(agent: Agent, route: str, order: Any) -> str:
    return str(agent.ok("POST", f"/vault/{agent.id}/{route}", order)["txId"])


@pytest.fixture
def verify(as_nobody: Client, tmp_path: Path) -> Any:
    """The command, on what is given to it, in a process that knows no service."""
    jwks = tmp_path / "jwks.json"
    jwks.write_text(as_nobody.get("/.well-known/jwks.json").text)

    def run(receipt: Any, *more: str, keys: Path = jwks) -> tuple[int, str]:
        file = tmp_path / "receipt.json"
        file.write_text(receipt if isinstance(receipt, str) else json.dumps(receipt))
        command = [
            sys.executable,
            "-P",
            "-m",
            "ops",
            "receipt",
            "verify",
            str(file),
            "--jwks",
            str(keys),
            *more,
        ]
        environment = {"PYTHONPATH": str(PROJECT), "SERVICE_HOME": str(tmp_path / "none")}
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        return ended.returncode, ended.stdout + ended.stderr

    return run


def test_it_states_the_rules_the_effects_and_the_spend(tenant: Tenant) -> None:
    agent = tenant.agent(LIMIT)
    assert agent.sign(value=40).status_code == 200
    answer = agent.sign(value=60, referenceId="invoice-1").json()["data"]
    shown = agent.ok("GET", f"/vault/{agent.id}/transactions/{answer['txId']}")

    receipt = receipt_of(tenant, agent, answer["txId"])["receipt"]

    for name in ("txId", "status", "effects", "policyResults", "policyVersion", "txHash", "chainId", "caip2", "value"):
        assert receipt[name] == shown[name], name
    assert (receipt["tenantId"], receipt["agentId"], receipt["wallet"]) == (tenant.id, agent.id, agent.evm_address)
    common = {"policyId": tenant.ok("GET", f"/agents/{agent.id}/policies")[0]["id"], "asset": "evm:native"}
    assert receipt["budgets"] == [
        {**common, "window": "day", "limit": "1000", "before": "40", "after": "100"},
        {**common, "window": "week", "limit": "5000", "before": "40", "after": "100"},
    ]
    assert receipt["approval"] is None
    assert receipt["signedAt"] == shown["signedAt"]
    # A signature can be used by its holder: neither it nor the bytes stand in a receipt that is shown around.
    assert answer["signedTransaction"] not in json.dumps(receipt)


@pytest.mark.parametrize(
    ("route", "make"),
    [
        ("sign-typed-data", lambda agent: note()),
        ("sign-typed-data", lambda agent: permit(agent.evm_address, 5)),
        ("sign-message", lambda agent: message("Grüße")),
        ("sign-message", lambda agent: message("Grüße", "solana")),
        ("sign-solana", lambda agent: solana_payment(agent, 7)),
        ("sign", lambda agent: {"to": agent.evm_address, "value": "1", "data": "0xdeadbeef", "broadcast": False}),
        ("sign", lambda agent: {"to": agent.evm_address, "value": "1", "chainId": 8453, "broadcast": False}),
    ],
    ids=["note", "permit", "message", "message of solana", "solana", "calldata", "another chain"],
)
def test_every_kind_of_signature_has_one_that_holds(agent: Agent, verify: Any, route: str, make: Any) -> None:
    receipt = receipt_of(agent, agent, sign(agent, route, make(agent)))

    code, said = verify(receipt)

    assert (code, said.splitlines()[0].split(":")[0]) == (0, "VALID"), said
    assert receipt["receipt"]["wallet"] in said
    assert "Not proven:" in said


def test_a_broadcast_transaction_and_its_replacement_of_a_slot_have_one(agent: Agent, evm_node: EvmNode) -> None:
    evm_node.fund(agent.evm_address)
    unused = agent.sign(value=5).json()["data"]["txId"]
    sent = agent.sign(value=3, broadcast=True).json()["data"]["txId"]

    receipt = receipt_of(agent, agent, sent)["receipt"]

    assert (receipt["replacesTxId"], receipt["nonce"]) == (unused, "0")
    assert receipt_of(agent, agent, unused)["receipt"]["nonce"] == "0"


def test_a_receipt_names_the_approval_and_its_approver(tenant: Tenant, verify: Any) -> None:
    agent = tenant.agent(LIMIT, rule("auto-approve-threshold", threshold="10"))
    queued = agent.sign(value=60).json()["data"]
    tenant.ok("POST", f"/approvals/{queued['approvalId']}/approve", {})

    receipt = receipt_of(tenant, agent, queued["txId"])

    approval = receipt["receipt"]["approval"]
    assert approval["id"] == queued["approvalId"]
    assert approval["approvedBy"].startswith("tenant-key:")
    assert verify(receipt)[0] == 0


def test_a_receipt_names_the_signers_who_authorised_it(
    as_owner: Person, tenant: Tenant, agent: Agent, verify: Any
) -> None:
    key = new_key()
    name = new_signer(as_owner, agent, key=key)["id"]
    order = Order(tenant.id, agent)
    receipt = receipt_of(tenant, agent, order.send(order.signer_headers(name, key)).json()["data"]["txId"])

    code, said = verify(receipt)
    assert (code, said.count(f"authorised by {name};")) == (0, 1)
    receipt["receipt"]["authorization"]["signers"] = []
    assert verify(receipt)[0] != 0


def test_the_same_facts_give_the_same_receipt(agent: Agent) -> None:
    tx_id = agent.sign().json()["data"]["txId"]

    first, second = (receipt_of(agent, agent, tx_id)["receipt"] for _ in range(2))

    moving = {"issuedAt", "status", "audit"}
    assert {name: one for name, one in first.items() if name not in moving} == {
        name: one for name, one in second.items() if name not in moving
    }
    assert first["audit"]["seq"] == second["audit"]["seq"]


def test_it_says_where_its_audit_row_is_once_that_is_sealed(agent: Agent, verify: Any) -> None:
    tx_id = agent.sign().json()["data"]["txId"]

    eventually(lambda: receipt_of(agent, agent, tx_id)["receipt"]["audit"]["logIndex"] is not None)

    sealed = receipt_of(agent, agent, tx_id)
    assert 0 <= sealed["receipt"]["audit"]["logIndex"] < sealed["receipt"]["audit"]["checkpointSize"]
    assert verify(sealed)[0] == 0


def test_an_unsigned_transaction_has_no_receipt(tenant: Tenant) -> None:
    agent = tenant.agent(rule("spending-limit", maxPerTransaction="10"), rule("auto-approve-threshold", threshold="5"))
    for value, status in ((6, 202), (11, 403)):
        answer = agent.sign(value=value)
        refused = agent.get(f"/vault/{agent.id}/transactions/{answer.json()['data']['txId']}/receipt")
        assert (answer.status_code, refused.status_code, refused.json()["data"]["code"]) == (status, 409, "not_signed")
    assert agent.get(f"/vault/{agent.id}/transactions/{ABSENT}/receipt").status_code == 404


def test_other_callers_get_no_receipt(tenant: Tenant, other_tenant: Tenant, agent: Agent) -> None:
    path = f"/vault/{agent.id}/transactions/{agent.sign().json()['data']['txId']}/receipt"

    assert other_tenant.get(path).status_code == 404
    assert tenant.agent().get(path).status_code == 403
    tenant.ok("DELETE", f"/agents/{agent.id}/tokens")
    assert agent.get(path).status_code == 401
    assert tenant.get(path).status_code == 200


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a document that holds a plain value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = False
    for key, one in items:
        found = True
        yield from places(one, (*path, key))
    if not found:
        yield path


def _another(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        return ("y" if value[:1] == "x" else "x") + value[1:]
    return "x"


def with_change(document: Any, path: tuple[Any, ...]) -> Any:
    """The document with one value made another."""
    copy = deepcopy(document)
    where = copy
    for key in path[:-1]:
        where = where[key]
    where[path[-1]] = _another(where[path[-1]])
    return copy


def test_every_field_that_is_changed_is_noticed(tenant: Tenant, as_nobody: Client, verify: Any) -> None:
    agent = tenant.agent(LIMIT, rule("auto-approve-threshold", threshold="10"))
    queued = agent.sign(value=60, referenceId="invoice-1").json()["data"]
    tenant.ok("POST", f"/approvals/{queued['approvalId']}/approve", {})
    receipt = receipt_of(tenant, agent, queued["txId"])
    jwks = as_nobody.get("/.well-known/jwks.json").content
    assert check(json.dumps(receipt).encode(), jwks).receipt == receipt["receipt"]

    missed = []
    for path in places(receipt):
        try:
            check(json.dumps(with_change(receipt, path)).encode(), jwks)
            missed.append(path)
        except (NotValid, Unreadable):
            pass
    for name in receipt["receipt"]:
        fewer = {**receipt, "receipt": {key: one for key, one in receipt["receipt"].items() if key != name}}
        with pytest.raises(NotValid):
            check(json.dumps(fewer).encode(), jwks)

    assert missed == []
    assert len(list(places(receipt))) > 40
    assert verify(with_change(receipt, ("receipt", "value")))[0] == 1


def test_a_malformed_receipt_or_key_is_reported_clearly(
    agent: Agent, as_nobody: Client, verify: Any, tmp_path: Path
) -> None:
    receipt = receipt_of(agent, agent, agent.sign().json()["data"]["txId"])
    keys = as_nobody.get("/.well-known/jwks.json").json()["keys"]
    others = tmp_path / "others.json"

    assert verify({"ok": True, "data": receipt})[0] == 0
    assert verify("no json")[0] == verify([])[0] == verify({**receipt, "surplus": 1})[0] == 2
    assert verify(json.dumps(receipt)[:-1] + ', "kid": "x"}')[0] == 2
    assert verify(receipt, keys=tmp_path / "absent")[0] == 2
    # The right key under another use, and the token key under this one's id, sign no receipt.
    others.write_text(json.dumps({"keys": [{**key, "use": "sig"} for key in keys]}))
    assert verify(receipt, keys=others)[0] == 1
    others.write_text(json.dumps({"keys": [{**keys[0], "kid": receipt["kid"], "use": "receipt"}]}))
    assert verify(receipt, keys=others)[0] == 1


def test_the_policies_that_judged_are_told_from_others(tenant: Tenant, verify: Any, tmp_path: Path) -> None:
    agent = tenant.agent(
        LIMIT, rule("allowed-chains", chains=[31337]), rule("time-window", allowedDays=[0, 1, 2, 3, 4, 5, 6])
    )
    receipt = receipt_of(tenant, agent, agent.sign().json()["data"]["txId"])
    policies = tenant.get(f"/agents/{agent.id}/policies").json()
    file = tmp_path / "policies.json"

    file.write_text(json.dumps(policies))
    assert verify(receipt, "--policies", str(file))[0] == 0
    policies["data"][0]["config"]["maxPerDay"] = "1001"
    file.write_text(json.dumps(policies))
    assert verify(receipt, "--policies", str(file))[0] == 1


def test_a_terminal_is_not_written_to_by_an_agent(agent: Agent, verify: Any) -> None:
    document = {**note(), "domain": {"name": "\x1b[2J\x07cleared", "chainId": 31337}}

    code, said = verify(receipt_of(agent, agent, sign(agent, "sign-typed-data", document)))

    assert code == 0
    assert "\x1b" not in said


CHANGES = {
    "effects": 'effects = replace(effects, \'"amount":"7"\', \'"amount":"8"\')',
    "results": "policy_results = '[]'",
    "budgets": "budgets = '[]'",
    "policies' hash": "policy_hash = decode(repeat('00', 32), 'hex')",
    "policies' version": "policy_version = policy_version + 1",
    "destination": "to_address = '0x2222222222222222222222222222222222222222'",
    "value": "value = value + 1",
    "reference": "reference_id = 'another'",
    "digest": "digest = decode(repeat('00', 32), 'hex')",
    "bytes": "signed_bytes = set_byte(signed_bytes, 20, 1 + get_byte(signed_bytes, 20) % 2)",
    "hash": "tx_hash = '0x' || repeat('00', 32)",
}


@pytest.mark.parametrize("name", CHANGES)
async def test_the_signer_states_nothing_that_somebody_wrote_into_the_database(
    tenant: Tenant, owner: asyncpg.Connection, name: str
) -> None:
    agent = tenant.agent(LIMIT)
    tx_id = agent.sign(value=7, referenceId="invoice-1").json()["data"]["txId"]
    path = f"/vault/{agent.id}/transactions/{tx_id}/receipt"
    assert agent.get(path).status_code == 200

    await owner.execute(f"UPDATE transactions SET {CHANGES[name]} WHERE id = $1", tx_id)

    answer = agent.get(path)
    assert (answer.status_code, answer.json()["data"]["code"]) == (503, "sealed_value_tampered")


def test_a_key_for_receipts_verifies_no_token() -> None:
    key = Ed25519PrivateKey.generate()
    x = jwt.algorithms.OKPAlgorithm.to_jwk(key.public_key(), as_dict=True)["x"]
    jwk = {"kid": "k", "x": str(x), "issuer": "https://custody.example"}
    claims = {
        "iss": jwk["issuer"],
        "sub": "a",
        "tid": "t",
        "scope": "agent",
        "inc": "i",
        "epoch": 1,
        "iat": 1,
        "exp": 2**40,
        "jti": "j",
    }
    token = jwt.encode(claims, key, algorithm="EdDSA", headers={"kid": "k"})

    assert TokenKeys.from_jwks([{**jwk, "use": "sig"}]).verify(token).sub == "a"
    with pytest.raises(UnknownKey):
        TokenKeys.from_jwks([{**jwk, "use": "receipt"}]).verify(token)
