"""Payments held against x402's own packages: their seller gives what was paid for, and the tokens have moved."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from eth_account import Account
from eth_utils import to_checksum_address

from ops.local_chain import play_usdc
from tests.fixtures.callers import Agent, Tenant, rule
from tests.outside import npm
from tests.outside.evm_node import EvmNode, running_evm_node
from tests.outside.x402.seller import PAY_TO, Seller, running_python_seller, running_seller
from tests.routes.orders import CHAIN, payment_demand, payment_offer

pytestmark = pytest.mark.skipif(npm.missing() is not None, reason=npm.missing() or "")

TOKEN = to_checksum_address(play_usdc.ADDRESS)
ASSET = f"evm:{CHAIN}:{TOKEN.lower()}"
KEY, OTHER_KEY = b"\x2e" * 32, b"\x2f" * 32
NAMED = rule("approved-addresses", addresses=[PAY_TO], mode="whitelist")
_BALANCE = "0x70a08231"


@pytest.fixture(name="chain", scope="module")
def chain_fixture() -> Iterator[EvmNode]:
    """The local chain, which has the play USDC."""
    with running_evm_node("py-evm") as node:
        yield node


@pytest.fixture(name="seller", scope="module")
def seller_fixture(chain: EvmNode) -> Iterator[Seller]:
    """The seller, whose facilitator has coins for its gas."""
    chain.fund(Account.from_key(KEY).address)
    with running_seller(chain.url, TOKEN, KEY) as seller:
        yield seller


@pytest.fixture(name="python_seller", scope="module")
def python_seller_fixture(chain: EvmNode) -> Iterator[Seller]:
    """One in Python, with a key of its own: each counts the nonces of its own account."""
    chain.fund(Account.from_key(OTHER_KEY).address)
    with running_python_seller(chain.url, TOKEN, OTHER_KEY) as seller:
        yield seller


@pytest.fixture(name="either", params=["seller", pytest.param("python_seller", marks=pytest.mark.long)])
def either_fixture(request: pytest.FixtureRequest) -> Seller:
    """Each of both."""
    seller: Seller = request.getfixturevalue(request.param)
    return seller


def balance(chain: EvmNode, holder: str) -> int:
    """The play USDC of an address."""
    data = _BALANCE + holder.lower().removeprefix("0x").rjust(64, "0")
    return int(chain.rpc("eth_call", {"to": TOKEN, "data": data}, "latest"), 16)


def pay(agent: Agent, demand: object, **headers: str) -> dict[str, Any]:
    """Pay a demand by the agent's wallet."""
    paid: dict[str, Any] = agent.ok("POST", f"/vault/{agent.id}/x402", {"demand": demand}, **headers)
    return paid


def payload(paid: dict[str, Any]) -> dict[str, Any]:
    """The part of the payment that is signed."""
    found: dict[str, Any] = json.loads(base64.b64decode(paid["value"]))["payload"]
    return found


def test_their_seller_is_paid_and_gives_the_weather(tenant: Tenant, chain: EvmNode, either: Seller) -> None:
    agent = tenant.agent(NAMED, rule("spending-limit", maxPerDay="100", asset=ASSET))
    chain.rpc("dev_fund", agent.evm_address, "1000", "USDC")
    before = balance(chain, PAY_TO)
    demanded = either.ask()
    assert demanded.status_code == 402

    paid = pay(agent, demanded.headers["PAYMENT-REQUIRED"])
    answer = either.ask(**{paid["header"]: paid["value"]})

    assert (answer.status_code, answer.json()) == (200, {"weather": "dry"})
    assert (balance(chain, agent.evm_address), balance(chain, PAY_TO)) == (1000 - 60, before + 60)
    assert paid["asset"] == ASSET

    again = either.ask(**{paid["header"]: paid["value"]})

    assert again.status_code == 402
    assert balance(chain, PAY_TO) == before + 60
    assert agent.ok("GET", f"/dashboard/{agent.id}")["budgets"][0]["spent"] == "60"


def test_their_seller_gives_nothing_for_another_payment(tenant: Tenant, chain: EvmNode, either: Seller) -> None:
    agent = tenant.agent(NAMED)
    chain.rpc("dev_fund", agent.evm_address, "1000", "USDC")
    header = json.loads(base64.b64decode(either.ask().headers["PAYMENT-REQUIRED"]))
    header["accepts"][0]["extra"]["name"] = "USD Coin"

    paid = pay(agent, header)
    answer = either.ask(**{paid["header"]: paid["value"]})

    assert answer.status_code == 402
    assert balance(chain, agent.evm_address) == 1000


@pytest.mark.long
def test_their_reader_finds_our_payment_good(tenant: Tenant, chain: EvmNode, python_seller: Seller) -> None:
    agent = tenant.agent(NAMED)
    chain.rpc("dev_fund", agent.evm_address, "1000", "USDC")
    demand = python_seller.ask().headers["PAYMENT-REQUIRED"]

    found = python_seller.read(pay(agent, demand)["value"])

    assert found == {"valid": True, "payer": agent.evm_address, "reason": None}
    # The control: of an offer with another price it is another payment.
    said = json.loads(base64.b64decode(pay(agent, demand)["value"]))
    said["accepted"]["amount"] = "61"
    changed = base64.b64encode(json.dumps(said).encode()).decode()
    assert python_seller.read(changed)["valid"] is False


@pytest.mark.parametrize("upto", [False, True])
def test_their_types_and_proxies_of_permit2_are_ours(tenant: Tenant, seller: Seller, upto: bool) -> None:
    agent = tenant.agent(NAMED)
    by_permit2 = payment_offer(extra={"assetTransferMethod": "permit2"})
    up_to = payment_offer(scheme="upto", extra={"facilitatorAddress": "0x" + "55" * 20})

    found = seller.recover(payload(pay(agent, payment_demand(up_to if upto else by_permit2))), upto=upto)

    assert found == {"theirs": True, "from": agent.evm_address, "signer": agent.evm_address}
