"""The pages are enough, as they promise: a client written from them alone does its whole job against a real service."""

import asyncio

import pytest

from tests.fixtures.server import Service
from tests.outside.evm_node import EvmNode
from tests.paths.newcomer import AT_ONCE, Seen, everything

pytestmark = pytest.mark.long

ORDERS = 300


@pytest.fixture(scope="module")
def sight(service: Service, evm_node: EvmNode) -> Seen:
    """One walk through everything, by a person and a tenant of its own."""
    return asyncio.run(everything(service.url, evm_node.fund, ORDERS))


def test_a_payment_in_eth_is_confirmed(sight: Seen) -> None:
    assert sight.eth["status"] == "confirmed"


def test_a_token_payment_is_signed_by_the_agent_s_wallet_and_says_what_was_asked(sight: Seen) -> None:
    assert sight.erc20["signer"] == sight.erc20["wallet"]
    assert sight.erc20["to"] == "0x" + "7a" * 20
    assert sight.erc20["data"] == f"0xa9059cbb{'11' * 20:0>64}{5:064x}"


def test_an_authorization_is_signed_by_the_agent_s_wallet(sight: Seen) -> None:
    assert sight.eip3009["signer"] == sight.eip3009["wallet"]


@pytest.mark.parametrize(
    ("who", "status", "reason"),
    [("tenant", "confirmed", None), ("person", "confirmed", None), ("no", "rejected", "Not this month.")],
)
def test_a_queued_order_ends_as_it_was_decided(sight: Seen, who: str, status: str, reason: str | None) -> None:
    decided = sight.queued[who]

    assert [why for why in decided["why"] if "above the threshold" in why] == decided["why"] != []
    assert (decided["status"], decided["reason"]) == (status, reason)


@pytest.mark.parametrize(
    ("order", "rule", "why"),
    [
        ("too much", "spending-limit", "would exceed the limit of 1 ETH per day"),
        ("too many tokens", "contract-allowlist", "`maxAmount` is 100 units"),
        ("to a stranger", "contract-allowlist", f"the recipient 0x{'22' * 20} is not in `recipientAllowlist`"),
        ("by typed data", "contract-allowlist", f"the recipient 0x{'22' * 20} is not in `recipientAllowlist`"),
    ],
)
def test_a_refusal_says_which_rule_and_why(sight: Seen, order: str, rule: str, why: str) -> None:
    said = sight.refused[order]

    assert (said["status"], said["code"]) == (403, "policy_refused")
    assert any(reason.startswith(f"{rule}: ") and why in reason for reason in said["reasons"])


def test_a_rate_rule_says_when_there_is_room_and_leaves_the_key_free(sight: Seen) -> None:
    assert (sight.limited["status"], sight.limited["code"]) == (429, "policy_rate_limited")
    # An hour, and the minute at its edge.
    assert 3590 < sight.limited["after"] <= 3660
    assert sight.limited["again"] == "signed"


def test_pages_leave_nothing_out_and_repeat_nothing_while_more_is_signed(sight: Seen) -> None:
    assert sight.pages["signed meanwhile"] > 0
    assert sight.pages["read"] >= ORDERS
    assert (sight.pages["twice"], sight.pages["missing"], sight.pages["unknown"]) == (0, 0, 0)


def test_no_request_fails_while_the_tenant_s_key_is_replaced(sight: Seen) -> None:
    assert min(sight.rolled["rounds"].values()) >= 3 * AT_ONCE
    assert sight.rolled["repeats"] == 0
    assert sight.rolled["old key"] == 401


def test_an_event_is_delivered_with_a_signature_that_only_the_true_body_has(sight: Seen) -> None:
    assert sight.events == {"event": "tx.signed", "ours": True, "forged": "refused"}
