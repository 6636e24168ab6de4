"""An opener of people that really waits, and those who talk to it."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from custody.kit.key_head import Holder, write_head
from openers.kinds import people
from tests.fixtures.eventually import eventually
from tests.openers.asking import FILE, PATIENCE_SECONDS, surroundings

# Its constants set to other values, then the program itself.
_WITH = """
import sys
from openers import __main__
from openers.kinds import people
for setting in sys.argv[1:]:
    name, value = setting.split("=")
    setattr(people, name, float(value))
sys.exit(__main__.main(["people", "open"]))
"""


def holder_of(split: people.Split) -> Holder:
    """The line of a head."""
    return Holder("people", split.name, split.blob)


@contextmanager
def wait_for(
    holder: Holder, path: Path, constants: Sequence[str] = (), others: Sequence[Holder] = ()
) -> Iterator[subprocess.Popen]:
    """The opener while it waits at this path."""
    words = ["-c", _WITH, *constants] if constants else ["-m", "openers", "people", "open"]
    process = subprocess.Popen(
        [sys.executable, "-P", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=surroundings({"SERVICE_UNLOCK_SOCKET": str(path)}),
    )
    try:
        process.stdin.write(write_head(FILE, (holder, *others)).text)
        process.stdin.close()
        eventually(lambda: _listens(path) or process.poll() is not None)
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def _listens(path: Path) -> bool:
    try:
        connection = connect(path)
        connection.shutdown(socket.SHUT_WR)
        lines_of(connection)
    except OSError:
        return False
    return True


def connect(path: Path) -> socket.socket:
    """A connection that waits as long as tests do."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(PATIENCE_SECONDS)
    # Another name of its folder, for a path that is too long.
    folder = os.open(path.parent, os.O_PATH)
    try:
        connection.connect(f"/proc/self/fd/{folder}/{path.name}")
    except OSError:
        connection.close()
        raise
    finally:
        os.close(folder)
    return connection


def lines_of(connection: socket.socket) -> list[str]:
    """All that is said until the other side ends it."""
    with connection, connection.makefile("rb") as said:
        return said.read().decode("ascii").splitlines()


def bring(path: Path, text: str) -> list[str]:
    """Send a line, and hear the greeting and the answer."""
    connection = connect(path)
    connection.sendall(f"{text}\n".encode())
    return lines_of(connection)


def key_of(process: subprocess.Popen) -> tuple[int, bytes, bytes]:
    """The end of an opener: its status, and what it wrote."""
    key, said = process.stdout.read(), process.stderr.read()
    return process.wait(PATIENCE_SECONDS), key, said
