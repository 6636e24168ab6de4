"""A command that goes on until it is stopped, and what it prints meanwhile."""

import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import msgspec

from tests.fixtures.tenant_commands import PATIENCE_SECONDS, Desk


class Running:
    """One such command."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.said: list[str] = []
        self.complained: list[str] = []
        self._readers = [
            threading.Thread(target=_read, args=(process.stdout, self.said)),
            threading.Thread(target=_read, args=(process.stderr, self.complained)),
        ]
        for reader in self._readers:
            reader.start()

    def __repr__(self) -> str:
        return f"Running({self.said}, {self.complained})"

    @property
    def json(self) -> list[Any]:
        """The lines that it printed, as data."""
        return [msgspec.json.decode(line) for line in list(self.said)]

    def ends(self) -> int:
        """Wait for its end; the exit status."""
        status = self.process.wait(PATIENCE_SECONDS)
        for reader in self._readers:
            reader.join()
        return status

    def stop(self) -> int:
        """Press Control-C; the exit status."""
        self.process.send_signal(signal.SIGINT)
        return self.ends()


def _read(pipe: IO[str], lines: list[str]) -> None:
    for line in pipe:
        lines.append(line.rstrip("\n"))


@contextmanager
def running(desk: Desk, *words: str) -> Iterator[Running]:
    """Start a command that goes on; whatever is left of it ends with the test."""
    with subprocess.Popen(
        desk.command(*words),
        cwd=desk.home,
        env=desk.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        started = Running(process)
        try:
            yield started
        finally:
            if process.poll() is None:
                process.kill()
            started.ends()
