"""The fate of an EVM transaction after it was sent. Promises P2 and P9."""

import asyncio
from typing import Any

import asyncpg
import pytest

from scheduler.tx_tracking.follow import follow
from tests.fixtures.callers import Agent, Tenant, rule
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import greet
from tests.outside.evm_node import EvmNode
from tests.outside.lying_node import LyingNode
from tests.promises.oracle import Limit, violations
from tests.tx_tracking.scheduling import Scheduling, became, record, replace, send

REVERTS = bytes.fromhex("60006000fd")
DEPTH = 3


async def test_mined_is_confirmed_at_depth_and_not_before(
    payers: Tenant, payer: Agent, chain: EvmNode, scheduler: Scheduling
) -> None:
    tx = send(payer, referenceId="order-7")

    for _ in range(DEPTH - 1):
        await scheduler.look()
        assert became(payer, tx["id"]) == [("broadcast", None)]
        assert await scheduler.events(payers, tx["id"]) == []
        chain.mine()
    await scheduler.look()
    await scheduler.look()

    done = record(payer, tx["id"])
    assert (done["status"], done["statusDetail"]) == ("confirmed", None)
    assert done["confirmedAt"] >= done["broadcastAt"]
    receipt = chain.rpc("eth_getTransactionReceipt", tx["txHash"])
    [(action, evidence)] = await scheduler.audit_rows(tx["id"])
    assert (action, evidence["block"], evidence["blockHash"], evidence["takenBy"]) == (
        "tx.confirmed",
        int(receipt["blockNumber"], 16),
        receipt["blockHash"],
        tx["txHash"],
    )
    assert await scheduler.slot(payer) == (tx["id"], "seen")
    assert await scheduler.events(payers, tx["id"]) == [
        (
            "tx.confirmed",
            {
                "txId": tx["id"],
                "kind": "evm",
                "to": tx["toAddress"],
                "value": "1",
                "chainId": 31337,
                "referenceId": "order-7",
                "effects": done["effects"],
                "moreEffects": 0,
                "txHash": tx["txHash"],
                "block": evidence["block"],
                "blockHash": evidence["blockHash"],
            },
        )
    ]


async def test_reverted_is_failed_at_depth(payers: Tenant, payer: Agent, chain: EvmNode, scheduler: Scheduling) -> None:
    tx = send(payer, 0, to=chain.deploy(REVERTS), data="0xdeadbeef", gasLimit="60000")

    await scheduler.look()
    assert became(payer, tx["id"]) == [("broadcast", None)]
    chain.mine(DEPTH)
    await scheduler.look()

    assert became(payer, tx["id"]) == [("failed", "execution_reverted")]
    assert record(payer, tx["id"])["confirmedAt"] is None
    [(event, data)] = await scheduler.events(payers, tx["id"])
    assert (event, data["reason"], data["txHash"], data["takenBy"]) == (
        "tx.failed",
        "execution_reverted",
        tx["txHash"],
        None,
    )


async def test_of_two_for_one_nonce_the_mined_one_is_confirmed_and_the_other_replaced(
    payers: Tenant, payer: Agent, chain: EvmNode, scheduler: Scheduling, owner: asyncpg.Connection
) -> None:
    payers.ok("PUT", f"/agents/{payer.id}/policies", [rule("spending-limit", maxPerDay="10")])
    with chain.holding():
        stuck = send(payer, 6)
        better = replace(payer, stuck["id"])
        assert (chain.waits(stuck["txHash"]), chain.waits(better["txHash"])) == (False, True)
        await scheduler.look()
        assert became(payer, stuck["id"], better["id"]) == [("broadcast", None), ("broadcast", None)]
        assert chain.waits(better["txHash"]), "what is replaced is not sent again"
        chain.mine(DEPTH)
    await scheduler.look()

    assert became(payer, stuck["id"], better["id"]) == [("failed", "replaced"), ("confirmed", None)]
    [(_, evidence)] = await scheduler.audit_rows(stuck["id"])
    assert evidence["takenBy"] == better["txHash"]
    [(event, data)] = await scheduler.events(payers, stuck["id"])
    assert (event, data["reason"], data["takenBy"]) == ("tx.failed", "replaced", better["txHash"])
    assert [event for event, _ in await scheduler.events(payers, better["id"])] == ["tx.confirmed"]
    assert payer.ok("GET", f"/dashboard/{payer.id}")["budgets"][0]["spent"] == "6"
    assert await violations(owner, [payers.id], [Limit(payer.id, 10)]) == []


