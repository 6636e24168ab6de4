"""Asks an opener as `keys lock` and the supervisor do: its program, with words, standard input and an environment."""

import os
import subprocess
import sys
from base64 import b64decode
from collections.abc import Mapping

from custody.kit.key_head import Holder, write_head

FILE = "5089efbf191005cb"
PATIENCE_SECONDS = 60


def run(*words: str, given: bytes = b"", **settings: str) -> subprocess.CompletedProcess[bytes]:
    """Run the opener with these words and settings, and no terminal."""
    command = [sys.executable, "-P", "-m", "openers", *words]
    return subprocess.run(
        command,
        input=given,
        capture_output=True,
        env=surroundings(settings),
        timeout=PATIENCE_SECONDS,
        check=False,
        start_new_session=True,
    )


def surroundings(settings: Mapping[str, str]) -> dict[str, str]:
    """An environment with what Python needs, and these settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SERVICE_")}
    return kept | dict(settings)


def wrap(kind: str, name: str, key: bytes, file: str = FILE, **settings: str) -> Holder:
    """A holder that wrapped this key."""
    done = run(kind, "wrap", name, given=f"{file}\n".encode() + key, **settings)
    assert done.returncode == 0, done.stderr
    named, blob = done.stdout.decode().split()
    return Holder(kind, named, b64decode(blob, validate=True))


def unlock(*holders: Holder, file: str = FILE, **settings: str) -> subprocess.CompletedProcess[bytes]:
    """Ask the kind of the first of these holders for the key of the file that they stand in."""
    return run(holders[0].kind, "open", given=write_head(file, holders).text, **settings)
