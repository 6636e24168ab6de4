"""Limits as bars and in words, with what an order adds to them."""

import pytest

from tests.console.orders import ETHER, FEE, TOKENS, allows, order, pays
from words.orders.limits import limits
from words.orders.order import Known
from words.shapes import Budget, Effect


def budget(spent: str, asset: str = ETHER) -> Budget:
    return Budget("p", "day", asset, "2000000000000000000", spent)


def test_a_limit_says_what_is_spent_and_what_this_would_make_of_it() -> None:
    lines = [one.text for one in limits(order(pays(), FEE), Known(budgets=[budget("0")]))]

    assert lines == [
        "▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒░░░░░ 75% of the limit over 24 hours",
        "  spent 0 coins (0 wei)",
        "  with this order 1.5 coins (1,500,000,000,000,000,000 wei)",
        "  limit 2 coins (2,000,000,000,000,000,000 wei), of all EVM chains together",
    ]


def test_over_the_limit_says_so_and_by_how_much() -> None:
    first = limits(order(pays()), Known(budgets=[budget("1000000000000000000")]))[0]

    assert first.text == "██████████▒▒▒▒▒▒▒▒▒▒ 125% of the limit over 24 hours: OVER THE LIMIT by 0.5 coins"
    assert first.tone == "bad"


def test_one_wei_too_much_is_more_than_all() -> None:
    first = limits(order(pays("1")), Known(budgets=[budget("2000000000000000000")]))[0]

    assert first.text.startswith("████████████████████ 101%")


def test_a_signed_order_is_not_counted_a_second_time() -> None:
    lines = [one.text for one in limits(order(pays(), status="signed"), Known(budgets=[budget("1500000000000000000")]))]

    assert lines[0] == "███████████████░░░░░ 75% of the limit over 24 hours"
    assert not any("with this order" in line for line in lines)


def test_an_amount_that_no_limit_counts_is_named_at_the_limit() -> None:
    lines = [one.text for one in limits(order(allows()), Known(budgets=[budget("0", TOKENS)]))]

    assert "  this order allows UNLIMITED spending, which no limit covers" in lines


def test_a_limit_in_the_coin_of_another_kind_of_chain_is_left_out() -> None:
    shown = order(pays(asset="solana:native"), kind="solana", chain_id=102)

    lines = [one.text for one in limits(shown, Known(budgets=[budget("0"), budget("0", "solana:native")]))]

    assert [line for line in lines if "limit" in line] == [
        "▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒░░░░░ 75% of the limit over 24 hours",
        "  limit 2,000,000,000 SOL (2,000,000,000,000,000,000 lamports)",
        "This kind of chain may have limits that the service does not report here; the rules above have already "
        "applied them.",
    ]


def test_spend_on_other_chains_is_not_shown_in_the_coin_of_this_one() -> None:
    lines = [one.text for one in limits(order(pays(), chain_id=137), Known(budgets=[budget("1500000000000000000")]))]

    assert lines == [
        "███████████████▒▒▒▒▒ 150% of the limit over 24 hours: OVER THE LIMIT by 1 coin",
        "  spent 1.5 coins (1,500,000,000,000,000,000 wei)",
        "  with this order 3 coins (3,000,000,000,000,000,000 wei)",
        "  limit 2 coins (2,000,000,000,000,000,000 wei), of all EVM chains together",
    ]


@pytest.mark.parametrize(
    ("kind", "assets", "denied"),
    [
        ("solana", [ETHER], False),
        ("bitcoin", [ETHER, "solana:native"], False),
        ("solana", [TOKENS], True),
        ("evm", ["solana:native"], True),
        ("typed_data", ["solana:native"], True),
    ],
)
def test_no_limit_is_denied_that_the_service_may_only_not_tell(kind: str, assets: list[str], denied: bool) -> None:
    shown = order(pays(asset="solana:native" if kind == "solana" else ETHER), kind=kind)

    last = limits(shown, Known(budgets=[budget("0", asset) for asset in assets]))[-1].text

    assert (last == "Other limits of this agent are for other kinds of chains.") is denied
    assert last.startswith("This kind of chain may have limits") is not denied


def test_a_limit_on_one_chain_counts_orders_of_that_chain_in_its_coin() -> None:
    def lines_on(chain: int) -> list[str]:
        shown = order(pays(), chain_id=chain)
        return [one.text for one in limits(shown, Known(budgets=[budget("0", "evm:137:native")]))]

    assert lines_on(137)[2:] == [
        "  with this order 1.5 POL (1,500,000,000,000,000,000 wei)",
        "  limit 2 POL (2,000,000,000,000,000,000 wei)",
    ]
    assert not any("with this order" in line for line in lines_on(1))


def test_a_limit_on_rent_counts_rent_alone() -> None:
    rent = Effect("fee", "solana:native", "2039280", None, "somebody", label="rent")
    shown = order(pays(asset="solana:native"), rent, kind="solana", chain_id=102)

    lines = [one.text for one in limits(shown, Known(budgets=[budget("0", "solana:rent")]))]

    assert "  with this order 0.00203928 SOL (2,039,280 lamports)" in lines
