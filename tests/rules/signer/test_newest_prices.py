"""The newest prices that were issued: how long they count, and that nothing older takes their place."""

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from signer.prices import SKEW_SECONDS, IssuedPrices
from tests.fixtures.issued_prices import Issuer

NOW = 1_790_000_000
AGE = 600
ETHER = "evm:1:native"


def at(seconds: float) -> datetime:
    """The moment so many seconds after NOW."""
    return datetime.fromtimestamp(NOW + seconds, UTC)


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> datetime:
        return at(self.seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def begin(tmp_path: Path, clock: Clock) -> Callable[..., IssuedPrices]:
    """Begin as a signer does, on what one before it left."""

    def make(issuer: Issuer) -> IssuedPrices:
        issued = IssuedPrices(tmp_path / "prices", issuer.key, AGE, clock)
        issued.load()
        return issued

    return make


def price(issued: IssuedPrices, seconds: float = 0) -> Decimal | None:
    """The price of ether at a moment of the database's clock."""
    return issued.at(at(seconds)).get(ETHER)


def test_prices_count_until_they_are_too_old_by_either_clock(begin: Callable[..., IssuedPrices], clock: Clock) -> None:
    issuer = Issuer()
    issued = begin(issuer)
    assert (price(issued), issued.health().old, issued.health().issued_at) == (None, True, None)

    assert issued.take(*issuer.issue(NOW, evm_1_native="3")) is None

    assert (price(issued), issued.health().issued_at, issued.health().old) == (3, NOW, False)
    assert (price(issued, AGE), price(issued, AGE + 1)) == (3, None)
    # A database whose clock was put back makes nothing young again.
    clock.seconds = AGE + 1
    assert (price(issued, 0), issued.health().old) == (None, True)


def test_nothing_older_takes_the_place_of_prices_after_a_restart_either(begin: Callable[..., IssuedPrices]) -> None:
    issuer = Issuer()
    first, older, twin, newer = (
        issuer.issue(NOW + moment, evm_1_native=dollars)
        for moment, dollars in ((0, "3"), (-1, "1"), (0, "2"), (1, "4"))
    )
    issued = begin(issuer)
    assert issued.take(*first) is None

    for now in (issued, begin(issuer)):
        assert (now.take(*older), now.take(*twin), now.take(*first)) == ("not_newer", "not_newer", None)
        assert price(now) == 3

    assert (issued.take(*newer), price(issued)) == (None, 4)
    assert price(begin(issuer)) == 4


def test_the_same_document_for_ever_grows_old(begin: Callable[..., IssuedPrices], clock: Clock) -> None:
    issuer = Issuer()
    issued, document = begin(issuer), issuer.issue(NOW, evm_1_native="3")
    assert issued.take(*document) is None
    clock.seconds = AGE

    assert (issued.take(*document), price(issued, AGE)) == (None, 3)
    clock.seconds = AGE + 1
    assert (issued.take(*document), price(issued, AGE + 1)) == ("old", None)


def test_a_document_of_the_future_is_not_taken(begin: Callable[..., IssuedPrices]) -> None:
    issuer = Issuer()
    issued = begin(issuer)

    assert issued.take(*issuer.issue(NOW + SKEW_SECONDS + 1, evm_1_native="3")) == "in_the_future"
    assert price(issued) is None
    # Or it would count for a year, and nothing could follow it.
    assert issued.take(*issuer.issue(NOW + SKEW_SECONDS, evm_1_native="3")) is None
    assert price(issued) == 3


def test_prices_that_a_clock_put_back_makes_the_futures_count_no_more(
    begin: Callable[..., IssuedPrices], clock: Clock
) -> None:
    issuer = Issuer()
    issued = begin(issuer)
    assert issued.take(*issuer.issue(NOW, evm_1_native="3")) is None

    clock.seconds = -SKEW_SECONDS - 1

    assert (price(issued), issued.health().old) == (None, True)


def test_a_refused_document_leaves_the_prices_as_they_were(begin: Callable[..., IssuedPrices]) -> None:
    issuer, other = Issuer(), Issuer()
    issued = begin(issuer)
    assert issued.take(*issuer.issue(NOW, evm_1_native="3")) is None

    refused = [
        issued.take(*other.issue(NOW + 1, evm_1_native="1")),
        issued.take(*issuer.issue(NOW + 1, evm_1_native="0")),
        issued.take(*issuer.issue(NOW - AGE - 1, evm_1_native="1")),
    ]

    assert (refused, price(issued)) == (["signature", "unreadable", "old"], 3)


def test_another_key_begins_with_nothing(begin: Callable[..., IssuedPrices]) -> None:
    issuer, other = Issuer(), Issuer("p256")
    assert begin(issuer).take(*issuer.issue(NOW, evm_1_native="3")) is None

    issued = begin(other)

    assert (price(issued), issued.health().issued_at) == (None, None)
    assert issued.take(*other.issue(NOW - 1, evm_1_native="2")) is None
    assert (price(issued), price(begin(other))) == (2, 2)


@pytest.mark.parametrize("content", [b"", b"\n", b"nonsense", b"\xff\n{}"], ids=["empty", "a line", "words", "bytes"])
def test_a_file_that_was_cut_or_edited_is_no_document(
    begin: Callable[..., IssuedPrices], tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "prices").write_bytes(content)

    assert price(begin(Issuer())) is None
