"""The same order under the same id once more, as the api sends it when the signer went away: one answer, ever."""

import uuid
from typing import Any

from tests.fixtures.callers import ADDRESS, Agent, Tenant, rule
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import Wire, greet


def sign(wire: Wire, agent: Agent, tx_id: str, **order: Any) -> dict[str, Any]:
    """The signer's reply to one order."""
    body = {"agent": agent.id, "tx_id": tx_id, "prepared": None}
    told = {"to": ADDRESS, "value": "1", "broadcast": False, "chainId": 31337, **order}
    token = agent.headers["authorization"].removeprefix("Bearer ")
    question = {"kind": "evm", "request": told}
    reply: dict[str, Any] = wire.reply("SignOrder", {**body, "question": question}, {"kind": "agent", "value": token})
    return reply


def test_it_is_answered_as_before_whatever_would_be_said_of_it_now(service: Service, tenant: Tenant) -> None:
    agent = tenant.agent(rule("spending-limit", maxPerDay="1"))
    signed, refused = str(uuid.uuid4()), str(uuid.uuid4())

    with greet(service) as wire:
        first = sign(wire, agent, signed, nonce=7)
        # The limit is spent, the nonce taken.
        again = sign(wire, agent, signed, nonce=7)
        no = sign(wire, agent, refused)
        no_again = sign(wire, agent, refused)
        tenant.ok("POST", f"/agents/{agent.id}/freeze", {"reason": "looked at"})
        frozen = sign(wire, agent, signed, nonce=7)
        other = sign(wire, agent, str(uuid.uuid4()))

    assert (first["outcome"]["type"], first["replayed"], no["outcome"]["type"]) == ("Signed", False, "Refused")
    assert [one["outcome"] for one in (again, frozen)] == [first["outcome"]] * 2
    assert no_again["outcome"] == no["outcome"]
    assert [one["replayed"] for one in (again, no_again, frozen)] == [True] * 3
    assert other["outcome"]["type"] == "Failed"
    assert len(tenant.ok("GET", f"/vault/{agent.id}/history")) == 2


def test_a_revoked_token_gets_no_earlier_signature(service: Service, tenant: Tenant) -> None:
    agent, tx_id = tenant.agent(), str(uuid.uuid4())

    with greet(service) as wire:
        sign(wire, agent, tx_id)
        tenant.ok("DELETE", f"/agents/{agent.id}/tokens")
        again = sign(wire, agent, tx_id)

    assert again["outcome"]["code"] == "token_revoked"


def test_another_agents_order_is_no_answer(service: Service, tenant: Tenant) -> None:
    mine, other, tx_id = tenant.agent(), tenant.agent(), str(uuid.uuid4())

    with greet(service) as wire:
        sign(wire, other, tx_id)
        answer = sign(wire, mine, tx_id)

    assert answer["outcome"]["type"] == "Failed"
    assert tenant.ok("GET", f"/vault/{mine.id}/history") == []
