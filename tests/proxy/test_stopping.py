"""Stopping lets what runs come to its end; dying is not the end."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from ops import places
from ops.runtime import PROJECT
from tests.fixtures.deployments import database_apart
from tests.fixtures.eventually import eventually
from tests.fixtures.proxied import Keyless, Proxy
from tests.fixtures.server import START_SECONDS, STOP_SECONDS, free_ports
from tests.outside import loopback
from tests.outside.proc import children
from tests.proxy.envelope import refusal

pytestmark = pytest.mark.long


def refuses(proxy: Proxy) -> bool:
    """Tell whether nobody listens any more."""
    try:
        socket.create_connection(("127.0.0.1", proxy.port), 1).close()
    except OSError:
        return True
    return False


def test_a_stream_ends_complete_while_nobody_new_comes_in(with_route: Keyless) -> None:
    gate = uuid.uuid4().hex
    with with_route.proxied.another_proxy() as proxy:
        idle = proxy.connect()
        assert idle.say(with_route.head("/up/echo")).hear().status == 200
        with proxy.connect() as wire:
            wire.say(with_route.head(f"/up/sse?n=3&gate={gate}"))
            assert wire.hear(head_only=True).status == 200

            proxy.process.send_signal(signal.SIGTERM)
            eventually(lambda: refuses(proxy))
            assert idle.closed
            with_route.upstream.release(gate)
            with_route.upstream.release(gate)
            rest = wire.hear_all()

        idle.socket.close()
        assert proxy.process.wait(STOP_SECONDS) == 0

    assert [line for line in rest.split(b"\n") if line.startswith(b"data")] == [b"data: 0", b"data: 1", b"data: 2"]
    assert rest.endswith(b"0\r\n\r\n")


def test_a_request_on_a_connection_that_is_to_end_is_the_last(with_route: Keyless) -> None:
    gate = uuid.uuid4().hex
    with with_route.proxied.another_proxy() as proxy, proxy.connect() as wire:
        wire.say(with_route.head(f"/up/deaf?gate={gate}"))
        eventually(with_route.upstream.requests)
        proxy.process.send_signal(signal.SIGTERM)
        eventually(lambda: refuses(proxy))
        with_route.upstream.release(gate)

        answer = wire.hear()
        assert refusal(answer) == (502, "upstream_failed")
        assert answer.all("connection") == ["close"]
        assert wire.closed


def test_while_it_drains_new_connections_are_served_and_told_to_go_elsewhere(with_route: Keyless) -> None:
    with with_route.proxied.another_proxy(SERVICE_PROXY_DRAIN_SECONDS="10") as proxy:
        kept = proxy.connect()
        assert kept.say(b"GET /ready HTTP/1.1\r\nHost: a\r\n\r\n").hear().status == 200
        assert kept.say(with_route.head("/up/echo")).hear().all("connection") == []
        proxy.process.send_signal(signal.SIGTERM)

        def readiness() -> tuple[int, str]:
            with proxy.connect() as probe:
                answer = probe.say(b"GET /ready HTTP/1.1\r\nHost: a\r\n\r\n").hear()
                return (answer.status, "") if answer.status == 200 else refusal(answer)

        assert eventually(readiness, (503, "leaving")) == (503, "leaving")
        with proxy.connect() as new:
            for wire in (new, kept):
                answer = wire.say(with_route.head("/up/echo")).hear()
                assert (answer.status, answer.all("connection")) == (200, ["close"])
                assert wire.closed
        kept.socket.close()
        eventually(lambda: refuses(proxy))
        assert proxy.process.wait(STOP_SECONDS) == 0


def test_recorded_requests_survive_stopping(with_route: Keyless) -> None:
    with with_route.proxied.another_proxy() as proxy:
        assert with_route.gateway(proxy=proxy).get("/echo").status_code == 200
        proxy.process.send_signal(signal.SIGTERM)
        assert proxy.process.wait(STOP_SECONDS) == 0

    assert with_route.proxied.faults() == []


@contextlib.contextmanager
def supervise(postgres_home: places.Home, worker_id: str) -> Iterator[tuple[int, Path, int]]:
    """The whole service as an operator starts it, on a database apart: the supervisor's pid, home, proxy port."""
    database = database_apart(postgres_home, f"{worker_id}_supervised")
    folder = Path(tempfile.mkdtemp(prefix="cs-"))
    folder.chmod(0o755)
    ports = free_ports(5)
    names = (
        "SERVICE_API_PORT",
        "SERVICE_PROXY_PORT",
        *(f"SERVICE_METRICS_PORT_{p}" for p in ("API", "PROXY", "SCHEDULER")),
    )
    environment = {
        "PATH": os.environ["PATH"],
        "SERVICE_HOME": str(folder / "home"),
        "SERVICE_DATABASE_URL": database.owner_url,
        "SERVICE_DEFAULT_CHAIN_ID": "31337",
        "SERVICE_RPC_URL_31337": "http://127.0.0.1:1",
        **{f"SERVICE_DATABASE_URL_{name.upper()}": url for name, url in database.urls.items()},
        **{name: str(port) for name, port in zip(names, ports, strict=True)},
    }
    with (folder / "said").open("w") as said:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "ops", "up", "--no-demo"],
            cwd=PROJECT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        )
    try:
        eventually(
            lambda: "Ready in" in (folder / "said").read_text() or process.poll() is not None, True, 2 * START_SECONDS
        )
        assert process.poll() is None, (folder / "said").read_text()
        yield process.pid, folder / "home", ports[1]
    finally:
        process.terminate()
        assert process.wait(STOP_SECONDS) == 0, (folder / "said").read_text()
        shutil.rmtree(folder)


@pytest.mark.skipif(sys.platform != "linux", reason="looks processes up in /proc")
def test_a_killed_proxy_is_started_again(postgres_home: places.Home, worker_id: str) -> None:
    with supervise(postgres_home, worker_id) as (supervisor, home, port):

        def pid() -> int | None:
            return next((one for one, words in children(supervisor).items() if "proxy_addon" in words), None)

        def status() -> int | None:
            try:
                return loopback.get(f"http://127.0.0.1:{port}/").status_code
            except httpx.TransportError:
                return None

        before = pid()
        assert status() == 401
        os.kill(before, signal.SIGKILL)

        assert eventually(lambda: status() if pid() not in (None, before) else None, 401, 2 * START_SECONDS) == 401
        assert (home / "proxy-ca.pem").exists()
