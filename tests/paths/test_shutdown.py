"""A process that is told to stop takes nothing new and finishes what it took: nothing acknowledged is lost. Promise P9.

Each promise has its control beside it: the same moment with a kill, which lets nothing finish. The proxy's is in
tests/proxy/test_stopping.py.
"""

import contextlib
import itertools
import os
import signal
import socket
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import asyncpg
import httpx
import pytest

from custody.protocol.frames import VERSION
from ops import places
from tests.fixtures.callers import ADDRESS, Agent, new_tenant
from tests.fixtures.deployments import database_apart, deploy, owner_of, partner_of
from tests.fixtures.eventually import eventually
from tests.fixtures.postgres import Database
from tests.fixtures.server import STOP_SECONDS, Service
from tests.fixtures.signer_socket import Wire, greet, outcome_of
from tests.outside import loopback
from tests.outside.bad_node import BadNode, running_bad_node
from tests.paths.test_node_away_and_back import WORKING

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def apart(postgres_home: places.Home, worker_id: str) -> Database:
    """Rows that no other scheduler touches."""
    return database_apart(postgres_home, f"stopping_{worker_id}")


@pytest.fixture(scope="module")
def node() -> Iterator[BadNode]:
    """A node that keeps silent while a test wants it to."""
    with running_bad_node() as running:
        running.results = dict(WORKING)
        yield running


@pytest.fixture(scope="module")
def deployment(apart: Database, node: BadNode) -> Iterator[Service]:
    """A deployment of this file's own, because its processes are stopped."""
    with deploy(apart, SERVICE_RPC_URL_31337=f"http://{node.address}") as service:
        yield service


@pytest.fixture
def running(deployment: Service, node: BadNode) -> Iterator[Service]:
    """The same, with what an earlier test stopped running again."""
    for name in ("signer", "api"):
        if name not in deployment.processes:
            deployment.start(name)
    node.results = dict(WORKING)
    node.heard.clear()
    yield deployment
    node.silent.set()


@pytest.fixture
def lingering(running: Service, node: BadNode) -> Iterator[Service]:
    """Another api and signer beside it, which say that they stop for long enough that a busy machine hears it."""
    rest = {"SERVICE_RPC_URL_31337": f"http://{node.address}", "SERVICE_API_DRAIN_SECONDS": "10"}
    with partner_of(running, **rest) as service:
        yield service


@pytest.fixture
def payer(running: Service) -> Iterator[Agent]:
    """An agent without rules."""
    with new_tenant(running) as tenant:
        yield tenant.agent()


def refuses(service: Service) -> bool:
    """Tell whether nobody listens at the api's port any more."""
    try:
        socket.create_connection(("127.0.0.1", service.port), 1).close()
    except OSError:
        return True
    return False


def ready(service: Service) -> Any:
    """Return the answer of /ready, or None where nobody answers."""
    try:
        answer = loopback.get(f"{service.url}/ready")
    except httpx.HTTPError:
        return None
    return answer.status_code, answer.json()["data"]["checks"]


def last_words(wire: Wire) -> Any:
    """The outcome of the next reply; None once the signer is gone."""
    try:
        reply = wire.hear()
    except ConnectionError:
        return None
    return None if reply is None else outcome_of(reply)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_a_request_under_way_is_answered_by_an_api_that_stops(
    lingering: Service, node: BadNode, how: signal.Signals
) -> None:
    process = lingering.processes["api"]
    node.silent.clear()
    with new_tenant(lingering) as tenant, ThreadPoolExecutor(1) as threads:
        asked = threads.submit(tenant.agent().sign, broadcast=True)
        eventually(lambda: node.heard)

        process.send_signal(how)
        if how == signal.SIGTERM:
            eventually(lambda: ready(lingering), (503, {"stopping": {"ok": False}}))
        eventually(lambda: refuses(lingering))
        node.silent.set()
        try:
            answer: httpx.Response | None = asked.result()
        except httpx.HTTPError:
            answer = None

    lingering.processes.pop("api")
    if how == signal.SIGKILL:
        assert answer is None
        assert process.wait(STOP_SECONDS) == -signal.SIGKILL
    else:
        assert answer is not None
        # A machine that is slow to stop may let the node's time pass: told so, the caller has an answer as well.
        assert "txId" in answer.text or answer.json()["data"]["code"] == "rpc_unavailable"
        assert process.wait(STOP_SECONDS) == 0


