"""The token calls we make, and what tokens may answer."""

import pytest
from eth_abi import encode
from hypothesis import given
from hypothesis import strategies as st

from custody.chains.evm import erc20
from custody.chains.evm.calldata import decode
from custody.kit.shapes import MAX_UINT256

US, TOKEN, OTHER = ("0x" + digit * 40 for digit in "123")


@given(st.integers(0, MAX_UINT256))
def test_our_transfer_is_read_back_as_what_it_is(amount: int) -> None:
    (effect,), _ = decode(TOKEN, 0, erc20.transfer(OTHER, amount), 1, US)

    assert (effect.kind, effect.to, effect.amount) == ("transfer", OTHER, amount)


def test_the_balance_call_names_the_owner() -> None:
    assert erc20.balance_of(OTHER) == bytes.fromhex("70a08231") + encode(["address"], [OTHER])


@pytest.mark.parametrize(
    ("answer", "symbol"),
    [
        (encode(["string"], ["USDC"]), "USDC"),
        (b"MKR".ljust(32, b"\0"), "MKR"),
        (encode(["string"], ["x" * 32]), "x" * 32),
        (encode(["string"], ["x" * 33]), None),
        (encode(["string"], [""]), None),
        (encode(["string"], ["USD\u0421"]), None),
        (encode(["string"], ["A\nB"]), None),
        (b"", None),
        (bytes(32), None),
        (b"\xff" * 96, None),
    ],
)
def test_a_symbol_is_short_plain_text_or_nothing(answer: bytes, symbol: str | None) -> None:
    assert erc20.read_symbol(answer) == symbol


@pytest.mark.parametrize(
    ("answer", "decimals"),
    [(encode(["uint8"], [6]), 6), (encode(["uint256"], [255]), 255), (encode(["uint256"], [256]), None), (b"", None),
     (b"\x06", None)],
)  # fmt: skip
def test_decimals_fit_a_byte_or_are_nothing(answer: bytes, decimals: int | None) -> None:
    assert erc20.read_decimals(answer) == decimals


@given(st.binary(max_size=200))
def test_no_answer_is_an_error(answer: bytes) -> None:
    erc20.read_symbol(answer)
    erc20.read_decimals(answer)

    assert erc20.read_amount(answer) == (int.from_bytes(answer) if len(answer) == 32 else None)
