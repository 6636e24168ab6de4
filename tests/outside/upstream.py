"""An API behind the proxy: real HTTPS servers on loopback, good and bad, with a log of everything they received."""

import asyncio
import contextlib
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from tests.outside.certificates import NAMES, Authority
from tests.outside.http2_server import NAME as HTTP2
from tests.outside.http2_server import Http2Server
from tests.outside.paywall import Paywall
from tests.outside.processes import READY, running
from tests.outside.store import Store
from tests.outside.upstream_answers import ANSWERS
from tests.outside.upstream_server import Desk, Log, Server

# By name; the first is where requests should go, nothing may ever reach the second.
SERVERS = ("main", "wrong", "self-signed", "wrong-name", "expired", "plain", "mute", "store", "paywall")


class Heard(msgspec.Struct):
    """A request that reached an upstream."""

    server: str
    connection: int
    method: str
    target: str
    headers: list[tuple[str, str]]
    body: str = ""
    size: int = 0

    def all(self, name: str) -> list[str]:
        """Every value of a header."""
        return [value for known, value in self.headers if known.lower() == name.lower()]


class Upstream:
    """The servers of an upstream, what they heard, and what a test tells them while they answer."""

    def __init__(self, folder: Path, ports: dict[str, int]) -> None:
        self.ports = ports
        self.port = ports["main"]
        self.ca_file = folder / "ca.pem"
        self._log = folder / "log"
        self._from = 0
        self._control = socket.create_connection(("127.0.0.1", ports["control"]))
        self._said = self._control.makefile("rb")

    def forget(self) -> None:
        """From now on only what comes from now on."""
        self._from = self._log.stat().st_size

    def lines(self, kind: str) -> list[dict[str, Any]]:
        """Return the lines of a kind that were logged since the test began."""
        with self._log.open("rb") as file:
            file.seek(self._from)
            found = [msgspec.json.decode(line) for line in file if line.endswith(b"\n")]
        return [line for line in found if line["kind"] == kind or not kind]

    def raw(self) -> bytes:
        """The log since the test began, as it is."""
        with self._log.open("rb") as file:
            file.seek(self._from)
            return file.read()

    def requests(self) -> list[Heard]:
        """The requests that came since the test began, at whatever server."""
        found: list[Heard] = []
        for line in self.lines(""):
            if line["kind"] == "request":
                found.append(msgspec.convert({name: line[name] for name in Heard.__struct_fields__[:5]}, Heard))
            if line["kind"] == "body":
                place = line["server"], line["connection"]
                heard = next((one for one in reversed(found) if (one.server, one.connection) == place), None)
                # The end of a body that an earlier test began belongs to no request of this one.
                if heard is not None:
                    heard.body, heard.size = line["text"], line["size"]
        return found

    def connections(self, server: str = "main") -> int:
        """Count the connections that a server got since the test began; those that failed in TLS do not count."""
        return sum(line["server"] == server for line in self.lines("connection"))

    def release(self, gate: str) -> None:
        """Let whatever waits at this gate go on, once."""
        self._ask(f"release {gate}")

    def count_sent(self, name: str) -> int:
        """Count the bytes that went out under this name."""
        return self._ask(f"sent {name}")

    def close(self) -> None:
        """End the conversation."""
        self._said.close()
        self._control.close()

    def _ask(self, line: str) -> int:
        self._control.sendall(line.encode() + b"\n")
        return int(self._said.readline())


@contextmanager
def running_upstream() -> Iterator[Upstream]:
    """Start the servers in a process of their own."""
    with tempfile.TemporaryDirectory(prefix="cu-") as name:
        folder = Path(name)
        with running([sys.executable, "-m", "tests.outside.upstream", folder]):
            upstream = Upstream(folder, msgspec.json.decode((folder / "ports").read_bytes()))
            try:
                yield upstream
            finally:
                upstream.close()


async def _serve(folder: Path) -> None:
    authority, desk, log = Authority(folder), Desk(), Log(folder / "log")
    good = authority.leaf("good", *NAMES)
    certificates = {
        "main": good,
        "wrong": good,
        "store": good,
        "paywall": good,
        "plain": None,
        "mute": None,
        "self-signed": authority.leaf("self-signed", *NAMES, self_signed=True),
        "wrong-name": authority.leaf("wrong-name", "other.test"),
        "expired": authority.leaf("expired", *NAMES, age=timedelta(days=30)),
    }
    answers = {"store": Store(), "paywall": Paywall()}
    ports = {
        name: await Server(name, answers.get(name, ANSWERS), desk, log).open(certificates[name]) for name in SERVERS
    }
    ports[HTTP2] = await Http2Server(log).open(good)
    control = await asyncio.start_server(desk.serve, "127.0.0.1", 0)
    ports["control"] = control.sockets[0].getsockname()[1]
    (folder / "ports").write_bytes(msgspec.json.encode(ports))
    print(f"{READY}localhost:{ports['main']}", flush=True)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(Path(sys.argv[1])))
