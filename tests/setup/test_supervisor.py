"""Everything comes up, stays up, and goes down without leaving a process behind. Promise P9."""

import os
import signal
import socket
import stat
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from ops import places
from ops.runtime import PROJECT
from tests.fixtures.server import START_SECONDS, STOP_SECONDS, free_ports
from tests.outside.proc import children

pytestmark = pytest.mark.long

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="looks processes up in /proc")
COMMAND = [sys.executable, "-m", "tests.setup.stand_ins.supervise"]

PORTS = (
    "SERVICE_API_PORT",
    "SERVICE_PROXY_PORT",
    "SERVICE_METRICS_PORT_API",
    "SERVICE_METRICS_PORT_PROXY",
    "SERVICE_METRICS_PORT_SCHEDULER",
)


class Running:
    """A supervisor that is up, seen from outside."""

    def __init__(self, home: Path, ports: list[int], **more: str) -> None:
        self.home, self.ports, self.url = home, ports, f"http://127.0.0.1:{ports[0]}/ready"
        environment = {"PATH": os.defpath, "SERVICE_HOME": str(home)}
        environment |= {name: str(port) for name, port in zip(PORTS, ports, strict=True)} | more
        with (home.parent / "said").open("w") as said:
            self.process = subprocess.Popen(
                COMMAND, cwd=PROJECT, env=environment, stdout=subprocess.PIPE, stderr=said, text=True
            )
        assert self.process.stdout is not None
        if self.process.stdout.readline() != "up\n":
            self.process.terminate()
            self.process.communicate()
            pytest.fail((home.parent / "said").read_text())
        self.pids = self.children()

    def children(self) -> dict[str, int]:
        """The pid of each child, by its last word."""
        found = children(self.process.pid)
        return {"postgres" if "-D" in words else words[-1].rpartition(".")[2]: pid for pid, words in found.items()}

    def stop(self, number: signal.Signals) -> int:
        """Send a signal and return the exit status."""
        self.process.send_signal(number)
        return self.process.wait(STOP_SECONDS)


@pytest.fixture
def running(shared_folder: Path) -> Iterator[Running]:
    """A supervisor over stand-ins for signer, api and proxy; a closed checkout gets a closed state folder."""
    shared_folder.chmod(0o755 if places.readable(PROJECT) else 0o700)
    found = Running(shared_folder / "home", free_ports(len(PORTS)))
    yield found
    found.process.terminate()
    found.process.communicate(timeout=STOP_SECONDS)


