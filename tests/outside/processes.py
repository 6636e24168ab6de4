"""Small real servers as processes of their own, which end with the tests that started them."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

PROJECT = Path(__file__).parents[2]
READY = "listening on "
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


@contextmanager
def running(command: Sequence[str | Path]) -> Iterator[str]:
    """Start a server that prints `listening on HOST:PORT`; give that address, and stop it afterwards."""
    process = subprocess.Popen(
        [str(part) for part in command],
        cwd=PROJECT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=die_with(os.getpid()),  # noqa: PLW1509
    )
    # A server that logs stops when nobody empties its pipe.
    emptying = threading.Thread(target=process.stdout.read, daemon=True)
    try:
        address = _address(process)
        emptying.start()
        yield address
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if emptying.ident:
            emptying.join()
        process.stdout.close()


def _address(process: subprocess.Popen[str]) -> str:
    for line in process.stdout:
        at = line.lower().find(READY)
        if at >= 0:
            return line[at + len(READY) :].split()[0]
    raise RuntimeError(f"{process.args[0]} ended before it was ready, with {process.wait()}")


def die_with(parent: int) -> Callable[[], None]:
    def arm() -> None:
        if _libc is not None:
            _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
            if os.getppid() != parent:
                os._exit(1)

    return arm
