"""Waiting orders in words: short for a list, whole for a decision, and with the text of others written out."""

import hashlib
import uuid

import asyncpg
import pytest

from tests.fixtures.callers import ADDRESS, OTHER_ADDRESS, Agent, Client, Tenant, rule
from tests.outside.evm_node import EvmNode
from tests.routes.orders import SPENDER, TOKEN_CONTRACT, UNLIMITED, note, permit, solana_payment

WAITS = rule("auto-approve-threshold", threshold="0")
HOSTILE = "\u202egnp.exe <b>bold</b> [31m"


@pytest.fixture
def cautious(tenant: Tenant) -> Agent:
    """An agent whose every payment waits."""
    return tenant.agent(WAITS)


def queue_order(agent: Agent, value: int = 5, **fields: object) -> str:
    answer = agent.sign(value=value, **fields)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["data"]["approvalId"])


def queue_document(agent: Agent, document: dict[str, object]) -> str:
    answer = agent.post(f"/vault/{agent.id}/sign-typed-data", json=document)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["data"]["approvalId"])


def words(tenant: Client, approval: str) -> dict[str, list[str]]:
    """Every part of an item that has lines, as texts."""
    found = tenant.ok("GET", f"/approvals/{approval}/words")
    return {name: [one["text"] for one in part] for name, part in found.items() if isinstance(part, list)}


def erc20(selector: str, party: str, amount: int) -> str:
    return f"0x{selector}{party[2:].rjust(64, '0')}{amount:064x}"


def test_a_payment_is_told_exactly(tenant: Tenant, cautious: Agent) -> None:
    approval = queue_order(cautious, 1_500_000_000_000_000_007)

    found = tenant.ok("GET", f"/approvals/{approval}/words")
    said = words(tenant, approval)

    assert said["lines"][:2] == ["Sends 1.500000000000000007 ETH (1,500,000,000,000,000,007 wei) to", f"  {ADDRESS}"]
    assert [one["address"] for one in found["lines"][:2]] == [False, True]
    assert f'Agent "Agent {cautious.id}" ({cautious.id}) asks for this.' in said["lines"]
    assert any(text.startswith("! First time") for text in said["danger"])
    assert said["before"] == ["Never paid before."]
    assert any("auto-approve-threshold" in text for text in said["rules"])
    assert any(text.startswith("digest") and found["digest"] in text for text in said["details"])
    assert (found["complete"], found["status"], found["votes"]) == (True, "pending", None)
    whole = f"custody-order-v1:{found['kind']}:{found['order']}".encode()
    assert hashlib.sha256(whole).hexdigest() == found["digest"] == tenant.ok("GET", f"/approvals/{approval}")["digest"]


def test_an_address_is_told_by_whose_it_is_and_what_went_there(tenant: Tenant, cautious: Agent) -> None:
    friend = tenant.agent(agent_id="friend")
    tenant.ok("POST", f"/approvals/{queue_order(cautious, 3, to=friend.evm_address)}/approve", {})
    approval = queue_order(cautious, 5, to=friend.evm_address.lower())

    said = words(tenant, approval)

    assert '  agent "Agent friend" (friend) of this tenant' in said["lines"]
    assert "  paid before, at most 0.000000000000000003 ETH (3 wei)" in said["lines"]
    assert said["danger"] == []
    assert "sent it 0.000000000000000003 ETH (3 wei)" in said["before"][0].replace("sends", "sent")
    stranger = words(tenant, queue_order(cautious, 5, to=OTHER_ADDRESS))
    assert "  unknown: not an agent here, not on an approved list" in stranger["lines"]


def test_an_agent_of_another_tenant_is_unknown(tenant: Tenant, other_tenant: Tenant, cautious: Agent) -> None:
    foreign = other_tenant.agent()
    said = words(tenant, queue_order(cautious, 5, to=foreign.evm_address))

    assert "  unknown: not an agent here, not on an approved list" in said["lines"]


def test_limits_and_lists_are_told(tenant: Tenant) -> None:
    limited = rule("spending-limit", maxPerDay="100")
    agent = tenant.agent(WAITS, limited, rule("approved-addresses", addresses=[ADDRESS]))

    said = words(tenant, queue_order(agent, 40))

    assert "  on the approved list of this agent" in said["lines"]
    assert any("40%" in text for text in said["limits"])


