"""Payments by x402 of EVM wallets: taken by whom they pay, given up, or never taken. Promises P2 and P9."""

from typing import Any

import asyncpg
import pytest
from eth_abi import encode
from eth_utils import keccak, to_checksum_address

from custody.chains.evm.selectors import PERMIT2
from scheduler.tx_tracking.evm_settlement_rules import LOGLESS_SECONDS, MAY_LAPSE_SECONDS
from tests.fixtures.callers import Agent, Tenant
from tests.outside.evm_node import EvmNode
from tests.outside.lying_node import Lie, LyingNode
from tests.routes.orders import SELLER
from tests.tx_tracking.scheduling import Scheduling, became, record
from tests.tx_tracking.settling import HELD, PRICE, USDC, allow_permit2, balance, make_buyer, pay, take

DEPTH = 3
TAKEN = 45
OLD = int(MAY_LAPSE_SECONDS) + 10


@pytest.fixture(name="buyer")
def buyer_fixture(payers: Tenant, chain: EvmNode) -> Agent:
    """An agent that may pay the seller."""
    return make_buyer(payers, chain)


async def look_deep(chain: EvmNode, scheduler: Scheduling) -> None:
    """Look when everything so far is final."""
    chain.mine(DEPTH)
    await scheduler.look()


def read_spent(agent: Agent) -> str:
    """Read how much counts against the agent's limit."""
    return str(agent.ok("GET", f"/dashboard/{agent.id}")["budgets"][0]["spent"])


def later(seconds: int) -> Lie:
    """A node whose clock is ahead."""

    def lie(method: str, _params: list[Any], result: Any) -> Any:
        if method == "eth_getBlockByNumber" and result is not None:
            return result | {"timestamp": hex(int(result["timestamp"], 16) + seconds)}
        return result

    return lie


async def test_a_taken_payment_is_confirmed_at_depth_and_not_before(
    payers: Tenant, buyer: Agent, chain: EvmNode, scheduler: Scheduling
) -> None:
    paid = pay(buyer)
    await scheduler.look()
    assert became(buyer, paid["id"]) == [("signed", None)]
    by = take(chain, paid)

    for _ in range(DEPTH - 1):
        await scheduler.look()
        assert became(buyer, paid["id"]) == [("signed", None)]
        chain.mine()
    await scheduler.look()
    await scheduler.look()

    done = record(buyer, paid["id"])
    assert (done["status"], done["statusDetail"], done["txHash"], done["settledBy"]) == ("confirmed", None, None, by)
    receipt = chain.rpc("eth_getTransactionReceipt", by)
    [(action, evidence)] = await scheduler.audit_rows(paid["id"])
    assert (action, evidence["block"], evidence["blockHash"], evidence["takenBy"]) == (
        "tx.confirmed",
        int(receipt["blockNumber"], 16),
        receipt["blockHash"],
        by,
    )
    [(event, data)] = await scheduler.events(payers, paid["id"])
    assert (event, data["kind"], data["txHash"], data["block"]) == ("tx.confirmed", "x402", by, evidence["block"])
    assert read_spent(buyer) == str(PRICE)


async def test_a_payment_that_nobody_takes_fails_when_it_is_over_and_stays_counted(
    payers: Tenant, buyer: Agent, chain: EvmNode, scheduler: Scheduling, evm_liar: LyingNode
) -> None:
    paid = pay(buyer)

    await scheduler.grow_old(paid["id"], OLD)
    await look_deep(chain, scheduler)
    assert became(buyer, paid["id"]) == [("signed", None)], "the chain's clock is not there yet"
    await scheduler.grow_old(paid["id"], -OLD)
    evm_liar.lie = later(OLD)
    await scheduler.look()
    assert became(buyer, paid["id"]) == [("signed", None)], "our own clock is not there yet"
    await scheduler.grow_old(paid["id"], OLD)
    await scheduler.look()

    assert became(buyer, paid["id"]) == [("failed", "authorization_expired")]
    assert record(buyer, paid["id"])["settledBy"] is None
    [(event, data)] = await scheduler.events(payers, paid["id"])
    assert (event, data["reason"], data["txHash"]) == ("tx.failed", "authorization_expired", None)
    assert read_spent(buyer) == str(PRICE)


