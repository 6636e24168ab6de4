"""Payments by x402 of Solana wallets: their sponsor signs last, so nobody here knows by which name they land."""

import base64
import json
from typing import Any

import pytest
from solders.keypair import Keypair
from solders.message import to_bytes_versioned
from solders.transaction import VersionedTransaction

from tests.fixtures.callers import Agent, Tenant, rule
from tests.outside.lying_node import LyingNode
from tests.outside.solana_node import SolanaNode
from tests.routes.orders import payment_demand
from tests.tx_tracking.scheduling import Scheduling, became, record

SELLER, SPONSOR = Keypair(), Keypair()
NETWORK = "solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1"
HELD, PRICE = 1_000, 60
OLD_ENOUGH = 150


@pytest.fixture(scope="module", autouse=True)
def others(cluster: SolanaNode, mint: str) -> None:
    """A sponsor with coins for fees, and a seller with an account."""
    cluster.fund(str(SPONSOR.pubkey()))
    cluster.mint_to(mint, str(SELLER.pubkey()), 0)


@pytest.fixture(name="buyer")
def buyer_fixture(payers: Tenant, cluster: SolanaNode, mint: str) -> Agent:
    """An agent with tokens and no coins at all, and a rule that names the seller."""
    named = rule("approved-addresses", addresses=[str(SELLER.pubkey())], mode="whitelist")
    agent = payers.agent(named, rule("spending-limit", maxPerDay=str(HELD), asset=f"solana:{mint}"))
    cluster.mint_to(mint, agent.solana_address, HELD)
    return agent


def pay(agent: Agent, cluster: SolanaNode, mint: str, memo: str | None = None) -> tuple[str, VersionedTransaction]:
    """Make a payment; its id, and the transaction that the seller is given."""
    blockhash = cluster.rpc("getLatestBlockhash")["value"]["blockhash"]
    offer = {
        "scheme": "exact",
        "network": NETWORK,
        "amount": str(PRICE),
        "asset": mint,
        "payTo": str(SELLER.pubkey()),
        "maxTimeoutSeconds": 60,
        "extra": {"feePayer": str(SPONSOR.pubkey()), "recentBlockhash": blockhash} | ({"memo": memo} if memo else {}),
    }
    made = agent.ok("POST", f"/vault/{agent.id}/x402", {"demand": payment_demand(offer)})
    content = json.loads(base64.b64decode(made["value"]))["payload"]["transaction"]
    return made["txId"], VersionedTransaction.from_bytes(base64.b64decode(content))


def take(cluster: SolanaNode, ours: VersionedTransaction) -> str:
    """Sign as the sponsor, and send it."""
    by_sponsor = SPONSOR.sign_message(to_bytes_versioned(ours.message))
    whole = bytes(VersionedTransaction.populate(ours.message, [by_sponsor, ours.signatures[1]]))
    return str(cluster.rpc("sendTransaction", base64.b64encode(whole).decode(), {"encoding": "base64"}))


@pytest.mark.parametrize("memo", [None, "order 7"])
async def test_a_taken_payment_is_found_by_its_message(
    payers: Tenant, buyer: Agent, cluster: SolanaNode, mint: str, scheduler: Scheduling, memo: str | None
) -> None:
    """The next one, to the same seller with the same memo, is another."""
    (tx, ours), (beside, _) = pay(buyer, cluster, mint, memo), pay(buyer, cluster, mint, memo and "order 8")
    await scheduler.look()
    assert became(buyer, tx) == [("signed", None)]
    by = take(cluster, ours)

    await scheduler.look()

    assert became(buyer, tx, beside) == [("confirmed", None), ("signed", None)]
    done = record(buyer, tx)
    assert (done["txHash"], done["settledBy"]) == (None, by)
    [(event, data)] = await scheduler.events(payers, tx)
    assert (event, data["kind"], data["txHash"]) == ("tx.confirmed", "solana_x402", by)


