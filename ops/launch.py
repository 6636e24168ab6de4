"""Starting a child that dies with us, under a uid of its own.

`Popen` changes folder first, then drops groups and uid, then calls `preexec_fn`: that order matters, because the
kernel forgets the parent-death signal whenever credentials change.
"""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


class Streams(NamedTuple):
    """The descriptors of a child: what it reads, writes and complains into, and others that it gets besides."""

    output: IO[bytes] | int
    complaints: IO[bytes] | int = subprocess.STDOUT
    given: int = subprocess.DEVNULL
    kept: Sequence[int] = ()


def launch(
    command: Sequence[str | Path],
    *,
    environment: Mapping[str, str],
    streams: Streams,
    uid: int | None = None,
    folder: Path | None = None,
    when_parent_dies: signal.Signals = signal.SIGTERM,
) -> subprocess.Popen[bytes]:
    """Start a child in a session of its own, so that Ctrl-C reaches only us and we decide the order of stopping.

    Call it from the main thread: the parent-death signal fires when the *thread* that started the child ends.
    """
    return subprocess.Popen(  # noqa: S603 - our own commands, never a caller's words
        command,
        env=dict(environment),
        cwd=folder,
        stdin=streams.given,
        stdout=streams.output,
        stderr=streams.complaints,
        pass_fds=streams.kept,
        start_new_session=True,
        umask=0o077,
        preexec_fn=_die_with_parent(when_parent_dies),  # noqa: PLW1509
        user=uid,
        group=uid,
        extra_groups=None if uid is None else [],
    )


def _die_with_parent(number: signal.Signals) -> Callable[[], None]:
    parent, libc = os.getpid(), _libc

    # Runs between fork and exec, where only few things are safe: two system calls, nothing that takes a lock.
    def arm() -> None:
        if libc is not None:
            libc.prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
            if os.getppid() != parent:
                os._exit(1)

    return arm


def stop(process: subprocess.Popen[bytes], number: signal.Signals, seconds: float) -> bool:
    """Ask a child to stop, wait, then kill it; False when it had to be killed."""
    if process.poll() is None:
        process.send_signal(number)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return False
    return True
