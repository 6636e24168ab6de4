"""Processes that die between the commit and the node, and real schedulers that go on. Promise P9."""

import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import asyncpg
import httpx
import pytest

from tests.fixtures.callers import Agent
from tests.fixtures.server import Service
from tests.outside.evm_node import EvmNode
from tests.outside.lying_node import LyingNode
from tests.tx_tracking.scheduling import Scheduling, became

pytestmark = pytest.mark.long

SECONDS = 60
DEPTH = 3


@pytest.fixture
def dying(following: Service) -> Iterator[Service]:
    """The deployment, in which a test may start a scheduler process and kill whatever it likes."""
    yield following
    if "scheduler" in following.processes:
        following.kill("scheduler")


def sign_and_die(service: Service, payer: Agent, node: LyingNode) -> str:
    """The api is killed with the bytes in its hand: signed and recorded, and no node has them."""
    node.stalls_on = "eth_sendRawTransaction"

    def ask() -> None:
        with suppress(httpx.HTTPError):
            payer.sign(broadcast=True)

    asking = threading.Thread(target=ask)
    asking.start()
    assert node.stalled.wait(SECONDS), "nothing was sent"
    service.kill("api")
    asking.join()
    node.swallows, node.stalls_on = {"eth_sendRawTransaction"}, ""
    node.go_on.set()
    service.start("api")
    [tx] = payer.ok("GET", f"/vault/{payer.id}/history")
    assert (tx["status"], tx["broadcastAt"]) == ("signed", None)
    node.be_honest()
    return str(tx["id"])


async def test_a_killed_api_leaves_bytes_that_the_scheduler_sends_and_follows_to_the_end(
    dying: Service, payer: Agent, evm_liar: LyingNode, chain: EvmNode, scheduler: Scheduling
) -> None:
    tx = sign_and_die(dying, payer, evm_liar)
    assert chain.rpc("eth_getTransactionCount", payer.evm_address, "latest") == "0x0"

    await scheduler.make_due()
    dying.start("scheduler")
    await until(payer, tx, "broadcast")
    dying.kill("scheduler")
    chain.mine(DEPTH)
    dying.start("scheduler")
    await scheduler.make_due()
    await until(payer, tx, "confirmed")

    assert chain.rpc("eth_getTransactionCount", payer.evm_address, "latest") == "0x1"


async def test_bytes_that_were_sent_although_nobody_could_say_so_are_found(
    payer: Agent, evm_liar: LyingNode, chain: EvmNode, scheduler: Scheduling, owner: asyncpg.Connection
) -> None:
    tx = payer.sign(broadcast=True).json()["data"]["txId"]
    # As a process leaves it that dies between the node's answer and its own word.
    await owner.execute(
        "UPDATE transactions SET status = 'signed', broadcast_at = NULL, resend_at = now(), look_at = NULL "
        "WHERE id = $1",
        tx,
    )
    evm_liar.status = 503
    assert await scheduler.send() == 0
    evm_liar.status = 200

    await scheduler.look()
    assert became(payer, tx) == [("broadcast", None)]
    chain.mine(DEPTH)
    await scheduler.look()

    assert became(payer, tx) == [("confirmed", None)]


async def until(payer: Agent, tx: str, status: str) -> None:
    """The requests themselves are the waiting."""
    deadline = time.monotonic() + SECONDS
    while became(payer, tx)[0][0] != status:
        assert time.monotonic() < deadline, became(payer, tx)
