"""Documents with a deadline: none is signed once nobody could use it, and a person has no longer to decide."""

import time
from datetime import datetime
from typing import Any

import asyncpg
import httpx
import pytest

from tests.fixtures.authorised import status_and_code
from tests.fixtures.callers import Agent, Tenant, rule
from tests.fixtures.eventually import eventually
from tests.routes.orders import CHAIN, SPENDER, TOKEN_CONTRACT, permit

WAITS = rule("auto-approve-threshold", asset=f"evm:{CHAIN}:{TOKEN_CONTRACT}", threshold="0")


def payment(agent: Agent, until: int) -> dict[str, Any]:
    """An ERC-3009 payment that is of use until this second."""
    kinds = [("from", "address"), ("to", "address"), ("value", "uint256"), ("validAfter", "uint256")]
    fields = [*kinds, ("validBefore", "uint256"), ("nonce", "bytes32")]
    return {
        "domain": {"name": "USDX", "version": "1", "chainId": CHAIN, "verifyingContract": TOKEN_CONTRACT},
        "types": {"TransferWithAuthorization": [{"name": name, "type": kind} for name, kind in fields]},
        "primaryType": "TransferWithAuthorization",
        "value": {
            "from": agent.evm_address, "to": SPENDER, "value": "5", "validAfter": "0", "validBefore": str(until),
            "nonce": "0x" + "01" * 32,
        },
    }  # fmt: skip


def ask(agent: Agent, document: dict[str, Any], **headers: str) -> httpx.Response:
    return agent.post(f"/vault/{agent.id}/sign-typed-data", json=document, headers=headers)


def in_time(agent: Agent, status: int, **headers: str) -> tuple[dict[str, Any], httpx.Response]:
    """A payment that ends soon, and its answer; later where this machine was too slow to ask in time."""
    for seconds in (3, 15, 60):
        document = payment(agent, int(time.time()) + seconds)
        if (answer := ask(agent, document, **headers)).status_code == status:
            return document, answer
    raise AssertionError(answer.text)


@pytest.mark.parametrize("until", [0, 1, 1_700_000_000])
def test_a_document_whose_deadline_passed_is_refused(until: int, agent: Agent) -> None:
    document = payment(agent, until)

    simulated = agent.post(f"/vault/{agent.id}/simulate", json={"kind": "typed_data", "request": document})

    assert [status_and_code(one) for one in (ask(agent, document), simulated)] == [(400, "document_expired")] * 2
    assert agent.ok("GET", f"/vault/{agent.id}/history") == []
    # The control: the same document with a later end, and one of another kind.
    assert ask(agent, payment(agent, 2**40)).status_code == 200
    assert ask(agent, permit(agent.evm_address, 5)).status_code == 200


def test_a_repetition_gets_its_answer_after_the_deadline(agent: Agent) -> None:
    document, first = in_time(agent, 200, **{"Idempotency-Key": "a-payment-that-ends"})

    eventually(lambda: status_and_code(ask(agent, document)), (400, "document_expired"))

    assert ask(agent, document, **{"Idempotency-Key": "a-payment-that-ends"}).json() == first.json()


async def test_an_order_waits_no_longer_than_it_is_of_use(tenant: Tenant, owner: asyncpg.Connection) -> None:
    agent = tenant.agent(WAITS)
    endless = ask(agent, payment(agent, 2**63)).json()["data"]["approvalId"]
    document, waiting = in_time(agent, 202)
    approval = waiting.json()["data"]["approvalId"]
    until = int(document["value"]["validBefore"])

    shown = {one: tenant.ok("GET", f"/approvals/{one}") for one in (approval, endless)}
    ends = {one: datetime.fromisoformat(item["expiresAt"]).timestamp() for one, item in shown.items()}
    # As far as the database is late to write, the item is later; the signer looks at the document besides.
    assert until - 1 <= ends[approval] < ends[endless] - 3_600
    eventually(lambda: tenant.ok("GET", f"/approvals/{approval}")["status"], "expired")

    # As if the database had it wait for ever: the signer looks at the document itself.
    await owner.execute(
        "UPDATE transactions SET status = 'pending_approval' WHERE id = (SELECT tx_id FROM approvals WHERE id = $1)",
        approval,
    )
    await owner.execute(
        "UPDATE approvals SET status = 'pending', resolved_at = NULL, expires_at = NULL WHERE id = $1", approval
    )
    late = eventually(lambda: tenant.post(f"/approvals/{approval}/approve", json={}), lambda _: time.time() > until)
    assert status_and_code(late) == (409, "approval_expired")
    assert tenant.ok("GET", f"/approvals/{approval}")["status"] == "pending"
    assert tenant.ok("POST", f"/approvals/{endless}/approve", {})["status"] == "approved"