async def test_an_api_whose_database_says_nothing_still_stops(running: Service, payer: Agent, apart: Database) -> None:
    # Something was counted that is not written yet, or not to its end.
    assert payer.sign(key=uuid.uuid4().hex).status_code == 200
    async with owner_of(apart) as owner:
        query = "SELECT pid FROM pg_stat_activity WHERE usename = 'custody_api' AND datname = current_database()"
        serving = [row["pid"] for row in await owner.fetch(query)]
    assert serving
    for pid in serving:
        os.kill(pid, signal.SIGSTOP)
    try:
        process = running.processes.pop("api")
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_SECONDS) == 0
    finally:
        for pid in serving:
            os.kill(pid, signal.SIGCONT)
    assert "were in use at the end and were cut" in running.logs()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
async def test_a_signer_that_stops_answers_everything_that_it_signed(
    running: Service, payer: Agent, apart: Database, how: signal.Signals
) -> None:
    token, process = str(payer.headers["Authorization"]).split()[1], running.processes.pop("signer")

    def ask_without_end(wire: Wire) -> None:
        with contextlib.suppress(OSError):
            for number in itertools.count():
                order = {
                    "to": ADDRESS,
                    "value": "1",
                    "nonce": number,
                    "gasLimit": "21000",
                    "maxFeePerGas": "1000000000",
                    "broadcast": False,
                    "chainId": 31337,
                }
                wire.say(
                    {
                        "v": VERSION,
                        "n": number,
                        "deadline_ms": 9000,
                        "origin": {"request_id": "test"},
                        "proof": {"kind": "agent", "value": token},
                        "body": {
                            "type": "SignOrder",
                            "tx_id": str(uuid.uuid4()),
                            "agent": payer.id,
                            "question": {"kind": "evm", "request": order},
                        },
                    }
                )

    with greet(running) as wire, ThreadPoolExecutor(1) as threads:
        asking = threads.submit(ask_without_end, wire)
        answered = [outcome_of(wire.hear()) for _ in range(10)]
        process.send_signal(how)
        while (outcome := last_words(wire)) is not None:
            answered.append(outcome)
        wire.shutdown(socket.SHUT_RDWR)
        asking.result()
    ended = process.wait(STOP_SECONDS)

    owner = await asyncpg.connect(apart.owner_url)
    rows = await owner.fetch("SELECT id FROM transactions WHERE agent_id = $1 AND signature IS NOT NULL", payer.id)
    await owner.close()
    signed, told = {str(row["id"]) for row in rows}, {outcome["tx_id"] for outcome in answered if "tx_id" in outcome}
    assert told <= signed
    if how == signal.SIGTERM:
        assert ended == 0, running.logs()
        assert signed == told


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
async def test_a_scheduler_that_stops_finishes_the_job_that_runs(
    running: Service, node: BadNode, payer: Agent, apart: Database, how: signal.Signals
) -> None:
    # Signed, and no node took it: the scheduler is to send it again.
    assert payer.sign(broadcast=True).status_code == 502
    owner = await asyncpg.connect(apart.owner_url)
    await owner.execute("UPDATE transactions SET resend_at = service_now(), look_at = NULL WHERE status = 'signed'")
    node.results["eth_sendRawTransaction"] = "0x" + "11" * 32
    node.heard.clear()
    node.silent.clear()
    running.start("scheduler")
    process = running.processes.pop("scheduler")
    eventually(lambda: node.heard)

    process.send_signal(how)
    if how == signal.SIGKILL:
        process.wait()
    node.silent.set()

    assert process.wait(STOP_SECONDS) == (0 if how == signal.SIGTERM else -signal.SIGKILL), running.logs()
    statuses = [
        row["status"] for row in await owner.fetch("SELECT status FROM transactions WHERE agent_id = $1", payer.id)
    ]
    await owner.close()
    assert statuses == ["broadcast" if how == signal.SIGTERM else "signed"]
