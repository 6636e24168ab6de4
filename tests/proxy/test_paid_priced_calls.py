"""A call that has a price and that the proxy pays for: the agent's dollars are charged what it pays, once."""

import shutil
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from ops import places
from proxy_addon.charging import CHARGE_SECONDS, Charge
from tests.fixtures.callers import rule
from tests.fixtures.deployments import database_apart, owner_of
from tests.fixtures.eventually import soon
from tests.fixtures.proxied import Keyless, Proxied, new_keyless
from tests.outside.upstream import Upstream
from tests.proxy.paying import code, demands, offer, pay_for
from tests.routes.orders import CHAIN, TOKEN_CONTRACT

COST, PAID = 3, 60


@pytest.fixture(scope="module")
def priced_world(
    postgres_home: places.Home, worker_id: str, upstream: Upstream, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Proxied]:
    folder = tmp_path_factory.mktemp("priced")
    tokens = f'[{{address = "{TOKEN_CONTRACT}", symbol = "USDX", decimals = 6}}]'
    (folder / "chains.toml").write_text(f"[[chains]]\nid = {CHAIN}\ntokens = {tokens}\n")
    (folder / "prices.toml").write_text(f'"evm:{CHAIN}:{TOKEN_CONTRACT}" = "1"\n')
    settings = {f"SERVICE_{name.upper()}_FILE": str(folder / f"{name}.toml") for name in ("chains", "prices")}
    running = Proxied(database_apart(postgres_home, f"{worker_id}_paidcalls"), upstream, **settings)
    try:
        running.start("signer", "identity", "api", "proxy")
        yield running
    finally:
        running.stop()
        shutil.rmtree(running.home)


@pytest.fixture
def paying(priced_world: Proxied) -> Iterator[Keyless]:
    """An agent with 200 millionths of a dollar a day, whose calls cost three and are paid for up to a hundred."""
    priced_world.upstream.forget()
    with new_keyless(priced_world) as made:
        made.tenant.ok(
            "PUT", f"/agents/{made.agent.id}/policies", [rule("spending-limit", maxPerDay="200", asset="usd")]
        )
        made.route("paywall", secretId=None, injectAs="none", injectKey="", injectFormat="{value}", costMicroUsd=COST)
        pay_for(made)
        yield made


async def spending(keyless: Keyless) -> int:
    async with owner_of(keyless.proxied.database) as owner:
        found = await owner.fetchval(
            "SELECT sum(amount) FROM spend WHERE tenant_id = $1 AND asset = 'usd'", keyless.tenant.id
        )
    return int(found or 0)


async def test_a_paid_call_is_charged_what_it_pays_and_any_other_its_price(paying: Keyless) -> None:
    client = paying.gateway("paywall")

    assert client.get("/", params=demands()).status_code == 200
    assert await spending(paying) == PAID
    assert client.get("/", params=demands("free")).status_code == 200
    assert await spending(paying) == PAID + COST
    # Not acceptable, and refused by the route: the call left, and nothing was paid.
    assert code(client.get("/", params=demands("", offer(network="eip155:1")))) == (402, None)
    assert code(client.get("/", params=demands("", offer(amount="101")))) == (403, "payment_refused")
    assert await spending(paying) == PAID + 3 * COST
    # While both count the payment has to fit beside its call's price: 69 + 3 + 60 does, and no third one.
    assert client.get("/", params=demands()).status_code == 200
    assert code(client.get("/", params=demands("", offer(amount="70")))) == (403, "payment_refused")
    assert await spending(paying) == 2 * PAID + 4 * COST


async def test_a_proxy_that_dies_with_a_payment_leaves_no_less_than_is_owed(paying: Keyless) -> None:
    proxied, key = paying.proxied, {"Idempotency-Key": "purchase-0001"}
    with proxied.another_proxy(ends=-signal.SIGKILL) as other, ThreadPoolExecutor(1) as caller:
        under_way = caller.submit(paying.gateway("paywall", other, **key).get, "/", params=demands("hold"))
        assert await soon(lambda: len(paying.upstream.lines("paid")), 1) == 1
        other.process.kill()
        with pytest.raises(httpx.TransportError):
            under_way.result()
    paying.upstream.release("paywall")
    assert await spending(paying) == PAID

    # The repetition carries the same payment, and is a call that leaves.
    paying.upstream.release("paywall")
    answer = paying.gateway("paywall", **key).get("/", params=demands("hold"))

    assert code(answer) == (402, "payment_not_accepted")
    assert await spending(paying) == PAID + COST


def test_a_payment_that_took_long_has_nothing_charged_again() -> None:
    charge = Charge("route", None)  # type: ignore[arg-type]
    charge.note("call", COST, time.monotonic() - CHARGE_SECONDS - 1)
    assert not charge.is_fresh

    charge.cover()

    assert charge.is_fresh
    assert charge.micro_usd == COST