async def test_a_payment_that_its_wallet_cancelled_fails(
    payers: Tenant, buyer: Agent, chain: EvmNode, scheduler: Scheduling
) -> None:
    paid = pay(buyer)
    nonce = paid["authorization"]["nonce"]
    document = {
        "domain": {"name": "USDC", "version": "2", "chainId": 31337, "verifyingContract": USDC},
        "types": {
            "CancelAuthorization": [{"name": "authorizer", "type": "address"}, {"name": "nonce", "type": "bytes32"}]
        },
        "primaryType": "CancelAuthorization",
        "value": {"authorizer": buyer.evm_address, "nonce": nonce},
    }
    proof = bytes.fromhex(buyer.ok("POST", f"/vault/{buyer.id}/sign-typed-data", document)["signature"][2:])
    kinds = ["address", "bytes32", "uint8", "bytes32", "bytes32"]
    words = [buyer.evm_address, bytes.fromhex(nonce[2:]), proof[64], proof[:32], proof[32:64]]
    by = chain.call_contract(
        USDC, keccak(f"cancelAuthorization({','.join(kinds)})".encode())[:4] + encode(kinds, words)
    )

    await look_deep(chain, scheduler)

    assert became(buyer, paid["id"]) == [("failed", "authorization_canceled")]
    assert record(buyer, paid["id"])["settledBy"] is None
    [(_, evidence)] = await scheduler.audit_rows(paid["id"])
    assert evidence["takenBy"] == by
    [(event, data)] = await scheduler.events(payers, paid["id"])
    assert (event, data["reason"]) == ("tx.failed", "authorization_canceled")
    assert balance(chain, buyer.evm_address) == HELD


@pytest.mark.parametrize(("way", "moved"), [("permit2", PRICE), ("upto", TAKEN)])
async def test_a_payment_by_permit2_moves_what_is_taken_and_counts_what_may_be(
    buyer: Agent, chain: EvmNode, scheduler: Scheduling, way: str, moved: int
) -> None:
    """Another payment to the same seller, of the same amount, is not taken for this one."""
    allow_permit2(buyer, chain)
    paid, beside = pay(buyer, way), pay(buyer, way)
    before = balance(chain, SELLER)
    by = take(chain, paid, moved)
    assert (balance(chain, buyer.evm_address), balance(chain, SELLER)) == (HELD - moved, before + moved)
    with pytest.raises(AssertionError):
        take(chain, paid, moved)

    await look_deep(chain, scheduler)

    assert became(buyer, paid["id"], beside["id"]) == [("confirmed", None), ("signed", None)]
    assert record(buyer, paid["id"])["settledBy"] == by
    assert read_spent(buyer) == str(HELD + 2 * PRICE)


async def test_more_than_was_signed_is_taken_by_nobody(buyer: Agent, chain: EvmNode) -> None:
    allow_permit2(buyer, chain)
    paid = pay(buyer, "upto")

    with pytest.raises(AssertionError):
        take(chain, paid, PRICE + 1)

    assert balance(chain, buyer.evm_address) == HELD
    assert take(chain, paid, PRICE)


async def test_a_payment_by_permit2_whose_nonce_its_wallet_gave_up_fails(
    buyer: Agent, chain: EvmNode, scheduler: Scheduling
) -> None:
    allow_permit2(buyer, chain)
    paid = pay(buyer, "permit2")
    nonce = int(paid["permit2Authorization"]["nonce"])
    data = keccak(b"invalidateUnorderedNonces(uint256,uint256)")[:4]
    data += encode(["uint256", "uint256"], [nonce >> 8, 1 << (nonce & 0xFF)])
    answer = buyer.sign(to=to_checksum_address(PERMIT2), value=0, data="0x" + data.hex(), broadcast=True)
    if answer.status_code == 202:
        buyer.tenant.ok("POST", f"/approvals/{answer.json()['data']['approvalId']}/approve", {})

    await look_deep(chain, scheduler)

    assert became(buyer, paid["id"]) == [("failed", "authorization_canceled")]


@pytest.mark.parametrize("way", ["eip3009", "permit2"])
async def test_a_used_nonce_without_a_log_counts_as_taken_when_nobody_may_have_the_log_any_more(
    buyer: Agent, chain: EvmNode, scheduler: Scheduling, evm_liar: LyingNode, way: str
) -> None:
    allow_permit2(buyer, chain)
    paid = pay(buyer, way)
    take(chain, paid)
    evm_liar.lie = lambda method, _params, result: [] if method == "eth_getLogs" else result

    await look_deep(chain, scheduler)
    assert became(buyer, paid["id"]) == [("signed", None)]
    await scheduler.grow_old(paid["id"], int(LOGLESS_SECONDS) + 10)
    await scheduler.look()

    assert became(buyer, paid["id"]) == [("confirmed", None)]
    assert record(buyer, paid["id"])["settledBy"] is None


async def test_a_payment_that_no_node_knows_is_asked_for_three_days_and_then_left(
    buyer: Agent, chain: EvmNode, scheduler: Scheduling, evm_liar: LyingNode, owner: asyncpg.Connection
) -> None:
    paid = pay(buyer)
    evm_liar.lie = lambda method, _params, result: "0x" if method == "eth_call" else result

    for days, is_left in ((2, False), (2, True)):
        await scheduler.grow_old(paid["id"], days * 86_400)
        await look_deep(chain, scheduler)
        assert became(buyer, paid["id"]) == [("signed", None)]
        look_at = await owner.fetchval("SELECT look_at FROM transactions WHERE id = $1", paid["id"])
        assert (look_at is None) is is_left


