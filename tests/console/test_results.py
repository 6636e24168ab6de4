"""Results of rules, with their amounts in the units of people."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.console.orders import TOKEN
from words.orders.results import readable, results
from words.shapes import PolicyResult


@pytest.mark.parametrize(
    ("reason", "chain", "shown"),
    [
        (
            "500000000000000000 wei is above the threshold of 250000000000000000 wei: a person must approve it",
            1,
            "0.5 ETH (500,000,000,000,000,000 wei) is above the threshold of 0.25 ETH (250,000,000,000,000,000 wei): "
            "a person must approve it",
        ),
        ("5 wei", 56, "0.000000000000000005 BNB (5 wei)"),
        ("2500000000 lamports", 101, "2.5 SOL (2,500,000,000 lamports)"),
        ("150000000 satoshi", None, "1.5 BTC (150,000,000 sat)"),
        (f"5 units of evm:1:{TOKEN}", 1, f"5 units of evm:1:{TOKEN}"),
        (
            "0x15 wei, -5 wei, 1.5 wei, x5 wei, 5 weight, 5 gwei",
            1,
            "0x15 wei, -5 wei, 1.5 wei, x5 wei, 5 weight, 5 gwei",
        ),
        ("9" * 79 + " wei", 1, "9" * 79 + " wei"),
    ],
    ids=["wei", "another coin", "lamports", "satoshi", "token", "no amounts", "too long"],
)
def test_an_amount_in_a_reason_is_said_in_the_coin_s_unit(reason: str, chain: int | None, shown: str) -> None:
    line = results(
        [PolicyResult("auto-approve-threshold", passed=False, reason=reason)], refused=False, chain_id=chain
    )[0]

    assert line.text == f"? needs approval  auto-approve-threshold: {shown}"


@given(st.text() | st.from_regex("[0-9]{1,90} (wei|lamports|sat|satoshi)"), st.none() | st.integers())
def test_no_reason_raises(reason: str, chain: int | None) -> None:
    assert readable(reason, chain) or not reason