def test_an_unlimited_approval_is_a_danger_in_both_forms(tenant: Tenant, cautious: Agent) -> None:
    token = {"to": TOKEN_CONTRACT, "data": erc20("095ea7b3", SPENDER, UNLIMITED)}
    approval = queue_order(cautious, 0, **token)

    (listed,) = tenant.ok("GET", "/approvals/words")
    said = words(tenant, approval)

    assert listed["short"].startswith("UNLIMITED approval of token 0x3333")
    assert listed["danger"] == "! UNLIMITED: the spender can take the whole balance, now and later."
    assert said["danger"][0] == listed["danger"]
    assert "Lets this address spend UNLIMITED amounts on the agent's behalf, now and later:" in said["lines"]
    assert any("approve" in text for text in said["details"])


def test_a_token_is_told_by_its_own_decimals(tenant: Tenant, cautious: Agent, evm_node: EvmNode) -> None:
    token = evm_node.deploy_erc20(cautious.evm_address, symbol="ETH", decimals=6)
    said = words(tenant, queue_order(cautious, 0, to=token, data=erc20("a9059cbb", OTHER_ADDRESS, 2_500_000)))

    assert "Sends 2.5 (2,500,000 raw units) of" in said["lines"]
    assert '  calls itself "ETH", but is a token, not the coin of that name' in said["lines"]


def test_documents_are_told(tenant: Tenant, cautious: Agent) -> None:
    permitted = words(tenant, queue_document(cautious, permit(cautious.evm_address, 7)))
    noted = words(tenant, queue_document(tenant.agent(WAITS, rule("spending-limit", maxPerDay="1")), note()))

    assert any("spend 7 raw units" in text for text in permitted["lines"])
    assert "! Typed data of an unknown kind: read all of it." in noted["danger"]
    assert any("hello" in text for text in noted["details"])


def test_an_order_on_solana_is_told(tenant: Tenant, cautious: Agent) -> None:
    answer = cautious.post(f"/vault/{cautious.id}/sign-solana", json=solana_payment(cautious, 1_500))
    assert answer.status_code == 202, answer.text
    said = words(tenant, answer.json()["data"]["approvalId"])

    assert "Sends 0.0000015 SOL (1,500 lamports) to" in said["lines"]


def test_text_of_others_is_written_out(tenant: Tenant) -> None:
    agent = tenant.as_agent(tenant.ok("POST", "/agents", {"id": "hostile", "name": HOSTILE}))
    tenant.ok("PUT", "/agents/hostile/policies", [WAITS])
    approval = queue_order(agent)

    (listed,) = tenant.ok("GET", "/approvals/words")
    found = tenant.ok("GET", f"/approvals/{approval}/words")

    assert listed["agentName"] == found["agentName"] == "<U+202E>gnp.exe <b>bold</b> [31m"
    assert "\u202e" not in str(found["lines"])


async def test_an_item_that_expires_first_comes_first(
    tenant: Tenant, cautious: Agent, owner: asyncpg.Connection
) -> None:
    never, late, soon, gone = (queue_order(cautious) for _ in range(4))
    for approval, ends in ((never, None), (late, "2 hours"), (soon, "1 hour"), (gone, "-1 hour")):
        await owner.execute(
            "UPDATE approvals SET expires_at = now() + $2::text::interval WHERE id = $1", approval, ends
        )

    page = tenant.get("/approvals/words")
    second = tenant.get("/approvals/words?limit=1&offset=1")

    assert [one["id"] for one in page.json()["data"]] == [soon, late, never]
    assert page.headers["X-Total-Count"] == second.headers["X-Total-Count"] == "3"
    assert [one["id"] for one in second.json()["data"]] == [late]


def test_a_decided_item_keeps_its_words(tenant: Tenant, cautious: Agent) -> None:
    approval = queue_order(cautious)
    tenant.ok("POST", f"/approvals/{approval}/deny", {"reason": "no"})

    found = tenant.ok("GET", f"/approvals/{approval}/words")

    assert (found["status"], found["resolvedBy"]) == ("rejected", "manual")
    assert found["lines"][1]["text"] == f"  {ADDRESS}"
    assert tenant.ok("GET", "/approvals/words") == []


def test_an_item_of_another_tenant_is_absent(tenant: Tenant, other_tenant: Tenant, cautious: Agent) -> None:
    approval = queue_order(cautious)

    for path in (approval, str(uuid.uuid4())):
        answer = other_tenant.get(f"/approvals/{path}/words")
        assert (answer.status_code, answer.json()["data"]["code"]) == (404, "approval_absent")
    assert other_tenant.ok("GET", "/approvals/words") == []


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "offset=-1"])
def test_a_page_that_cannot_be_is_400(tenant: Tenant, query: str) -> None:
    assert tenant.get(f"/approvals/words?{query}").status_code == 400