@pytest.mark.parametrize("mined", [0, -1])
async def test_of_very_many_for_one_nonce_each_becomes_final(
    payer: Agent, chain: EvmNode, scheduler: Scheduling, owner: asyncpg.Connection, mined: int
) -> None:
    with chain.holding():
        tries = [send(payer, maxFeePerGas=str(3 * 10**9), maxPriorityFeePerGas="1")]
        for _ in range(33):
            tries.append(replace(payer, tries[-1]["id"]))
        chain.drop(tries[-1]["txHash"])
        raw = await owner.fetchval("SELECT signed_bytes FROM transactions WHERE id = $1", tries[mined]["id"])
        chain.rpc("eth_sendRawTransaction", "0x" + raw.hex())
        chain.mine(DEPTH)
    await scheduler.look()
    await scheduler.look()

    taken = tries.pop(mined)
    assert became(payer, taken["id"]) == [("confirmed", None)]
    assert set(became(payer, *(one["id"] for one in tries))) == {("failed", "replaced")}


async def test_the_original_mined_first_makes_the_replacement_replaced(
    payer: Agent, chain: EvmNode, scheduler: Scheduling
) -> None:
    stuck = send(payer)
    chain.mine()

    answer = payer.post(f"/vault/{payer.id}/transactions/{stuck['id']}/replace", json={})

    assert answer.status_code == 502
    assert "nonce too low" in answer.json()["error"]
    late = answer.json()["data"]
    assert (late["status"], became(payer, late["txId"])) == ("signed", [("signed", None)])
    chain.mine(DEPTH)
    assert await scheduler.send() == 0
    await scheduler.look()
    assert became(payer, stuck["id"], late["txId"]) == [("confirmed", None), ("failed", "replaced")]
    assert await scheduler.send() == 0


async def test_a_transaction_broadcast_by_the_caller_takes_the_nonce(
    payer: Agent, chain: EvmNode, scheduler: Scheduling
) -> None:
    kept, ours = two_for_one_nonce(payer, chain)

    chain.mine(DEPTH)
    await scheduler.look()

    assert became(payer, kept["id"], ours["id"]) == [("confirmed", None), ("failed", "replaced")]


async def test_one_that_nobody_here_knows_takes_the_nonce_at_depth_and_not_before(
    payer: Agent, chain: EvmNode, scheduler: Scheduling, owner: asyncpg.Connection
) -> None:
    kept, ours = two_for_one_nonce(payer, chain)
    # From now on the same key has signed something that this service has never heard of.
    await owner.execute("UPDATE transactions SET replaces_tx_id = NULL WHERE id = $1", ours["id"])
    await owner.execute("DELETE FROM transactions WHERE id = $1", kept["id"])

    for _ in range(DEPTH):
        await scheduler.look()
        assert became(payer, ours["id"]) == [("broadcast", None)]
        chain.mine()
    await scheduler.look()

    assert became(payer, ours["id"]) == [("failed", "replaced")]
    [(_, evidence)] = await scheduler.audit_rows(ours["id"])
    assert evidence.keys() == {"outcome", "block", "blockHash"}


def two_for_one_nonce(payer: Agent, chain: EvmNode) -> tuple[dict[str, Any], dict[str, Any]]:
    """One whose bytes only the caller has, and one that took over its nonce; the node has the first."""
    kept = record(payer, payer.sign(value=1).json()["data"]["txId"])
    chain.rpc("evm_setAutomine", False)
    ours = send(payer, 2)
    assert ours["replacesTxId"] == kept["id"]
    chain.drop(ours["txHash"])
    chain.rpc("eth_sendRawTransaction", kept["signedTransaction"])
    chain.rpc("evm_setAutomine", True)
    return kept, ours


async def test_a_transaction_that_a_node_forgot_is_sent_again(
    payer: Agent, chain: EvmNode, scheduler: Scheduling
) -> None:
    with chain.holding():
        tx = send(payer)
        chain.drop(tx["txHash"])
        assert not chain.waits(tx["txHash"])

        await scheduler.look()

        assert chain.waits(tx["txHash"])
        assert became(payer, tx["id"]) == [("broadcast", None)]


async def test_a_reorganization_before_depth_takes_nothing_for_granted(
    payer: Agent, chain: EvmNode, scheduler: Scheduling
) -> None:
    with chain.holding():
        tx = send(payer)
        with chain.undoing():
            chain.mine(DEPTH - 1)
            await scheduler.look()
            assert became(payer, tx["id"]) == [("broadcast", None)]
        assert chain.rpc("eth_getTransactionReceipt", tx["txHash"]) is None
        chain.drop(tx["txHash"])

        await scheduler.look()

        assert chain.waits(tx["txHash"])
        chain.mine(DEPTH)
    await scheduler.look()
    assert became(payer, tx["id"]) == [("confirmed", None)]


