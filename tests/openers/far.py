"""Openers that ask somebody far away, under names that lead to this machine."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from tests.outside import elsewhere
from tests.outside.elsewhere import Surroundings
from tests.outside.openers import Opener, Said
from tests.outside.processes import PROJECT


class Far(Opener):
    """The opener of one kind with its settings, and where names lead. An empty setting is not set."""

    def __init__(
        self, kind: str, python: Path | str = sys.executable, surroundings: Surroundings | None = None, **settings: str
    ) -> None:
        super().__init__(kind, {"HOME": "/nonexistent", **settings}, python)
        self._surroundings = surroundings or Surroundings()
        self._resident: subprocess.Popen[bytes] | None = None

    def using(self, **settings: str) -> "Far":
        """The same one with other settings."""
        return Far(self.kind, self._python, self._surroundings, **self._settings | settings)

    def among(self, names: Mapping[str, int] | None = None, **bounds: float) -> "Far":
        """The same one where names lead elsewhere, or where `deadline` and `asking` wait for so many seconds alone."""
        known = self._surroundings.names if names is None else dict(names)
        shorter = {f"openers.{module}.SECONDS": seconds for module, seconds in bounds.items()}
        surroundings = Surroundings(known, self._surroundings.set | shorter)
        return Far(self.kind, self._python, surroundings, **self._settings)

    def run(self, words: list[str], given: bytes) -> Said:
        """Run it; as a program of its own, or by the one that stays."""
        if not self._resident:
            return self.run_module("openers", self.kind, *words, given=given)
        assert self._resident.stdin
        assert self._resident.stdout
        asked = elsewhere.Asked([self.kind, *words], given)
        self._resident.stdin.write(msgspec.json.encode(asked) + b"\n")
        self._resident.stdin.flush()
        return msgspec.json.decode(self._resident.stdout.readline(), type=Said)

    def run_module(self, module: str, *words: str, given: bytes = b"") -> Said:
        """Run another program in its place."""
        command, environment = self._how(module, *words)
        ended = subprocess.run(
            command, cwd="/", env=environment, input=given, capture_output=True, timeout=120, check=False
        )
        return Said(ended.returncode, ended.stdout, ended.stderr.decode())

    @contextlib.contextmanager
    def resident(self) -> Iterator["Far"]:
        """The same one by a program that is started once, for many questions."""
        command, environment = self._how()
        made = self.using()
        with subprocess.Popen(
            command, cwd="/", env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as made._resident:
            yield made
            assert made._resident.stdin
            made._resident.stdin.close()

    def _how(self, *words: str) -> tuple[list[str | bytes], dict[str, str]]:
        settings = {name: value for name, value in self._settings.items() if value}
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT), **settings}
        surroundings = msgspec.json.encode(self._surroundings)
        return [self._python, "-P", "-m", "tests.outside.elsewhere", surroundings, *words], environment
