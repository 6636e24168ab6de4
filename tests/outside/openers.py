"""The programs that ask a holder of the master key, as the supervisor and `custody keys lock` run them."""

import fcntl
import os
import subprocess
import sys
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path

from custody.kit.key_head import Holder, write_head
from tests.outside.elsewhere import Said
from tests.outside.processes import PROJECT

# Where openers have the libraries of their holders. The service's own Python has none.
PYTHON = PROJECT / ".venv-openers" / "bin" / "python"
FILE = "5089efbf191005cb"
ANOTHER_FILE = "5089efbf191005cc"
KEY = bytes(range(100, 132))
AWAY, REFUSED, NOT_OURS, BAD_SETTINGS = 75, 77, 65, 78
_LONGEST_SECONDS = 120


class Opener:
    """The opener of one kind, with settings."""

    def __init__(
        self, kind: str, settings: Mapping[str, str] | None = None, python: str | Path = sys.executable
    ) -> None:
        self.kind = kind
        self._python = str(python)
        self._settings = dict(settings or {})

    def using(self, **settings: str) -> "Opener":
        """The same one with other settings."""
        return Opener(self.kind, self._settings | settings, self._python)

    def wrap(self, name: str, file: str = FILE, key: bytes = KEY) -> Holder:
        """Have a key wrapped; a failure fails the test."""
        said = self.try_to_wrap(name, file, key)
        assert said.status == 0, said
        named, blob = said.output.decode().split()
        return Holder(self.kind, named, b64decode(blob, validate=True))

    def try_to_wrap(self, name: str, file: str = FILE, key: bytes = KEY) -> Said:
        """Have a key wrapped, which may fail."""
        return self.run(["wrap", name], f"{file}\n".encode() + key)

    def open(self, *holders: Holder, file: str = FILE) -> Said:
        """Open a file that has these holders."""
        return self.run(["open"], write_head(file, holders).text)

    def run(self, words: list[str], given: bytes) -> Said:
        """Run it."""
        ended = subprocess.run(
            [self._python, "-P", "-m", "openers", self.kind, *words],
            cwd="/",
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT)} | self._settings,
            input=given,
            capture_output=True,
            timeout=_LONGEST_SECONDS,
            check=False,
        )
        return Said(ended.returncode, ended.stdout, ended.stderr.decode())


def set_up() -> Path:
    """Install the libraries of every kind, unless that has been done; parallel workers wait. Give their Python."""
    with (PROJECT / "locks" / "openers.lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        environment = {**os.environ, "PROJECT_VENV": ".venv-openers", "PROJECT_LOCK": "locks/openers.lock"}
        subprocess.run(
            ["scripts/set-up", "--quiet"], cwd=PROJECT, env=environment, check=True, capture_output=True, timeout=300
        )
    return PYTHON


def change_bit(holder: Holder, at: int) -> Holder:
    """The holder with one bit of what it wrapped changed."""
    blob = bytearray(holder.blob)
    blob[at] ^= 1
    return Holder(holder.kind, holder.name, bytes(blob))


def with_blob(holder: Holder, blob: bytes) -> Holder:
    """The holder with other bytes."""
    return Holder(holder.kind, holder.name, blob)