@pytest.mark.parametrize("word", ["confirmed", "reverted", "replaced", "expired", "sent"])
async def test_a_final_state_never_changes(
    following: Service, payer: Agent, chain: EvmNode, scheduler: Scheduling, word: str
) -> None:
    with chain.holding():
        tx = send(payer)
        with chain.undoing():
            chain.mine(DEPTH)
            await scheduler.look()
        before = record(payer, tx["id"])
        # The node has changed its mind: it never happened.
        await scheduler.look()
        with greet(following, "scheduler") as wire:
            body = {"tenant": payer_tenant(payer), "tx_id": tx["id"], "outcome": word, "block": 1}
            answer = wire.ask("ChainOutcome", body)
        chain.drop(tx["txHash"])

    assert answer == {"type": "Done", "data": {"result": "unchanged"}}
    assert before["status"] == "confirmed"
    assert record(payer, tx["id"]) == before
    assert len(await scheduler.audit_rows(tx["id"])) == 1


def payer_tenant(payer: Agent) -> str:
    return str(payer.tenant.id)


async def test_only_a_scheduler_says_more_than_sent(following: Service, payer: Agent) -> None:
    tx = send(payer)
    body = {"tenant": payer_tenant(payer), "tx_id": tx["id"], "outcome": "confirmed", "block": 1}

    with greet(following) as wire:
        assert wire.ask("ChainOutcome", body)["code"] == "message_not_allowed"
    with greet(following, "scheduler") as wire:
        assert wire.ask("ChainOutcome", {**body, "block": None})["code"] == "no_evidence"
    assert became(payer, tx["id"]) == [("broadcast", None)]


# ---- nodes that lie, or are away


def nonsense(method: str, params: list[Any], result: Any) -> Any:
    return {"blockNumber": "many"} if method == "eth_getTransactionReceipt" else result


def another(method: str, params: list[Any], result: Any) -> Any:
    """The receipt of some other transaction."""
    return (
        result and {**result, "transactionHash": "0x" + "77" * 32} if method == "eth_getTransactionReceipt" else result
    )


def orphan(method: str, params: list[Any], result: Any) -> Any:
    """A receipt from a block that is not the chain's."""
    return result and {**result, "blockHash": "0x" + "77" * 32} if method == "eth_getTransactionReceipt" else result


def long(method: str, params: list[Any], result: Any) -> Any:
    """An answer that alone is too long for any batch."""
    return result and {**result, "logs": ["x" * 2**20]} if method == "eth_getTransactionReceipt" else result


@pytest.mark.parametrize("lie", [nonsense, another, orphan, long])
async def test_a_lie_about_one_says_nothing_of_it_and_stops_no_other(
    payers: Tenant, payer: Agent, chain: EvmNode, evm_liar: LyingNode, scheduler: Scheduling, lie: Any
) -> None:
    honest = payers.agent()
    chain.fund(honest.evm_address)
    about, others = send(payer), send(honest)
    chain.mine(DEPTH)
    evm_liar.lie = lambda method, params, result: lie(method, params, result) if about["txHash"] in params else result

    await scheduler.look()

    assert (became(payer, about["id"]), became(honest, others["id"])) == ([("broadcast", None)], [("confirmed", None)])
    evm_liar.be_honest()
    await scheduler.look()
    assert became(payer, about["id"]) == [("confirmed", None)]


def beyond(method: str, params: list[Any], result: Any) -> Any:
    """Blocks higher than any chain's will ever be."""
    somewhere = "0x" + "77" * 32
    if method == "eth_getTransactionReceipt":
        return result and {**result, "blockNumber": hex(2**100), "blockHash": somewhere}
    if method == "eth_getBlockByNumber":
        return {"hash": somewhere}
    return hex(2**200) if method == "eth_blockNumber" else result


def wordy(method: str, params: list[Any], result: Any) -> Any:
    """A hash that is none, told twice alike."""
    name = {"eth_getTransactionReceipt": "blockHash", "eth_getBlockByNumber": "hash"}.get(method, "")
    return {**result, name: "0x" + "7" * 5000} if name and result else result


def with_wrong_digit(method: str, params: list[Any], result: Any) -> Any:
    """One of the right length, with what is no digit."""
    name = {"eth_getTransactionReceipt": "blockHash", "eth_getBlockByNumber": "hash"}.get(method, "")
    return {**result, name: "0x" + "7" * 63 + "-"} if name and result else result


@pytest.mark.parametrize("lie", [beyond, wordy, with_wrong_digit])
async def test_a_block_that_cannot_be_is_never_told_and_costs_no_connection(
    following: Service, payer: Agent, chain: EvmNode, evm_liar: LyingNode, scheduler: Scheduling, lie: Any
) -> None:
    tx, closed = send(payer), following.logs().count("a connection was closed")
    chain.mine(DEPTH)
    evm_liar.lie = lie

    assert await scheduler.look() == 0

    assert became(payer, tx["id"]) == [("broadcast", None)]
    assert following.logs().count("a connection was closed") == closed
    evm_liar.be_honest()
    await scheduler.look()
    assert became(payer, tx["id"]) == [("confirmed", None)]


