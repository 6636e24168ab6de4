"""The fate of a Solana transaction after it was sent. Promises P2 and P9."""

from typing import Any

import pytest

from tests.fixtures.callers import Agent, Tenant
from tests.fixtures.server import Service
from tests.outside.lying_node import LyingNode
from tests.outside.solana_node import SolanaNode
from tests.routes.orders import RECEIVER, solana_payment
from tests.tx_tracking.scheduling import Scheduling, became, record

OLD_ENOUGH = 150


def order(payer: Agent, cluster: SolanaNode, lamports: int) -> dict[str, Any]:
    blockhash = cluster.rpc("getLatestBlockhash")["value"]["blockhash"]
    return solana_payment(payer, lamports, blockhash=blockhash) | {"broadcast": True}


def pay(payer: Agent, cluster: SolanaNode, lamports: int = 1_000_000) -> str:
    """Sign and broadcast."""
    answer = payer.post(f"/vault/{payer.id}/sign-solana", json=order(payer, cluster, lamports))
    assert answer.status_code == 200, answer.text
    return str(answer.json()["data"]["txId"])


@pytest.fixture(scope="module", autouse=True)
def funded_receiver(cluster: SolanaNode) -> None:
    """Somebody with an account, so that small payments do not fail for its rent."""
    cluster.fund(RECEIVER)


def told_as(**changes: Any) -> Any:
    """A node that says something else of every transaction it knows."""

    def lie(method: str, params: list[Any], result: Any) -> Any:
        if method != "getSignatureStatuses":
            return result
        return {**result, "value": [one and {**one, **changes} for one in result["value"]]}

    return lie


async def test_finalized_is_confirmed(payers: Tenant, payer: Agent, cluster: SolanaNode, scheduler: Scheduling) -> None:
    tx = pay(payer, cluster)

    await scheduler.look()

    assert became(payer, tx) == [("confirmed", None)]
    [(action, evidence)] = await scheduler.audit_rows(tx)
    assert (action, evidence["takenBy"]) == ("tx.confirmed", record(payer, tx)["txHash"])
    [(event, data)] = await scheduler.events(payers, tx)
    assert (event, data["kind"], data["txHash"]) == ("tx.confirmed", "solana", record(payer, tx)["txHash"])
    assert (data["block"], data["blockHash"]) == (evidence["block"], None)


@pytest.mark.parametrize("slot", [2**63, 2**70, -1])
async def test_a_slot_that_cannot_be_is_never_told_and_costs_no_connection(
    following: Service, payer: Agent, cluster: SolanaNode, solana_liar: LyingNode, scheduler: Scheduling, slot: int
) -> None:
    tx, closed = pay(payer, cluster), following.logs().count("a connection was closed")
    solana_liar.lie = told_as(slot=slot)

    assert await scheduler.look() == 0

    assert became(payer, tx) == [("broadcast", None)]
    assert following.logs().count("a connection was closed") == closed


@pytest.mark.parametrize("level", ["processed", "confirmed"])
async def test_an_unfinalized_transaction_is_not_final(
    payer: Agent, cluster: SolanaNode, solana_liar: LyingNode, scheduler: Scheduling, level: str
) -> None:
    tx = pay(payer, cluster)
    solana_liar.lie = told_as(confirmationStatus=level, err={"InstructionError": [0, "Custom"]})

    await scheduler.look()

    assert became(payer, tx) == [("broadcast", None)]


async def test_finalized_with_an_error_is_failed(
    payer: Agent, cluster: SolanaNode, solana_liar: LyingNode, scheduler: Scheduling
) -> None:
    tx = pay(payer, cluster)
    solana_liar.lie = told_as(err={"InstructionError": [0, {"Custom": 1}]})

    await scheduler.look()
    solana_liar.be_honest()
    await scheduler.look()

    assert became(payer, tx) == [("failed", "execution_reverted")]


async def test_a_transaction_that_a_node_only_claimed_to_take_is_sent_again(
    payer: Agent, cluster: SolanaNode, solana_liar: LyingNode, scheduler: Scheduling
) -> None:
    solana_liar.swallows = {"sendTransaction"}
    tx = pay(payer, cluster)
    solana_liar.be_honest()

    await scheduler.look()
    assert became(payer, tx) == [("broadcast", None)]
    await scheduler.look()

    assert became(payer, tx) == [("confirmed", None)]


async def test_an_expired_blockhash_is_failed_once_it_is_old_and_the_history_has_nothing(
    payer: Agent, cluster: SolanaNode, solana_liar: LyingNode, scheduler: Scheduling
) -> None:
    solana_liar.swallows = {"sendTransaction"}
    tx = pay(payer, cluster)
    cluster.expire_blockhash()

    await scheduler.look()
    # A node that lags behind does not know a fresh blockhash either.
    assert became(payer, tx) == [("broadcast", None)]
    await scheduler.grow_old(tx, OLD_ENOUGH)
    await scheduler.look()

    assert became(payer, tx) == [("failed", "blockhash_expired")]
    [(action, evidence)] = await scheduler.audit_rows(tx)
    assert (action, evidence["outcome"]) == ("tx.failed", "expired")
    assert evidence["block"] > 0


@pytest.mark.parametrize("commitment", ["confirmed", "finalized"])
async def test_a_blockhash_counts_as_expired_only_where_both_say_so(
    payer: Agent, cluster: SolanaNode, solana_liar: LyingNode, scheduler: Scheduling, commitment: str
) -> None:
    solana_liar.swallows = {"sendTransaction"}
    tx = pay(payer, cluster)
    cluster.expire_blockhash()
    await scheduler.grow_old(tx, OLD_ENOUGH)

    def still_valid(method: str, params: list[Any], result: Any) -> Any:
        lies = method == "isBlockhashValid" and params[1] == {"commitment": commitment}
        return {**result, "value": True} if lies else result

    solana_liar.lie = still_valid
    await scheduler.look()

    assert became(payer, tx) == [("broadcast", None)]


async def test_bytes_that_no_node_took_are_not_sent_for_ever(
    payer: Agent, cluster: SolanaNode, solana_liar: LyingNode, scheduler: Scheduling
) -> None:
    body = order(payer, cluster, 10**12)

    answer = payer.post(f"/vault/{payer.id}/sign-solana", json=body)

    assert answer.status_code == 502, answer.text
    tx = answer.json()["data"]["txId"]
    assert await scheduler.send() == 0
    asked = solana_liar.count("sendTransaction")
    assert asked == 2
    cluster.expire_blockhash()
    await scheduler.grow_old(tx, OLD_ENOUGH)
    await scheduler.look()
    assert became(payer, tx) == [("failed", "blockhash_expired")]

    assert await scheduler.send() == 0
    assert solana_liar.count("sendTransaction") == asked


async def test_nonsense_about_one_stops_no_other(
    payer: Agent, cluster: SolanaNode, solana_liar: LyingNode, scheduler: Scheduling
) -> None:
    txs = [pay(payer, cluster, 1_000_000 + more) for more in range(2)]
    about = record(payer, txs[0])["txHash"]

    def lie(method: str, params: list[Any], result: Any) -> Any:
        if method != "getSignatureStatuses":
            return result
        return {
            **result,
            "value": [
                {"slot": "much"} if sig == about else one for sig, one in zip(params[0], result["value"], strict=True)
            ],
        }

    solana_liar.lie = lie
    await scheduler.look()

    assert became(payer, *txs) == [("broadcast", None), ("confirmed", None)]
