"""A model pays and signs with the tools: what it reads, and that a payment's name makes it happen once."""

import uuid
from typing import Any

import asyncpg
import pytest
from custody_sdk import Vault

from tests.fixtures.callers import ADDRESS, Agent, Tenant, rule
from tests.fixtures.eventually import eventually
from tests.fixtures.mcp import ERAS, McpServer, token_of
from tests.fixtures.server import EVM_CHAIN, Service
from tests.outside.evm_node import EvmNode
from tests.outside.mcp_clients.driven import Driven, McpError
from tests.routes.orders import payment_demand, payment_offer

TASKS = "tasks"
MOST = 100
ASKS = 50


@pytest.fixture(name="spender")
def spender_fixture(tenant: Tenant, evm_node: EvmNode) -> Agent:
    """An agent with money, which may pay 100 wei at a time, and asks a person above 50."""
    agent = tenant.agent(
        rule("spending-limit", maxPerTransaction=str(MOST)), rule("auto-approve-threshold", threshold=str(ASKS))
    )
    evm_node.fund(agent.evm_address)
    return agent


def pay(client: Driven, name: str, amount: int, **more: Any) -> dict[str, Any]:
    """Pay so many wei."""
    return client.ok("pay", payment_name=name, to=ADDRESS, amount=str(amount), chain_id=EVM_CHAIN, **more)


def orders(agent: Agent) -> list[dict[str, Any]]:
    """Every order of the agent."""
    found: list[dict[str, Any]] = agent.ok("GET", f"/vault/{agent.id}/transactions")["transactions"]
    return found


@pytest.mark.parametrize("era", ERAS)
def test_a_payment_has_four_outcomes_and_a_name_pays_once(
    mcp: McpServer, spender: Agent, tenant: Tenant, evm_node: EvmNode, era: str
) -> None:
    ask = {"to": ADDRESS, "chain_id": EVM_CHAIN}
    with mcp.client(spender, era) as client:
        assert client.protocol == ("2025-11-25" if era == "legacy" else era)
        assert [client.ok("check_payment", amount=amount, **ask)["decision"] for amount in ("7", "70", "700")] == [
            "sign",
            "ask",
            "refuse",
        ]
        assert orders(spender) == []

        signed = pay(client, "invoice-1", 7)
        again = pay(client, "invoice-1", 7)
        assert signed["outcome"] == "signed"
        assert {**again, "what_to_do": ""} == {**signed, "what_to_do": ""}
        eventually(lambda: evm_node.receipt(signed["transaction_hash"])["status"], "0x1")

        waiting = pay(client, "invoice-2", 70)
        assert (waiting["outcome"], waiting["what_to_do"]) == (
            "waiting",
            "A person must decide. Call wait_for_decision with this transaction_id, or tell the user. Never pay again.",
        )
        refused = pay(client, "invoice-3", 700)
        assert (refused["outcome"], refused["what_to_do"]) == ("refused", "Do not try variations. Tell the user.")
        assert any("limit" in reason for reason in refused["reasons"])
        assert client.ok("wallet_status")["waiting"] == 1

        [queued] = spender.ok("GET", f"/vault/{spender.id}/pending")
        none_yet = client.ok("wait_for_decision", transaction_id=waiting["transaction_id"], timeout_seconds=1)
        assert none_yet["decision"] == "none_yet"
        tenant.ok("POST", f"/approvals/{queued['queueId']}/approve", {})
        approved = client.ok("wait_for_decision", transaction_id=waiting["transaction_id"], timeout_seconds=60)
        assert approved["decision"] == "approved"
        assert pay(client, "invoice-2", 70)["outcome"] == "signed"
        assert client.ok("get_payment", transaction_id=waiting["transaction_id"])["payment_name"] == "invoice-2"

        said = client.refusal("pay", payment_name="invoice-1", amount="8", **ask)
        assert said.startswith("idempotency_mismatch: ")
        assert said.endswith("A new payment needs a new name; a repeated one must be equal.")
    assert sorted(one["value"] for one in orders(spender) if one["status"] != "rejected") == ["7", "70"]


