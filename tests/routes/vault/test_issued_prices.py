"""Prices that an endpoint issues, over the whole service: fetched, believed for their signature, too old at last."""

import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

from custody.kit.outside import Fetcher, Outside
from custody.protocol.client import SignerClient
from custody.protocol.workers import Workers
from ops import places
from ops.doctor_prices import prices as look_at_prices
from ops.settings import load
from scheduler.prices.fetch import PriceFetches
from tests.fixtures.callers import ADDRESS, Agent, Tenant, new_tenant, rule
from tests.fixtures.deployments import database_apart, deploy
from tests.fixtures.eventually import eventually
from tests.fixtures.issued_prices import HEADER, Issuer
from tests.fixtures.server import Service
from tests.outside import loopback, replies
from tests.outside.replies import Reply
from tests.outside.web_server import WebServer, serving

# A wei comes to a millionth of a dollar.
WEI = str(10**12)
AGE = 1800
# Each test begins where no price ever came.
_DATABASES = count()


class Endpoint(WebServer):
    """The operator's endpoint, and who signs what it says."""

    def __init__(self) -> None:
        super().__init__()
        self.issuer = Issuer()

    def document(self, *, wei: str = WEI, seconds_ago: float = 0, by: Issuer | None = None) -> Reply:
        """Issue this price of ether."""
        body, signature = (by or self.issuer).issue(int(time.time() - seconds_ago), evm_1_native=wei)
        return Reply(200, body, {"content-type": "application/json", HEADER: signature})

    def says(self, path: str = "/prices", **said: Any) -> Reply:
        """From now on give this document, the same each time."""
        reply = self.document(**said)
        self.replies(path, reply)
        return reply


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with serving(Endpoint()) as server:
        yield server


@pytest.fixture
def deployment(postgres_home: places.Home, worker_id: str, endpoint: Endpoint, tmp_path: Path) -> Iterator[Service]:
    settings = {
        "SERVICE_PRICES_URL": f"{endpoint.url}/prices",
        "SERVICE_PRICES_KEY_FILE": endpoint.issuer.write(tmp_path / "prices.pem"),
        "SERVICE_PRICES_MAX_AGE_SECONDS": str(AGE),
    }
    database = database_apart(postgres_home, f"{worker_id}_issued{next(_DATABASES)}")
    with deploy(database, "signer", "identity", "api", "scheduler", **settings) as service:
        yield service


@pytest.fixture
def payers(deployment: Service) -> Iterator[Tenant]:
    with new_tenant(deployment) as tenant:
        yield tenant


def poor(tenant: Tenant) -> Agent:
    """An agent with ten millionths of a dollar a day."""
    return tenant.agent(rule("spending-limit", maxPerDay="10", asset="usd"))


def pay(agent: Agent, wei: int) -> int:
    return agent.sign(to=ADDRESS, value=wei, chainId=1).status_code


def ready_says(service: Service) -> dict[str, Any]:
    found: dict[str, Any] = loopback.get(f"{service.url}/ready").json()["data"]["checks"]["prices"]
    return found


def spend_of(agent: Agent) -> str:
    page = agent.ok("GET", f"/dashboard/{agent.id}")
    return next(one["today"] for one in page["spend"]["assets"] if one["asset"] == "usd")


async def test_prices_come_by_http_count_and_grow_old(deployment: Service, payers: Tenant, endpoint: Endpoint) -> None:
    agent = poor(payers)
    assert (pay(agent, 1), ready_says(deployment)) == (202, {"old": True, "issuedAt": None})
    look = load({"SERVICE_HOME": str(deployment.home)})
    assert "none came yet" in (await look_at_prices(look)).found

    # For some seconds they are young enough, and then nothing new comes.
    endpoint.replies("/prices", lambda _: endpoint.document(seconds_ago=AGE - 8))
    eventually(lambda: ready_says(deployment)["old"], wanted=False)
    assert pay(agent, 1) == 200
    endpoint.replies("/prices", Reply(503))
    eventually(lambda: ready_says(deployment)["old"])
    assert pay(agent, 1) == 202
    assert "a person decides" in (await look_at_prices(look)).found
    figures = f"http://127.0.0.1:{deployment.metrics_port}/metrics"
    eventually(lambda: "\ncustody_prices_old 1.0\n" in loopback.get(figures).text)

    endpoint.says()
    eventually(lambda: ready_says(deployment)["old"], wanted=False)
    assert [pay(agent, wei) for wei in (4, 6, 4)] == [200, 403, 200]
    assert (await look_at_prices(look)).cure is None

    # Dearer from now on; what was charged stays.
    endpoint.says(wei=str(3 * 10**12))
    eventually(lambda: pay(poor(payers), 4), wanted=403)
    other = poor(payers)
    assert [pay(agent, 1), pay(other, 3)] == [403, 200]
    assert (spend_of(agent), spend_of(other)) == ("9", "9")

    # The signer keeps the newest, and takes nothing older after a restart.
    endpoint.says(seconds_ago=60)
    deployment.kill("signer")
    deployment.start("signer")
    asked = len(endpoint.at("/prices"))
    eventually(lambda: len(endpoint.at("/prices")) > asked + 1)
    assert pay(poor(payers), 4) == 403


HOW = ("signature", "none", "older", "half", "large", "drip", "redirect", "packed", "error")


async def test_nothing_that_an_endpoint_or_the_way_to_it_does_is_believed(
    deployment: Service, endpoint: Endpoint
) -> None:
    good = endpoint.says("/good")
    assert isinstance(good.body, bytes)
    signed, headers = good.body, good.headers
    endpoint.says("/signature", by=Issuer())
    endpoint.replies("/none", Reply(200, signed))
    endpoint.says("/older", wei="1", seconds_ago=30)
    # Signed whole, and cut on its way.
    endpoint.replies("/half", Reply(200, [signed[:-9]], headers))
    endpoint.replies("/large", Reply(200, b" " * 10_000_000, headers))
    endpoint.replies("/drip", msgspec.structs.replace(replies.drip(), headers=headers))
    endpoint.replies("/redirect", replies.redirect(f"{endpoint.url}/good"))
    endpoint.replies(
        "/packed", msgspec.structs.replace(replies.zip_bomb(), headers=replies.zip_bomb().headers | headers)
    )
    endpoint.replies("/error", Reply(500, signed, headers))

    problems = {how: await ask(deployment, f"{endpoint.url}/{how}") for how in ("good", *HOW)}

    assert problems == {
        "good": None,
        "signature": "signature",
        "none": "signature",
        "older": "not_newer",
        "half": "signature",
        "large": "too_large",
        "drip": "timeout",
        "redirect": "redirect",
        "packed": "encoded",
        "error": "status",
    }
    assert ready_says(deployment)["old"] is False


async def ask(service: Service, url: str) -> str | None:
    """Fetch once, as the scheduler does, and hand it to this signer; why it was not taken."""
    way = Outside(loopback_allowed=True, answer_seconds=4.0)
    signer = SignerClient(str(service.socket), "scheduler")
    try:
        return await PriceFetches(url, Fetcher(way)).ask(Workers(signer, signer), url)
    finally:
        await signer.close()
