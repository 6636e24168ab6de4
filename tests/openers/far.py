"""Openers that ask somebody far away: run with the packages of openers, and with names that lead to this machine."""

import fcntl
import os
import resource
import subprocess
import sys
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path

import msgspec

from custody.kit.key_head import Holder, write_head
from tests.outside.elsewhere import Surroundings
from tests.outside.processes import PROJECT

FILE, ANOTHER_FILE = "5089efbf191005cb", "5089efbf191005cc"
KEY = bytes(range(100, 132))
AWAY, REFUSED, NOT_OURS, BAD_SETTINGS = 75, 77, 65, 78
_PYTHON = PROJECT / ".venv-openers" / "bin" / "python"
_LONGEST_SECONDS = 120
# Far above what an opener needs, and far below what an endless answer fills.
_MEMORY = 2**30


class Said(msgspec.Struct, frozen=True):
    """The end of an opener: its status, its bytes, and its sentence."""

    status: int
    output: bytes
    sentence: str


class Far:
    """The opener of one kind with its settings, and where names lead."""

    def __init__(
        self, kind: str, python: Path | str = sys.executable, surroundings: Surroundings | None = None, **settings: str
    ) -> None:
        self.kind = kind
        self._python = str(python)
        self._surroundings = surroundings or Surroundings()
        self._settings = settings

    def using(self, **settings: str) -> "Far":
        """The same one with other settings; an empty one is not set."""
        return Far(self.kind, self._python, self._surroundings, **self._settings | settings)

    def among(self, names: Mapping[str, int] | None = None, **bounds: float) -> "Far":
        """The same one where names lead elsewhere, or where `deadline` and `asking` wait for so many seconds alone."""
        known = self._surroundings.names if names is None else dict(names)
        shorter = {f"openers.{module}.SECONDS": seconds for module, seconds in bounds.items()}
        return Far(self.kind, self._python, Surroundings(known, self._surroundings.set | shorter), **self._settings)

    def wrap(self, name: str, file: str = FILE, key: bytes = KEY) -> Holder:
        """Have a key wrapped; a failure fails the test."""
        said = self.try_to_wrap(name, file, key)
        assert said.status == 0, said
        named, blob = said.output.decode().split()
        return Holder(self.kind, named, b64decode(blob, validate=True))

    def try_to_wrap(self, name: str, file: str = FILE, key: bytes = KEY) -> Said:
        """Have a key wrapped, which may fail."""
        return self._run(["openers", self.kind, "wrap", name], f"{file}\n".encode() + key)

    def open(self, *holders: Holder, file: str = FILE) -> Said:
        """Open a file with these holders."""
        return self._run(["openers", self.kind, "open"], write_head(file, holders).text)

    def run(self, module: str, *words: str) -> Said:
        """Run another program in its place."""
        return self._run([module, *words], b"")

    def _run(self, words: list[str], given: bytes) -> Said:
        settings = {name: value for name, value in self._settings.items() if value}
        ended = subprocess.run(
            [self._python, "-P", "-m", "tests.outside.elsewhere", msgspec.json.encode(self._surroundings), *words],
            cwd="/",
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT), "HOME": "/nonexistent", **settings},
            input=given,
            capture_output=True,
            timeout=_LONGEST_SECONDS,
            check=False,
            preexec_fn=_limit,
        )
        return Said(ended.returncode, ended.stdout, ended.stderr.decode())


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))


def set_up() -> Path:
    """Install the packages of openers, unless that has been done; parallel workers wait. Give their Python."""
    with (PROJECT / "locks" / "openers.lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        environment = {**os.environ, "PROJECT_VENV": ".venv-openers", "PROJECT_LOCK": "locks/openers.lock"}
        subprocess.run(
            ["scripts/set-up", "--quiet"], cwd=PROJECT, env=environment, check=True, capture_output=True, timeout=300
        )
    return _PYTHON


def with_bit_changed(holder: Holder, at: int) -> Holder:
    """The holder with one bit of what it wrapped changed."""
    blob = bytearray(holder.blob)
    blob[at] ^= 1
    return msgspec.structs.replace(holder, blob=bytes(blob))
