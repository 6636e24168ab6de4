"""A real Valkey or Redis that a test can stop, start again, and hold still."""

import os
import secrets
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from valkey import Valkey
from valkey.exceptions import ConnectionError as NotConnected
from valkey.exceptions import TimeoutError as TooSlow

from tests.fixtures.eventually import eventually
from tests.outside.processes import die_with
from tests.outside.programs import KEY_VALUE_STORE, install

# Below the ports that the kernel gives to outgoing connections, so a stopped server's port stays its own.
_PORTS = range(20_000, 32_000)
_STARTS_WITHIN = 10


class PortTaken(RuntimeError):
    """Somebody else listens there."""


class RedisServer:
    """One server in memory only; what it kept is gone when it stops."""

    def __init__(self, program: Path, folder: Path, port: int) -> None:
        self.port = port
        self.url = f"redis://127.0.0.1:{port}/0"
        self._log = folder / "log"
        self._command = [
            str(program),
            "--bind",
            "127.0.0.1",
            "--port",
            str(port),
            "--save",
            "",
            "--appendonly",
            "no",
            "--dir",
            str(folder),
            "--logfile",
            str(self._log),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, empty, and wait until it answers."""
        process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            preexec_fn=die_with(os.getpid()),  # noqa: PLW1509
        )
        self._process = process
        # A stranger on this port may answer too, but then ours ends.
        eventually(lambda: process.poll() is not None or self._answers(), seconds=_STARTS_WITHIN)
        if process.poll() is not None:
            self.stop()
            raise PortTaken(self._log.read_text()[-500:])

    def stop(self) -> None:
        """End it at once; connections break. Stopping twice is harmless."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def hold(self) -> None:
        """It keeps its connections, takes new ones, and answers none until it is let go."""
        assert self._process
        self._process.send_signal(signal.SIGSTOP)

    def let_go(self) -> None:
        """Answer again, also what was asked meanwhile."""
        assert self._process
        self._process.send_signal(signal.SIGCONT)

    def keys(self) -> list[str]:
        """Return its keys, by name."""
        with Valkey(port=self.port, decode_responses=True) as client:
            return sorted(client.keys())

    def flush(self) -> None:
        """Forget everything."""
        with Valkey(port=self.port) as client:
            client.flushall()

    def _answers(self) -> bool:
        try:
            with Valkey(port=self.port, socket_timeout=1) as client:
                return bool(client.ping())
        except (NotConnected, TooSlow):
            return False


@contextmanager
def running_redis() -> Iterator[RedisServer]:
    """Start one on a port of its own."""
    program = install(KEY_VALUE_STORE)
    with tempfile.TemporaryDirectory(prefix="cr-") as folder:
        server = _start(program, Path(folder))
        try:
            yield server
        finally:
            server.stop()


def _start(program: Path, folder: Path) -> RedisServer:
    for _ in range(20):
        server = RedisServer(program, folder, secrets.choice(_PORTS))
        try:
            server.start()
        except PortTaken:
            continue
        return server
    raise RuntimeError(f"{program} does not start: {(folder / 'log').read_text()[-500:]}")