async def test_a_payment_that_nobody_takes_expires_with_its_blockhash(
    buyer: Agent, cluster: SolanaNode, mint: str, scheduler: Scheduling
) -> None:
    tx, _ = pay(buyer, cluster, mint)
    cluster.expire_blockhash()
    await scheduler.look()
    assert became(buyer, tx) == [("signed", None)], "a node may lag behind"

    await scheduler.grow_old(tx, OLD_ENOUGH)
    await scheduler.look()

    assert became(buyer, tx) == [("failed", "blockhash_expired")]
    assert buyer.ok("GET", f"/dashboard/{buyer.id}")["budgets"][0]["spent"] == str(PRICE)


def lying(method: str, change: Any) -> Any:
    """A node that says something else in its answers to one method."""
    return lambda asked, _params, result: change(result) if asked == method and result else result


def _other(entry: dict[str, Any]) -> dict[str, Any]:
    """The transaction, with a signature of the sponsor over something else."""
    whole = VersionedTransaction.from_bytes(base64.b64decode(entry["transaction"][0]))
    forged = VersionedTransaction.populate(whole.message, [SPONSOR.sign_message(b"x"), *whole.signatures[1:]])
    return entry | {"transaction": [base64.b64encode(bytes(forged)).decode(), "base64"]}


LIES = {
    "no history": lying("getSignaturesForAddress", lambda _: None),
    "an entry twice": lying("getSignaturesForAddress", lambda entries: entries * 2),
    "a failure that was none": lying("getSignaturesForAddress", lambda all_: [one | {"err": {}} for one in all_]),
    "another slot": lying("getSignaturesForAddress", lambda all_: [one | {"slot": one["slot"] + 1} for one in all_]),
    "a slot beyond all": lying("getSignaturesForAddress", lambda all_: [one | {"slot": 2**70} for one in all_]),
    "a history of words": lying("getSignaturesForAddress", lambda _: "none"),
    "too long a history": lying(
        "getSignaturesForAddress",
        lambda all_: [all_[0] | {"signature": str(Keypair().sign_message(b"%d" % at))} for at in range(201)],
    ),
    "no transaction": lying("getTransaction", lambda _: None),
    "a transaction in words": lying("getTransaction", lambda one: one | {"transaction": "x"}),
    "no base64": lying("getTransaction", lambda one: one | {"transaction": ["!", "base64"]}),
    "a signature that is none": lying("getTransaction", _other),
    "a failure after all": lying("getTransaction", lambda one: one | {"meta": {"err": {"x": 1}}}),
}


async def test_a_node_that_lies_makes_a_taken_payment_unknown(
    buyer: Agent, cluster: SolanaNode, mint: str, scheduler: Scheduling, solana_liar: LyingNode
) -> None:
    """Not taken either, where its blockhash is over."""
    tx, ours = pay(buyer, cluster, mint)
    take(cluster, ours)
    cluster.expire_blockhash()
    await scheduler.grow_old(tx, OLD_ENOUGH)
    believed = []
    for name, lie in LIES.items():
        solana_liar.lie = lie
        await scheduler.look()
        believed += [name] if became(buyer, tx) != [("signed", None)] else []

    solana_liar.be_honest()
    await scheduler.look()

    assert believed == []
    assert became(buyer, tx) == [("confirmed", None)]


async def test_a_history_that_does_not_go_back_far_enough_says_nothing(
    buyer: Agent, cluster: SolanaNode, mint: str, scheduler: Scheduling, solana_liar: LyingNode
) -> None:
    """Anybody may name the wallet in transactions of their own, as many as they like."""
    tx, _ = pay(buyer, cluster, mint)
    cluster.expire_blockhash()
    await scheduler.grow_old(tx, OLD_ENOUGH)
    strange = {"slot": 9, "err": None, "memo": "[2] hi", "blockTime": None, "confirmationStatus": "finalized"}
    full = [strange | {"signature": str(Keypair().sign_message(b"%d" % at))} for at in range(200)]
    solana_liar.lie = lambda method, _params, result: full if method == "getSignaturesForAddress" else result
    await scheduler.look()
    assert became(buyer, tx) == [("signed", None)]

    # One from long before the payment is behind it.
    full[-1] |= {"blockTime": 1_600_000_000}
    await scheduler.look()

    assert became(buyer, tx) == [("failed", "blockhash_expired")]
