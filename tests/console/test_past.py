"""The past of a destination: what happened, and only the like of what is asked."""

import pytest

from tests.console.orders import SPENDER, THEM, TOKENS, US, allows, earlier, lines_of, order, pays
from words.orders.before import before
from words.orders.order import Known
from words.shapes import Effect

PAYEE = "4Nd1mBQtrMJVYVfKf2PJy9NZUZdTAsp7D4xWLs4gDB4T"


@pytest.mark.parametrize(
    ("done", "line"),
    [
        (pays("0"), "  never paid before"),
        (allows("5", spender=THEM), "  never paid before"),
        (pays("1"), "  paid before, at most 0.000000000000000001 ETH (1 wei)"),
        (pays("9", asset=TOKENS), "  paid before, but never in this coin or token"),
    ],
    ids=["nothing", "an approval", "one wei", "a token"],
)
def test_a_payment_is_measured_by_like_ones(done: Effect, line: str) -> None:
    assert lines_of(order(pays()), Known(past=[earlier(1, done)]))[2] == line


@pytest.mark.parametrize(
    ("done", "line"),
    [
        (allows("0"), "  never allowed to spend before"),
        (pays("5", to=SPENDER), "  never allowed to spend before"),
        (allows("5"), None),
        (allows(), None),
    ],
    ids=["taken back", "paid", "some", "all"],
)
def test_having_taken_something_back_makes_no_acquaintance(done: Effect, line: str | None) -> None:
    lines = lines_of(order(allows()), Known(past=[earlier(1, done)]))

    assert ("  never allowed to spend before" in lines) == bool(line)


@pytest.mark.parametrize(
    ("status", "line"),
    [
        ("confirmed", "confirmed: sent it 1 ETH (1,000,000,000,000,000,000 wei)"),
        ("signed", "signed: sends it 1 ETH (1,000,000,000,000,000,000 wei)"),
        ("pending_approval", "waits for a person: would send it 1 ETH (1,000,000,000,000,000,000 wei)"),
        ("rejected", "was refused: would have sent it 1 ETH (1,000,000,000,000,000,000 wei)"),
        ("failed", "failed: would have sent it 1 ETH (1,000,000,000,000,000,000 wei)"),
    ],
)
def test_the_past_says_what_happened_and_what_only_would_have(status: str, line: str) -> None:
    known = Known(past=[earlier(1, pays(str(10**18)), status=status)])

    lines = [one.text for one in before(order(pays(), to_address=THEM), known)]

    assert lines[-1] == f"2026-02-01 12:00:00 UTC  {line}"
    assert ("Never paid before." in lines) == (status not in ("confirmed", "signed"))


def test_rent_and_fees_for_the_same_party_are_part_of_the_past() -> None:
    paid = pays("5", to=PAYEE, asset="solana:mint")
    rent = Effect("fee", "solana:native", "2039280", US, PAYEE, label="rent")
    tip = Effect("fee", "solana:native", "7", US, PAYEE)
    fee = Effect("fee", "solana:native", "5000", US, label="network fee")
    known = Known(past=[earlier(1, paid, rent, tip, fee)])

    last = before(order(paid, kind="solana", chain_id=101, to_address=PAYEE), known)[-1].text

    assert last.partition("confirmed: ")[2] == (
        "sent it 5 raw units (decimals unknown) of a token, sent it 0.00203928 SOL (2,039,280 lamports) as rent, "
        "sent it 0.000000007 SOL (7 lamports) as a fee"
    )
