"""Processes that die at each step of a paid call: nothing is paid twice, and the key finds what was paid.

What dies after a charge and before its call is in test_priced_calls.py, and before the commit in test_payments.py.
"""

import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import httpx
import pytest

from tests.fixtures.deployments import owner_of
from tests.fixtures.eventually import eventually, soon
from tests.fixtures.proxied import Keyless, Proxy
from tests.proxy.paying import code, demands, payments_at, spending

KEY = {"Idempotency-Key": "purchase-of-one-that-dies"}


@contextmanager
def doomed_proxy(paying: Keyless) -> Iterator[Proxy]:
    """A proxy that is killed before this ends."""
    with paying.proxied.another_proxy(ends=-signal.SIGKILL) as other:
        yield other


@asynccontextmanager
async def held_write(paying: Keyless) -> Any:
    """Orders of the agent are judged meanwhile, and wait at their write."""
    async with owner_of(paying.proxied.database) as owner, owner.transaction():
        await owner.execute("SELECT FROM agents WHERE id = $1 FOR UPDATE", paying.agent.id)
        yield


async def waiting_writes(paying: Keyless) -> int:
    """Count the writes that wait for a row."""
    async with owner_of(paying.proxied.database) as owner:
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%sign_write%'"
        return int(await owner.fetchval(waiting))


def call(paying: Keyless, how: str, caller: ThreadPoolExecutor, proxy: Proxy | None = None) -> Future[httpx.Response]:
    """Begin a call under the key."""
    return caller.submit(paying.gateway("paywall", proxy=proxy, **KEY).get, "/", params=demands(how))


async def test_a_proxy_that_dies_at_the_commit_leaves_a_payment_that_the_key_sends(paying: Keyless) -> None:
    with ThreadPoolExecutor(1) as caller:
        with doomed_proxy(paying) as other:
            async with held_write(paying):
                lost = call(paying, "", caller, other)
                assert await soon(lambda: waiting_writes(paying), 1)
                other.process.kill()
                other.process.wait()
            with pytest.raises(httpx.TransportError):
                lost.result()
        assert await soon(lambda: spending(paying), 60) == 60
        assert payments_at(paying) == []

        again = call(paying, "", caller).result()

    assert again.status_code == 200
    assert (len(payments_at(paying)), spending(paying)) == (1, 60)


@pytest.mark.long
async def test_a_signer_that_dies_at_the_commit_pays_once(paying: Keyless) -> None:
    proxied = paying.proxied
    with ThreadPoolExecutor(1) as caller:
        async with held_write(paying):
            first = call(paying, "", caller)
            assert await soon(lambda: waiting_writes(paying), 1)
            proxied.kill("signer")
        proxied.start("signer")
        # The proxy asks again by itself, as far as it waits for a signer.
        answers = [first.result(), call(paying, "", caller).result()]

    assert 200 in [answer.status_code for answer in answers], [code(answer) for answer in answers]
    sent = payments_at(paying)
    assert all(payment == sent[0] for payment in sent)
    assert spending(paying) == 60


@pytest.mark.long
async def test_a_proxy_that_dies_during_the_answer_has_paid_once(paying: Keyless) -> None:
    with (
        doomed_proxy(paying) as other,
        paying.gateway("paywall", proxy=other, **KEY).stream("GET", "/", params=demands("halt")) as answer,
    ):
        pieces = answer.iter_raw()
        assert next(pieces) == b"data: 0\n\n"
        other.process.kill()
        with pytest.raises(httpx.TransportError):
            next(pieces)
    paying.upstream.release("halt")

    again = paying.gateway("paywall", **KEY).get("/", params=demands("halt"))

    assert again.text == "data: 0\n\ndata: 1\n\ndata: 2\n\n"
    one, two = payments_at(paying)
    assert (one == two, spending(paying)) == (True, 60)


@pytest.mark.long
def test_a_proxy_that_dies_before_the_demand_is_read_has_paid_nothing(paying: Keyless) -> None:
    with ThreadPoolExecutor(1) as caller, doomed_proxy(paying) as other:
        lost = call(paying, "slow-demand", caller, other)
        assert eventually(lambda: len(paying.upstream.requests()), 1) == 1
        other.process.kill()
        with pytest.raises(httpx.TransportError):
            lost.result()
    paying.upstream.release("slow-demand")

    assert (payments_at(paying), spending(paying)) == ([], 0)
    # And under the same key the purchase is still to be made.
    assert paying.gateway("paywall", **KEY).get("/", params=demands()).status_code == 200
    assert (len(payments_at(paying)), spending(paying)) == (1, 60)
