"""docs/pay-for-an-api-call.md: every block of it, at a seller that settles on the local chain."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fixtures.callers import Tenant
from tests.fixtures.pages import Reader, only, programs_of
from tests.fixtures.server import Service
from tests.outside.evm_node import EvmNode, running_evm_node
from tests.outside.seller import Seller, running_seller

PAGE = "docs/pay-for-an-api-call.md"
USDC, SELLER, STRANGER = "0x" + "05dc" * 10, "0x" + "51" * 20, "0x" + "52" * 20
TWO_CENTS = 20_000


class Buyer:
    """The agent of the guide, with its program."""

    def __init__(self, reader: Reader, tenant: Tenant, node: EvmNode) -> None:
        [rules], [self._program] = (only(programs_of(PAGE), language) for language in ("sh", "python"))
        self._reader, self._node = reader, node
        reader.environment |= {"key": tenant.key, "node": node.url, "seller": SELLER}
        reader.paste(rules)
        assert reader.variable("usdc") == USDC
        token = (reader.folder / "reader.token").read_text().strip()
        self._given = {"SERVICE_AGENT_TOKEN": token, "AGENT": "reader"}

    def buys(self, seller: Seller, purchase: str) -> "subprocess.CompletedProcess[str]":
        """Run the program once."""
        return self._reader.python(self._program, seller.url, purchase, **self._given)

    def balance(self, address: str) -> int:
        """Return what the token's contract says of an address."""
        asked = {"to": USDC, "data": f"0x70a08231{address[2:]:0>64}"}
        return int(self._node.rpc("eth_call", asked, "latest"), 16)


@pytest.fixture
def node() -> Iterator[EvmNode]:
    with running_evm_node("py-evm") as found:
        yield found


@pytest.fixture
def buyer(tmp_path: Path, service: Service, tenant: Tenant, node: EvmNode) -> Buyer:
    return Buyer(Reader(tmp_path, service), tenant, node)


def test_every_program_of_the_page_is_run_here() -> None:
    assert [language for language, _ in programs_of(PAGE)] == ["sh", "python"]


def test_calls_are_bought_until_the_budget_ends(buyer: Buyer, node: EvmNode) -> None:
    with running_seller(node, USDC, SELLER, TWO_CENTS) as seller:
        ended = [buyer.buys(seller, f"quote-{number}") for number in range(6)]

    assert [one.stdout for one in ended[:5]] == ['{"quote": "A penny saved."}\n'] * 5, ended
    assert "not paid: " in ended[5].stderr
    assert "would exceed the limit" in ended[5].stderr
    assert (buyer.balance(SELLER), len(seller.settled)) == (5 * TWO_CENTS, 5)


def test_one_purchase_is_paid_once(buyer: Buyer, node: EvmNode) -> None:
    with running_seller(node, USDC, SELLER, TWO_CENTS) as seller:
        first, second = (buyer.buys(seller, "quote-1") for _ in range(2))

    # This seller serves a payment once: the chain takes it no second time.
    assert first.returncode == 0, first
    assert "paid, and the server says 402" in second.stderr
    assert buyer.balance(SELLER) == TWO_CENTS


@pytest.mark.parametrize(
    ("address", "price", "why"),
    [(SELLER, 60_000, "exceeds the limit"), (STRANGER, TWO_CENTS, "is not an approved address")],
)
def test_a_payment_that_the_rules_do_not_allow_is_not_made(
    buyer: Buyer, node: EvmNode, address: str, price: int, why: str
) -> None:
    with running_seller(node, USDC, address, price) as seller:
        ended = buyer.buys(seller, "quote-1")

    assert "not paid: " in ended.stderr
    assert why in ended.stderr
    assert buyer.balance(address) == 0