async def test_a_name_of_another_day_pays_no_second_time(
    mcp: McpServer, spender: Agent, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    document = {"domain": {"name": "Notes"}, "types": {"N": [{"name": "t", "type": "string"}]}, "primaryType": "N"}
    asked: dict[str, dict[str, Any]] = {
        "pay": {"to": ADDRESS, "amount": "7", "chain_id": EVM_CHAIN},
        "sign_typed_data": {"document": document | {"message": {"t": "hello"}}},
        "pay_demand": {"demand": payment_demand(payment_offer())},
    }
    with mcp.client(spender) as client:
        first = {
            tool: client.ok(tool, payment_name="invoice-1", **more)["transaction_id"] for tool, more in asked.items()
        }
        # What was withdrawn paid nothing: a person may be asked about it again.
        waiting = pay(client, "invoice-2", 70)
        spender.ok("POST", f"/vault/{spender.id}/transactions/{waiting['transaction_id']}/withdraw", {})
        # As it is a day later: the service has forgotten the keys.
        for forget in (
            "UPDATE idempotency SET expires_at = now() WHERE tenant_id = $1",
            "UPDATE transactions SET created_at = created_at - interval '1 day' WHERE tenant_id = $1",
        ):
            await owner.execute(forget, tenant.id)

        for tool, more in asked.items():
            said = client.refusal(tool, payment_name="invoice-1", **more)
            assert said.startswith(f"name_used: invoice-1 was another day's payment, {first[tool]}. "), said
        assert len(orders(spender)) == 4
        assert pay(client, "invoice-2", 70)["outcome"] == "waiting"
        # The control: the keys are free, and by another name the same is signed.
        for tool, more in asked.items():
            assert client.ok(tool, payment_name="invoice-3", **more)["transaction_id"] not in first.values()
    assert len(orders(spender)) == 8


def test_a_denial_is_final_and_says_why(mcp: McpServer, spender: Agent, tenant: Tenant) -> None:
    with mcp.client(spender) as client:
        waiting = pay(client, "invoice-9", 70)
        [queued] = spender.ok("GET", f"/vault/{spender.id}/pending")
        tenant.ok("POST", f"/approvals/{queued['queueId']}/deny", {"reason": "not that shop"})

        decided = client.ok("wait_for_decision", transaction_id=waiting["transaction_id"], timeout_seconds=60)
        assert (decided["decision"], decided["reason"]) == ("denied", "not that shop")
        assert pay(client, "invoice-9", 70)["outcome"] == "refused"


def test_a_name_fifty_times_at_once_pays_once(mcp: McpServer, spender: Agent) -> None:
    with mcp.client(spender) as client:
        arguments = {"payment_name": "hot", "to": ADDRESS, "amount": "7", "chain_id": EVM_CHAIN}
        found = client.many(50, "pay", **arguments)
        # Some may come while the first is under way; what they are told is to call again, and then they agree.
        late = [one for one in found if one.get("isError")]
        assert all("idempotency_in_flight" in one["content"][0]["text"] or "too_" in str(one) for one in late)
        assert len({one["structuredContent"]["transaction_id"] for one in found if not one.get("isError")}) == 1
    assert len(orders(spender)) == 1


def test_a_payment_of_the_tools_and_one_of_the_client_are_the_same_by_its_name(
    mcp: McpServer, service: Service, spender: Agent, evm_node: EvmNode
) -> None:
    token = evm_node.deploy_erc20(spender.evm_address)
    with mcp.client(spender) as client, Vault(service.url, token_of(spender), allow_http=True) as vault:
        tooled = pay(client, "invoice-1", 7)
        assert vault.pay("invoice-1", ADDRESS, 7, chain_id=EVM_CHAIN).tx_id == tooled["transaction_id"]
        asset = f"evm:{EVM_CHAIN}:{token}"
        theirs = vault.check(ADDRESS, 5, asset)["decision"]
        assert (
            client.ok("check_payment", to=ADDRESS, amount="5", asset=asset, chain_id=EVM_CHAIN)["decision"]
            == {
                "sign": "sign",
                "queue": "ask",
                "refuse": "refuse",
            }[theirs]
        )
    assert len(orders(spender)) == 1


def test_tokens_are_paid_by_their_contract(mcp: McpServer, tenant: Tenant, evm_node: EvmNode) -> None:
    agent = tenant.agent()
    evm_node.fund(agent.evm_address)
    token = evm_node.deploy_erc20(agent.evm_address)
    holder = "0x" + uuid.uuid4().hex.rjust(40, "1")
    with mcp.client(agent) as client:
        for number, asset in enumerate([token, f"evm:{EVM_CHAIN}:{token}"]):
            arguments = {"to": holder, "amount": "5", "chain_id": EVM_CHAIN, "asset": asset}
            paid = client.ok("pay", payment_name=f"tokens-{number}", **arguments)
            eventually(lambda paid=paid: evm_node.receipt(paid["transaction_hash"])["status"], "0x1")
    balance = evm_node.rpc("eth_call", {"to": token, "data": "0x70a08231" + holder[2:].rjust(64, "0")}, "latest")
    assert int(balance, 16) == 10


def test_documents_and_demands_are_signed(mcp: McpServer, tenant: Tenant) -> None:
    agent = tenant.agent()
    document = {
        "domain": {"name": "Notes", "version": "1", "chainId": 1},
        "types": {"Note": [{"name": "text", "type": "string"}]},
        "primaryType": "Note",
        "message": {"text": "hello"},
    }
    with mcp.client(agent) as client:
        signed = client.ok("sign_typed_data", payment_name="note-1", document=document)
        assert (signed["outcome"], len(signed["signature"])) == ("signed", 132)
        said = client.refusal("sign_typed_data", payment_name="note-2", document={**document, "gas": 1})
        assert said.startswith("bad_argument: document must have domain, types, primaryType and message alone")

        paid = client.ok("pay_demand", payment_name="quote-1", demand=payment_demand(payment_offer()))
        assert paid["outcome"] == "waiting" or paid["header"] == "PAYMENT-SIGNATURE"
        none = client.ok("pay_demand", payment_name="quote-2", demand=payment_demand(payment_offer(network="eip155:9")))
        assert none["outcome"] == "refused"


def test_another_agents_payment_is_absent(mcp: McpServer, tenant: Tenant) -> None:
    mine, theirs = tenant.agent(), tenant.agent()
    other = theirs.sign().json()["data"]["txId"]
    with mcp.client(mine) as client:
        for tool, more in (("get_payment", {}), ("wait_for_decision", {"timeout_seconds": 1})):
            said = client.refusal(tool, transaction_id=other, **more)
            assert said.startswith("transaction_absent: ")
            said = client.refusal(tool, transaction_id=f"../../agents/{theirs.id}", **more)
            assert said.startswith("bad_argument: transaction_id must be an id as an earlier result had it")


GOOD = {"payment_name": "invoice-1", "to": ADDRESS, "amount": "7", "chain_id": EVM_CHAIN}


def test_an_argument_of_another_form_is_refused_before_anything_is_asked(mcp: McpServer, spender: Agent) -> None:
    wrong = {
        "payment_name": ["", "ab", "a b", "a" * 65, "invoice-1\n", "\u00e9tude", 7, None],
        "to": ["", "0x12", ADDRESS[2:], ADDRESS + "0", f"{ADDRESS}\n", "vitalik.eth", None],
        "amount": ["1.5", "1e18", "-1", "+1", "0x10", "", "1" * 79, str(2**256), 7, 7.0, True, "\u0667"],
        "chain_id": ["31337", 0, -1, 1.5, True, 2**53 + 1, None],
        "asset": ["USDC", "evm:1:native", f"evm:{EVM_CHAIN}:0x12", "solana:native", 7],
    }
    with mcp.client(spender) as client:
        for name, values in wrong.items():
            for value in values:
                said = client.refusal("pay", **{**GOOD, name: value})
                assert said.startswith(f"bad_argument: {name} "), (name, value, said)
                assert said.endswith("Change that argument and call again."), said
        for name in ("payment_name", "to", "amount", "chain_id"):
            said = client.refusal("pay", **{one: value for one, value in GOOD.items() if one != name})
            assert said.startswith(f"argument_missing: {name} "), said
        said = client.refusal("pay", **GOOD, priority="high")
        assert said.startswith("unknown_argument: There is no argument priority; there are payment_name, to, amount,")
        assert client.refusal("approve", id="1").startswith("unknown_tool: ")
        # The control: what is right is paid.
        assert client.ok("pay", **GOOD)["outcome"] == "signed"
    assert len(orders(spender)) == 1


def test_a_payment_that_waits_is_a_task_for_who_takes_tasks(mcp: McpServer, spender: Agent, tenant: Tenant) -> None:
    with mcp.client(spender, "2026-07-28", TASKS) as client:
        task = client.call("pay", **{**GOOD, "amount": "70"})
        assert (task["resultType"], task["status"]) == ("task", "working")
        [queued] = spender.ok("GET", f"/vault/{spender.id}/pending")
        assert task["taskId"] == queued["transaction"]["id"]
        assert client.request("tasks/get", task["taskId"])["status"] == "working"
        tenant.ok("POST", f"/approvals/{queued['queueId']}/approve", {})
        done = client.request("tasks/get", task["taskId"])
        assert (done["status"], done["result"]["structuredContent"]["decision"]) == ("completed", "approved")

        other = client.call("pay", **{**GOOD, "amount": "71", "payment_name": "invoice-2"})
        client.request("tasks/cancel", other["taskId"])
        assert client.request("tasks/get", other["taskId"])["status"] == "cancelled"
        assert spender.ok("GET", f"/vault/{spender.id}/pending") == []
        for wrong in ("../x", str(uuid.uuid4())):
            with pytest.raises(McpError):
                client.request("tasks/get", wrong)
        # At once signed: a result, no task.
        assert client.ok("pay", **{**GOOD, "payment_name": "invoice-3"})["outcome"] == "signed"
    with mcp.client(spender, "legacy", TASKS) as client:
        assert client.ok("pay", **{**GOOD, "amount": "70", "payment_name": "invoice-4"})["outcome"] == "waiting"


def test_a_wait_that_a_client_gives_up_leaves_the_order(mcp: McpServer, spender: Agent) -> None:
    with mcp.client(spender) as client:
        waiting = pay(client, "invoice-1", 70)
        client.give_up("wait_for_decision", transaction_id=waiting["transaction_id"], timeout_seconds=300)
        heard = client.call("wait_for_decision", transaction_id=waiting["transaction_id"], timeout_seconds=2)
        assert heard["structuredContent"]["decision"] == "none_yet"
        assert heard["heard"] >= 1
    assert len(spender.ok("GET", f"/vault/{spender.id}/pending")) == 1
