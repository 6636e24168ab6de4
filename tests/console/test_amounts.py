"""Amounts are exact, and no token passes for a chain's own coin."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.chains import built_in
from words.shapes import TokenFunds
from words.texts.amounts import coins, human, quote, self_called, tokens, whole
from words.texts.chains import CHAINS, ETH, SOL, chain_name, native_coin

AMOUNTS = st.integers(0, 2**256 - 1)
TOKEN = "0x" + "cc" * 20


@given(amount=AMOUNTS, decimals=st.integers(0, 77))
def test_the_shown_amount_is_exact(amount: int, decimals: int) -> None:
    shown = human(amount, decimals)

    assert Fraction(shown.replace(",", "")) * 10**decimals == amount


@given(amount=AMOUNTS, decimals=st.integers(0, 77))
def test_thousands_are_separated_and_no_zero_stands_for_nothing(amount: int, decimals: int) -> None:
    before, _, after = human(amount, decimals).partition(".")

    assert before == f"{int(before.replace(',', '')):,}"
    assert not after.endswith("0")


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        ("1", "0.000000000000000001 ETH (1 wei)"),
        ("0", "0 ETH (0 wei)"),
        ("1500000000000000000", "1.5 ETH (1,500,000,000,000,000,000 wei)"),
        ("1234567000000000000000000", "1,234,567 ETH (1,234,567,000,000,000,000,000,000 wei)"),
    ],
)
def test_a_coin_is_said_in_its_unit_and_in_the_smallest(amount: str, shown: str) -> None:
    assert coins(amount, ETH) == shown


def test_lamports_are_called_so() -> None:
    assert coins("2500000000", SOL) == "2.5 SOL (2,500,000,000 lamports)"


@pytest.mark.parametrize(
    "text",
    ["", "-1", "1.5", "1e18", "0x10", "٣", " 1", "1\n", "9" * 101, "nan", None, 5, 1.5, [], "[red]"],
    ids=[
        "empty",
        "negative",
        "point",
        "exponent",
        "hex",
        "arabic",
        "blank",
        "newline",
        "long",
        "nan",
        "none",
        "int",
        "float",
        "list",
        "markup",
    ],
)
def test_text_that_is_no_amount_is_shown_as_such(text: object) -> None:
    assert whole(text) is None
    assert coins(text, ETH).startswith("an amount that is not a number (")
    assert tokens(text, None).startswith("an amount that is not a number (")


@given(st.text() | st.integers() | st.none() | st.floats())
def test_no_amount_raises(text: object) -> None:
    assert coins(text, ETH)
    assert tokens(text, TokenFunds(TOKEN, decimals=6))


def test_a_token_is_counted_by_its_own_word_and_raw() -> None:
    assert tokens("1500000", TokenFunds(TOKEN, decimals=6)) == "1.5 (1,500,000 raw units)"


@pytest.mark.parametrize("decimals", [None, -1, 78, 10**9])
def test_without_sensible_decimals_a_token_is_counted_raw(decimals: int | None) -> None:
    assert tokens("1500000", TokenFunds(TOKEN, decimals=decimals)) == "1,500,000 raw units (decimals unknown)"


def test_a_symbol_is_a_quotation() -> None:
    assert self_called(TokenFunds(TOKEN, symbol="USDC")) == 'calls itself "USDC"'


@pytest.mark.parametrize("symbol", ["ETH", "eth", " BNB ", "SOL", "BTC"])
def test_a_token_with_the_name_of_a_coin_is_said_not_to_be_it(symbol: str) -> None:
    assert self_called(TokenFunds(TOKEN, symbol=symbol)).endswith(", but is a token, not the coin of that name")


def test_letters_that_look_like_others_are_written_out() -> None:
    assert self_called(TokenFunds(TOKEN, symbol="\u0415TH")) == 'calls itself "<U+0415>TH"'


@pytest.mark.parametrize(
    ("symbol", "shown"),
    [
        ('ETH" (native)', 'calls itself "ETH\' (native)"'),
        ("[red]ETH[/]", 'calls itself "[red]ETH[/]"'),
        ("E" * 10_000, f'calls itself "{"E" * 24}… (10,000 characters)"'),
        ("a" + " " * 40 + "b", 'calls itself "a … (42 characters)"'),
    ],
)
def test_a_symbol_cannot_leave_its_quotation(symbol: str, shown: str) -> None:
    assert self_called(TokenFunds(TOKEN, symbol=symbol)) == shown


@given(st.text())
def test_a_quotation_has_no_quotation_mark_inside_and_no_run_of_blanks(text: str) -> None:
    inside = quote(text)[1:-1]

    assert '"' not in inside
    assert "  " not in inside


def test_the_chains_are_those_of_the_service() -> None:
    ours = {chain_id: (chain.name, chain.coin.symbol, chain.coin.decimals) for chain_id, chain in CHAINS.items()}

    assert ours == {chain.id: (chain.name, chain.symbol, chain.decimals) for chain in built_in.CHAINS}


@pytest.mark.parametrize(
    ("chain_id", "name"),
    [
        (1, "Ethereum"),
        (11155111, "Sepolia (test network)"),
        (102, "Solana Devnet (test network)"),
        (4242, "chain 4242"),
        (None, "no chain"),
    ],
)
def test_a_chain_has_a_name_or_its_number(chain_id: int | None, name: str) -> None:
    assert chain_name(chain_id) == name


def test_the_coin_of_an_unknown_chain_is_not_called_ether() -> None:
    coin = native_coin("evm:native", 4242)

    assert coin is not None
    assert coins("1500000000000000000", coin) == "1.5 coins of chain 4242 (1,500,000,000,000,000,000 wei)"