def eventually(running: Running) -> None:
    """Return when the api answers again; fail when it takes too long."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            urllib.request.urlopen(running.url, timeout=START_SECONDS).close()
            return
        except OSError:
            assert time.monotonic() < deadline


@ON_LINUX
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_everything_and_leaves_no_process(running: Running, number: signal.Signals) -> None:
    assert set(running.pids) == {"signer", "api", "proxy", "postgres"}

    assert running.stop(number) == 0

    assert [pid for pid in running.pids.values() if Path(f"/proc/{pid}").exists()] == []


@ON_LINUX
def test_nothing_is_stopped_before_what_leans_on_it(running: Running) -> None:
    assert running.stop(signal.SIGTERM) == 0

    log = running.home / "log"
    assert (log / "api.log").read_text().splitlines()[-1] == "signer there: True"
    assert (log / "signer.log").read_text().splitlines()[-1] == "postgres there: True"


@ON_LINUX
def test_a_killed_child_comes_back(running: Running) -> None:
    os.kill(running.pids["api"], signal.SIGKILL)

    eventually(running)

    assert running.children()["api"] != running.pids["api"]
    assert running.children()["signer"] == running.pids["signer"]


@ON_LINUX
async def test_a_killed_database_comes_back(running: Running) -> None:
    os.kill(running.pids["postgres"], signal.SIGKILL)
    url = (running.home / "db" / "owner.url").read_text().strip()

    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            connection = await asyncpg.connect(url)
            break
        except (OSError, asyncpg.PostgresError):
            continue

    assert await connection.fetchval("SELECT 1") == 1
    await connection.close()


@ON_LINUX
def test_a_killed_supervisor_leaves_nothing_that_stops_the_next(running: Running) -> None:
    running.process.kill()
    running.process.communicate()

    again = Running(running.home, running.ports)

    assert again.stop(signal.SIGTERM) == 0
    again.process.communicate()


@ON_LINUX
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give processes uids of their own")
def test_root_gives_each_process_its_own_uid(running: Running) -> None:
    if not places.readable(PROJECT):
        pytest.skip("other users cannot enter this checkout")
    owners = {name: Path(f"/proc/{pid}").stat().st_uid for name, pid in running.pids.items()}

    assert owners == {name: places.UIDS[name] for name in ("postgres", "signer", "api", "proxy")}


@ON_LINUX
def test_it_is_up_when_the_proxy_takes_connections(running: Running) -> None:
    with socket.create_connection(("127.0.0.1", running.ports[1]), START_SECONDS) as connection:
        assert connection.recv(10) == b"only"


@ON_LINUX
def test_several_proxies_share_the_port_and_stop_together(open_folder: Path) -> None:
    if not places.readable(PROJECT):
        open_folder.chmod(0o700)
    several = Running(open_folder / "home", free_ports(len(PORTS)), SERVICE_PROXY_WORKERS="2")
    answered = set()
    deadline = time.monotonic() + START_SECONDS

    while answered != {b"0", b"1"} and time.monotonic() < deadline:
        with socket.create_connection(("127.0.0.1", several.ports[1]), START_SECONDS) as connection:
            answered.add(connection.recv(10))

    assert several.stop(signal.SIGTERM) == 0
    several.process.communicate()
    assert answered == {b"0", b"1"}


@ON_LINUX
def test_the_certificate_is_for_everybody_and_its_key_for_the_proxy(running: Running) -> None:
    certificate, key = running.home / "proxy-ca.pem", running.home / "proxy-ca.key"
    owner = Path(f"/proc/{running.pids['proxy']}").stat().st_uid

    assert stat.S_IMODE(certificate.stat().st_mode) == 0o644
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert key.stat().st_uid == owner


@ON_LINUX
def test_a_later_start_keeps_the_certificate(running: Running) -> None:
    before = (running.home / "proxy-ca.pem").read_bytes()
    running.stop(signal.SIGTERM)
    running.process.communicate()

    again = Running(running.home, running.ports)

    assert (running.home / "proxy-ca.pem").read_bytes() == before
    assert again.stop(signal.SIGTERM) == 0
    again.process.communicate()


def test_half_a_certificate_authority_stops_the_start(open_folder: Path) -> None:
    environment = {"PATH": os.defpath, "SERVICE_HOME": str(open_folder / "home")}
    environment |= {name: str(port) for name, port in zip(PORTS, free_ports(len(PORTS)), strict=True)}
    (open_folder / "home").mkdir(mode=0o700)
    (open_folder / "home" / "proxy-ca.pem").touch()

    refused = subprocess.run(COMMAND, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False)

    assert refused.returncode != 0
    assert "proxy-ca.key is missing: restore it, or remove" in refused.stderr


def test_a_second_supervisor_of_the_same_folder_is_refused(running: Running) -> None:
    environment = {"PATH": os.defpath, "SERVICE_HOME": str(running.home)}

    second = subprocess.run(COMMAND, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False)

    assert second.returncode != 0
    assert "already runs" in second.stderr


def test_a_second_supervisor_names_the_first(running: Running) -> None:
    environment = {"PATH": os.defpath, "SERVICE_HOME": str(running.home)}
    noted = running.home / "running.json"
    noted.write_text('{"pid": 4711, "api_url": "", "proxy_url": "", "chain_url": null}')

    second = subprocess.run(COMMAND, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False)

    noted.unlink()
    assert f"already runs in {running.home} (pid 4711)" in second.stderr


@pytest.mark.parametrize("name", PORTS[:3])
def test_a_taken_port_is_refused_by_the_name_of_its_variable(open_folder: Path, name: str) -> None:
    environment = {"PATH": os.defpath, "SERVICE_HOME": str(open_folder / "home")}
    environment |= {name: str(port) for name, port in zip(PORTS, free_ports(len(PORTS)), strict=True)}
    with socket.create_server(("127.0.0.1", 0)) as taken:
        environment[name] = str(taken.getsockname()[1])

        refused = subprocess.run(COMMAND, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False)

    assert refused.returncode != 0
    assert f"set {name} to another port" in refused.stderr


def test_an_address_for_metrics_that_this_machine_lacks_is_refused_by_the_name_of_its_variable(
    open_folder: Path,
) -> None:
    environment = {"PATH": os.defpath, "SERVICE_HOME": str(open_folder / "home"), "SERVICE_METRICS_HOST": "192.0.2.1"}
    environment |= {name: str(port) for name, port in zip(PORTS, free_ports(len(PORTS)), strict=True)}

    refused = subprocess.run(COMMAND, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False)

    assert refused.returncode != 0
    assert refused.stderr.count("; correct SERVICE_METRICS_HOST\n") == 3


def test_all_taken_ports_are_told_at_once(open_folder: Path) -> None:
    environment = {"PATH": os.defpath, "SERVICE_HOME": str(open_folder / "home")}
    environment |= {name: str(port) for name, port in zip(PORTS, free_ports(len(PORTS)), strict=True)}
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        ports = [taken.getsockname()[1] for taken in (one, other)]
        environment |= {name: str(port) for name, port in zip(PORTS[:2], ports, strict=True)}

        refused = subprocess.run(COMMAND, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False)

    for name, port in zip(PORTS[:2], ports, strict=True):
        assert f"127.0.0.1:{port} (Address already in use); set {name} to another port" in refused.stderr


def test_a_port_given_twice_is_refused(open_folder: Path) -> None:
    environment = {"PATH": os.defpath, "SERVICE_HOME": str(open_folder / "home")}
    environment |= {name: str(port) for name, port in zip(PORTS, free_ports(len(PORTS)), strict=True)}
    environment["SERVICE_PROXY_PORT"] = environment["SERVICE_API_PORT"]

    refused = subprocess.run(COMMAND, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False)

    assert "set SERVICE_PROXY_PORT to another port" in refused.stderr
