"""Native balances."""

import pytest

from tests.fixtures.callers import Agent
from tests.outside.evm_node import EvmNode
from tests.outside.solana_node import SolanaNode


def test_the_balance_is_exact_and_its_formatted_form_is_cut(agent: Agent, evm_node: EvmNode) -> None:
    evm_node.fund(agent.evm_address, 1_234_567_890_123_456_789)

    assert agent.ok("GET", f"/agents/{agent.id}/balance") == {
        "agentId": agent.id,
        "walletAddress": agent.evm_address,
        "balances": {
            "native": "1234567890123456789",
            "nativeFormatted": "1.234567",
            "chainId": 31337,
            "symbol": "ETH",
        },
    }


def test_a_solana_balance_is_in_lamports(agent: Agent, solana_node: SolanaNode) -> None:
    solana_node.fund(agent.solana_address, 1_500_000_001)

    found = agent.ok("GET", f"/agents/{agent.id}/balance?chainId=102")

    assert found["walletAddress"] == agent.solana_address
    assert found["balances"] == {"native": "1500000001", "nativeFormatted": "1.500000", "chainId": 102, "symbol": "SOL"}


@pytest.mark.parametrize(
    ("chain", "status", "code"),
    [("999", 400, "unknown_chain"), ("1", 502, "rpc_unavailable"), ("x", 400, "bad_query"), ("0", 400, "bad_query")],
)
def test_a_balance_that_cannot_be_known(agent: Agent, chain: str, status: int, code: str) -> None:
    answer = agent.get(f"/agents/{agent.id}/balance?chainId={chain}")

    assert (answer.status_code, answer.json()["data"]["code"]) == (status, code)
