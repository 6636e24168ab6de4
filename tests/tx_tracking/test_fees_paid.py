"""The network's fee for a transaction, as a node says it, and what the operator sees of it in dollars."""

from decimal import Decimal
from typing import Any

import asyncpg
import pytest

from tests.fixtures.callers import Agent, Tenant, platform_client
from tests.fixtures.server import Service
from tests.outside.evm_node import EvmNode
from tests.outside.lying_node import LyingNode
from tests.outside.solana_node import SolanaNode
from tests.tx_tracking.conftest import PRICES
from tests.tx_tracking.scheduling import Scheduling, became, record, replace, send
from tests.tx_tracking.test_following_evm import DEPTH, REVERTS
from tests.tx_tracking.test_following_solana import pay

ETH, SOL = Decimal(PRICES["ETH"]), Decimal(PRICES["SOL"])


def spend_report(service: Service, tenant: Tenant, **query: str) -> dict[str, Any]:
    """The report about a tenant."""
    with platform_client(service) as operator:
        answer = operator.get("/platform/apps/gas_spend", params={"tenant_id": tenant.id, **query})
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json()["data"]
    return found


def usd(amount: int, decimals: int, price: Decimal) -> str:
    """Six decimals, cut."""
    worth = Decimal(amount).scaleb(-decimals) * price
    return f"{worth.quantize(Decimal('0.000001'), rounding='ROUND_DOWN'):f}"


def cost(chain: EvmNode, tx_hash: str) -> int:
    """Return the cost of a transaction, by its receipt."""
    receipt = chain.rpc("eth_getTransactionReceipt", tx_hash)
    return int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16)


def cap_of(tx: dict[str, Any]) -> int:
    """The highest fee of an order, by its effects."""
    return int(next(effect["amount"] for effect in tx["effects"] if effect["kind"] == "fee"))


async def test_a_mined_order_is_settled_at_what_the_receipt_says(
    following: Service, payers: Tenant, payer: Agent, chain: EvmNode, scheduler: Scheduling, owner: asyncpg.Connection
) -> None:
    tx = send(payer, 5)
    [before] = spend_report(following, payers)["entries"]

    chain.mine(DEPTH)
    await scheduler.look()

    fee, cap = cost(chain, tx["txHash"]), cap_of(tx)
    assert 0 < fee <= cap
    assert await owner.fetchval("SELECT fee_paid FROM transactions WHERE id = $1", tx["id"]) == fee
    after = spend_report(following, payers)
    known = {"id": tx["id"], "tenantId": payers.id, "agentId": payer.id, "provider": "wallet", "mode": "self"}
    reserved = usd(cap, 18, ETH)
    assert before == {**known, "status": "reserved", "reservedUsd": reserved, "actualUsd": None}
    actual = usd(fee, 18, ETH)
    assert after["entries"] == [{**known, "status": "settled", "reservedUsd": reserved, "actualUsd": actual}]
    assert (after["count"], after["reservedUsd"], after["actualUsd"]) == (1, reserved, actual)
    [(_, evidence)] = await scheduler.audit_rows(tx["id"])
    assert evidence["feePaid"] == str(fee)