async def test_a_receipt_that_is_hidden_while_the_nonce_is_used_is_a_contradiction(
    payer: Agent, chain: EvmNode, evm_liar: LyingNode, scheduler: Scheduling
) -> None:
    tx = send(payer)
    chain.mine(DEPTH)
    evm_liar.lie = lambda method, params, result: None if method == "eth_getTransactionReceipt" else result

    await scheduler.look()

    assert became(payer, tx["id"]) == [("broadcast", None)]


async def test_a_node_of_another_chain_is_not_believed(
    payer: Agent, chain: EvmNode, evm_liar: LyingNode, scheduler: Scheduling
) -> None:
    tx = send(payer)
    chain.mine(DEPTH)
    evm_liar.lie = lambda method, params, result: "0x1" if method == "eth_chainId" else result

    assert await scheduler.look() == 0

    assert became(payer, tx["id"]) == [("broadcast", None)]


async def test_a_node_that_takes_no_batches_is_asked_one_by_one(
    payer: Agent, chain: EvmNode, evm_liar: LyingNode, scheduler: Scheduling
) -> None:
    tx = send(payer)
    chain.mine(DEPTH)
    evm_liar.takes_batches = False

    await scheduler.look()

    assert became(payer, tx["id"]) == [("confirmed", None)]


async def test_a_node_that_is_away_delays_and_loses_nothing(
    payer: Agent, chain: EvmNode, evm_liar: LyingNode, scheduler: Scheduling
) -> None:
    tx = send(payer)
    chain.mine(DEPTH)
    evm_liar.status = 503

    assert await scheduler.look() == 0
    assert became(payer, tx["id"]) == [("broadcast", None)]
    evm_liar.status = 200
    await scheduler.look()

    assert became(payer, tx["id"]) == [("confirmed", None)]


# ---- several schedulers


async def test_two_schedulers_share_the_work(
    payer: Agent, chain: EvmNode, evm_liar: LyingNode, scheduler: Scheduling, second: Scheduling
) -> None:
    made = [send(payer) for _ in range(6)]
    txs, hashes = [one["id"] for one in made], [one["txHash"] for one in made]
    chain.mine(DEPTH)
    evm_liar.be_honest()

    await scheduler.make_due()
    await asyncio.gather(*(follow(one.ports) for one in (scheduler, second, scheduler, second)))

    assert {one[0] for one in became(payer, *txs)} == {"confirmed"}
    asked = [params[0] for method, params in evm_liar.asked if method == "eth_getTransactionReceipt"]
    assert sorted(hash_ for hash_ in asked if hash_ in hashes) == sorted(hashes), "somebody looked at another's claim"
    assert [len(await scheduler.audit_rows(tx)) for tx in txs] == [1] * len(txs)


async def test_replacing_while_it_is_decided_leaves_every_promise_whole(
    payers: Tenant, payer: Agent, chain: EvmNode, scheduler: Scheduling, owner: asyncpg.Connection
) -> None:
    payers.ok("PUT", f"/agents/{payer.id}/policies", [rule("spending-limit", maxPerDay="50")])
    txs = [send(payer, 5)["id"] for _ in range(6)]
    chain.mine(DEPTH)

    def late(tx: str) -> int:
        return payer.post(f"/vault/{payer.id}/transactions/{tx}/replace", json={}).status_code

    answers = await asyncio.gather(scheduler.look(), *(asyncio.to_thread(late, tx) for tx in txs))
    await scheduler.send()
    await scheduler.look()

    # Final before the replacement was written, or signed and refused by the node: never anything else.
    assert set(answers[1:]) <= {409, 502}
    ended = [one["status"] for one in payer.ok("GET", f"/vault/{payer.id}/history")]
    assert (ended.count("confirmed"), len(ended)) == (6, 6 + answers.count(502))
    assert ended.count("failed") == answers.count(502)
    assert await violations(owner, [payers.id], [Limit(payer.id, 50)]) == []


async def test_the_next_look_comes_later_the_older_a_transaction_is(
    payer: Agent, chain: EvmNode, scheduler: Scheduling, owner: asyncpg.Connection
) -> None:
    waits = []
    with chain.holding():
        tx = send(payer)
        for age in (0, 600, 86_400):
            await scheduler.grow_old(tx["id"], age)
            await scheduler.look()
            waits.append(
                await owner.fetchval(
                    "SELECT extract(epoch FROM look_at - now())::float FROM transactions WHERE id = $1", tx["id"]
                )
            )
        chain.drop(tx["txHash"])

    assert [round(wait / 10) * 10 for wait in waits] == [0, 60, 300]