def lying(method: str, **changed: Any) -> Lie:
    """A node that says something else in the answers to a method: other fields, or with `each` another answer."""

    def lie(asked: str, _params: list[Any], result: Any) -> Any:
        if asked != method or not result:
            return result
        if "each" in changed:
            return changed["each"](result)
        return [one | changed for one in result] if isinstance(result, list) else result | changed

    return lie


LIES = {
    "a short word": lying("eth_call", each=lambda _: "0x01"),
    "a long word": lying("eth_call", each=lambda word: word + "00"),
    "a number": lying("eth_call", each=lambda _: 1),
    "no truth value": lying("eth_call", each=lambda word: word[:-1] + "2"),
    "another block": lying("eth_getBlockByNumber", number="0x1"),
    "no block": lying("eth_getBlockByNumber", each=lambda _: None),
    "a block without a time": lying("eth_getBlockByNumber", timestamp=None),
    "a chain that is higher": lying("eth_blockNumber", each=lambda head: hex(int(head, 16) + 50)),
    "a height beyond all": lying("eth_blockNumber", each=lambda _: hex(2**70)),
    "another chain": lying("eth_chainId", each=lambda _: "0x1"),
    "the same log twice": lying("eth_getLogs", each=lambda logs: logs * 2),
    "a log of two transactions": lying(
        "eth_getLogs", each=lambda logs: [logs[0], logs[0] | {"logIndex": "0x9", "transactionHash": "0x" + "ab" * 32}]
    ),
    "a log taken back": lying("eth_getLogs", removed=True),
    "a log of another contract": lying("eth_getLogs", address="0x" + "11" * 20),
    "a log of another block": lying("eth_getLogs", blockHash="0x" + "11" * 32),
    "a log from beyond": lying("eth_getLogs", blockNumber="0xffffff"),
    "a log without topics": lying("eth_getLogs", topics=[]),
    "a log of another nonce": lying(
        "eth_getLogs", each=lambda logs: [one | {"topics": [*one["topics"][:2], "0x" + "00" * 32]} for one in logs]
    ),
    "too many logs": lying("eth_getLogs", each=lambda logs: [logs[0] | {"logIndex": hex(at)} for at in range(600)]),
    "logs that are none": lying("eth_getLogs", each=lambda _: {"0": "x"}),
    "both used and cancelled": lying(
        "eth_getLogs",
        each=lambda logs: [
            *logs,
            logs[0]
            | {
                "logIndex": "0x9",
                "topics": ["0x" + keccak(b"AuthorizationCanceled(address,bytes32)").hex(), *logs[0]["topics"][1:]],
            },
        ],
    ),
}


async def test_a_node_that_lies_makes_a_taken_payment_unknown(
    buyer: Agent, chain: EvmNode, scheduler: Scheduling, evm_liar: LyingNode
) -> None:
    paid = pay(buyer)
    take(chain, paid)
    chain.mine(DEPTH)
    believed = []
    for name, lie in LIES.items():
        evm_liar.lie = lie
        await scheduler.look()
        believed += [name] if became(buyer, paid["id"]) != [("signed", None)] else []

    evm_liar.be_honest()
    await scheduler.look()

    assert believed == []
    assert became(buyer, paid["id"]) == [("confirmed", None)]


async def test_a_transaction_that_does_not_name_the_nonce_took_nothing(
    buyer: Agent, chain: EvmNode, scheduler: Scheduling, evm_liar: LyingNode
) -> None:
    allow_permit2(buyer, chain)
    paid = pay(buyer, "permit2")
    take(chain, paid)
    for changed in ({"input": "0x"}, {"hash": "0x" + "11" * 32}, {"input": None}):
        evm_liar.lie = lying("eth_getTransactionByHash", **changed)
        await look_deep(chain, scheduler)
        assert became(buyer, paid["id"]) == [("signed", None)], changed

    evm_liar.be_honest()
    await scheduler.look()

    assert became(buyer, paid["id"]) == [("confirmed", None)]


async def test_a_look_at_many_payments_asks_in_batches(
    buyer: Agent, chain: EvmNode, scheduler: Scheduling, evm_liar: LyingNode
) -> None:
    for _ in range(5):
        take(chain, pay(buyer))
    chain.mine(DEPTH)
    evm_liar.asked.clear()

    await scheduler.look()

    assert (evm_liar.count("eth_chainId"), evm_liar.count("eth_call"), evm_liar.count("eth_getLogs")) == (1, 5, 5)
    assert {one["status"] for one in buyer.ok("GET", f"/vault/{buyer.id}/history")} == {"confirmed"}
