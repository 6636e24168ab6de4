"""Nonce slots: who takes which, and what a slot counts."""

from typing import Any

import pytest

from tests.fixtures.callers import Agent, Tenant, rule
from tests.outside.evm_node import EvmNode


@pytest.fixture
def payer(tenant: Tenant, evm_node: EvmNode) -> Agent:
    """An agent that can pay, with a limit so that its spend can be read."""
    agent = tenant.agent(rule("spending-limit", maxPerDay="100"))
    evm_node.fund(agent.evm_address)
    return agent


def sign(agent: Agent, value: int = 1, **fields: Any) -> dict[str, Any]:
    """Sign, and give the record."""
    answer = agent.sign(value=value, **fields)
    assert answer.status_code == 200, answer.text
    return agent.ok("GET", f"/vault/{agent.id}/transactions/{answer.json()['data']['txId']}")


def spend_of(agent: Agent) -> str:
    return agent.ok("GET", f"/dashboard/{agent.id}")["budgets"][0]["spent"]


def code(agent: Agent, **fields: Any) -> tuple[int, str]:
    answer = agent.sign(**fields)
    return answer.status_code, answer.json()["data"].get("code")


def test_unsent_orders_take_new_slots(payer: Agent) -> None:
    assert [sign(payer)["nonce"] for _ in range(3)] == [0, 1, 2]


def test_a_broadcasting_order_takes_the_open_slot_and_counts_it_once_at_its_largest(payer: Agent) -> None:
    unsent = sign(payer, 10)
    assert spend_of(payer) == "10"

    sent = sign(payer, 4, broadcast=True)

    assert (sent["nonce"], sent["replacesTxId"], sent["status"]) == (0, unsent["id"], "broadcast")
    assert spend_of(payer) == "10"
    assert sign(payer, 1, broadcast=True)["nonce"] == 1
    assert spend_of(payer) == "11"


def test_a_larger_order_in_an_open_slot_adds_what_exceeds_it(payer: Agent) -> None:
    sign(payer, 10)

    sign(payer, 25, nonce=0)

    assert spend_of(payer) == "25"


def test_a_slot_taken_over_leaves_room_up_to_the_limit_and_no_more(payer: Agent) -> None:
    sign(payer, 60)

    assert payer.sign(value=101, nonce=0).status_code == 403
    assert payer.sign(value=100, nonce=0).status_code == 200
    assert payer.sign(value=1).status_code == 403


def test_the_lowest_open_slot_is_taken_first(payer: Agent) -> None:
    first, second = sign(payer), sign(payer)

    taken = [sign(payer, broadcast=True) for _ in range(3)]

    assert [(one["nonce"], one["replacesTxId"]) for one in taken] == [(0, first["id"]), (1, second["id"]), (2, None)]


def test_a_slot_that_was_sent_is_taken(payer: Agent) -> None:
    for _ in range(2):
        sign(payer, broadcast=True)

    # Mined at once here: the chain itself has used it, whatever we remember.
    assert code(payer, nonce=0) == (409, "nonce_used")
    assert code(payer, nonce=1, broadcast=True) == (409, "nonce_used")


def test_an_open_slot_may_be_named_again_where_no_node_can_be_asked(agent: Agent) -> None:
    first = sign(agent, chainId=8453, nonce=5)

    assert sign(agent, 2, chainId=8453, nonce=5)["replacesTxId"] == first["id"]


def test_a_queued_order_takes_no_slot(tenant: Tenant) -> None:
    agent = tenant.agent(rule("auto-approve-threshold", threshold="5"))
    assert agent.sign(value=6).status_code == 202

    assert sign(agent)["nonce"] == 0


def test_a_gap_is_refused_only_where_it_would_never_be_mined(payer: Agent) -> None:
    assert code(payer, nonce=7, broadcast=True) == (400, "nonce_gap")
    assert sign(payer, nonce=7)["nonce"] == 7
    assert sign(payer)["nonce"] == 8, "without a nonce: after the highest"


def test_slots_of_two_chains_do_not_meet(payer: Agent) -> None:
    assert [sign(payer)["nonce"], sign(payer, chainId=8453)["nonce"], sign(payer)["nonce"]] == [0, 0, 1]


def test_the_chains_own_count_is_where_a_wallet_starts(payer: Agent, evm_node: EvmNode) -> None:
    sign(payer, broadcast=True)

    assert sign(payer)["nonce"] == 1


def test_a_nonce_far_ahead_is_refused_so_that_one_order_cannot_use_up_the_wallet(agent: Agent) -> None:
    far = agent.sign(nonce=10_001)

    assert far.status_code == 409
    assert far.json()["data"]["code"] == "nonce_implausible"
    assert agent.sign(nonce=10_000).status_code == 200
    assert agent.sign().status_code == 200