async def test_one_that_reverted_was_paid_and_one_that_was_replaced_was_not(
    following: Service, payers: Tenant, payer: Agent, chain: EvmNode, scheduler: Scheduling
) -> None:
    failed = send(payer, 0, to=chain.deploy(REVERTS), data="0xdeadbeef", gasLimit="60000")
    chain.mine(DEPTH)
    with chain.holding():
        stuck = send(payer, 6)
        better = replace(payer, stuck["id"])
        chain.mine(DEPTH)
    await scheduler.look()

    report = spend_report(following, payers)

    assert became(payer, failed["id"], stuck["id"]) == [("failed", "execution_reverted"), ("failed", "replaced")]
    assert {one["id"]: (one["status"], one["actualUsd"]) for one in report["entries"]} == {
        failed["id"]: ("settled", usd(cost(chain, failed["txHash"]), 18, ETH)),
        stuck["id"]: ("released", "0.000000"),
        better["id"]: ("settled", usd(cost(chain, better["txHash"]), 18, ETH)),
    }
    both = cost(chain, failed["txHash"]) + cost(chain, better["txHash"])
    assert report["actualUsd"] == usd(both, 18, ETH)
    assert report["reservedUsd"] == usd(sum(map(cap_of, (failed, stuck, better))), 18, ETH)


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({"l1Fee": hex(10**15)}, 10**15),
        ({"effectiveGasPrice": None}, None),
        ({"l1Fee": hex(2**256)}, None),
    ],
    ids=["rollup", "no price", "more than there is"],
)
async def test_a_rollup_adds_its_own_fee_and_a_node_that_says_nothing_leaves_it_open(
    following: Service,
    payers: Tenant,
    payer: Agent,
    chain: EvmNode,
    evm_liar: LyingNode,
    *,
    scheduler: Scheduling,
    changes: dict[str, Any],
    more: int | None,
) -> None:
    tx = send(payer)
    chain.mine(DEPTH)
    evm_liar.lie = lambda method, params, result: (
        result | changes if method == "eth_getTransactionReceipt" and result else result
    )

    await scheduler.look()

    [entry] = spend_report(following, payers)["entries"]
    expected = usd(cost(chain, tx["txHash"]) + more, 18, ETH) if more is not None else None
    assert (entry["status"], entry["actualUsd"]) == ("settled", expected)
    assert became(payer, tx["id"]) == [("confirmed", None)]


async def test_a_solana_transaction_costs_what_its_node_says(
    following: Service, payers: Tenant, payer: Agent, cluster: SolanaNode, scheduler: Scheduling
) -> None:
    tx = pay(payer, cluster)

    await scheduler.look()

    [entry] = spend_report(following, payers)["entries"]
    assert (entry["id"], entry["status"], entry["actualUsd"]) == (tx, "settled", usd(5_000, 9, SOL))


@pytest.mark.parametrize("lie", [None, {"meta": None}, {"meta": {"fee": -1}}, "nonsense"])
async def test_a_node_that_does_not_know_the_fee_holds_nothing_up(
    following: Service,
    payers: Tenant,
    payer: Agent,
    cluster: SolanaNode,
    solana_liar: LyingNode,
    *,
    scheduler: Scheduling,
    lie: Any,
) -> None:
    tx = pay(payer, cluster)
    solana_liar.lie = lambda method, params, result: lie if method == "getTransaction" else result

    await scheduler.look()

    assert became(payer, tx) == [("confirmed", None)]
    [entry] = spend_report(following, payers)["entries"]
    assert (entry["status"], entry["actualUsd"]) == ("settled", None)


async def test_sums_are_of_every_chain_and_of_the_whole_range(
    following: Service, payers: Tenant, payer: Agent, chain: EvmNode, cluster: SolanaNode, scheduler: Scheduling
) -> None:
    other = payers.agent()
    chain.fund(other.evm_address)
    ours, theirs = send(payer), send(other)
    pay(payer, cluster)
    chain.mine(DEPTH)
    await scheduler.look()

    whole, page = spend_report(following, payers), spend_report(following, payers, limit="1", offset="1")
    one = spend_report(following, payers, wallet_ids=other.id)

    costs = sum(cost(chain, tx["txHash"]) for tx in (ours, theirs))
    exact = Decimal(costs).scaleb(-18) * ETH + Decimal(5_000).scaleb(-9) * SOL
    assert whole["actualUsd"] == f"{exact.quantize(Decimal('0.000001'), rounding='ROUND_DOWN'):f}"
    assert page == {**whole, "entries": whole["entries"][1:2]}
    assert (whole["count"], whole["walletIds"], one["walletIds"]) == (3, [], [other.id])
    assert [entry["id"] for entry in one["entries"]] == [theirs["id"]]
    assert record(other, theirs["id"])["status"] == "confirmed"


def test_an_order_that_is_only_signed_costs_nothing(following: Service, payers: Tenant, payer: Agent) -> None:
    assert payer.sign().status_code == 200

    assert spend_report(following, payers)["count"] == 0
