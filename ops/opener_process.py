"""One opener: a program that asks a holder for the key of the sealed master key file, and is believed in nothing else.

Of what it writes a key and a sentence are read, and it ends in its time, with whatever it started.
"""

import contextlib
import fcntl
import os
import select
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from custody.kit.key_head import KEY_BYTES, Head
from custody.kit.opener_settings import settings_of
from ops import children
from ops.launch import Streams, launch

MOST_SAID = 2048
_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
_PIECE = 4096
_LOOK_SECONDS = 0.5


class Answer(msgspec.Struct, frozen=True):
    """The end of an opener: its exit status, None where it was killed, and its sentence. The key is in `memory`."""

    status: int | None
    said: str
    memory: int | None = None


def environment_for(kind: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The part of our environment that the opener of a kind gets, which is the only one that gets it."""
    common = {name: value for name, value in environment.items() if name in children.COMMON}
    return common | settings_of(kind, environment)


def start(
    command: Sequence[str], environment: Mapping[str, str], head: Head, uid: int | None
) -> subprocess.Popen[bytes]:
    """Start it with the head to read, from memory, so that nobody waits for one that does not read."""
    given = os.memfd_create("custody-head", os.MFD_CLOEXEC)
    try:
        os.write(given, head.text)
        os.lseek(given, 0, os.SEEK_SET)
        streams = Streams(subprocess.PIPE, subprocess.PIPE, given)
        return launch(command, environment=environment, streams=streams, uid=uid, folder=Path("/"))
    finally:
        os.close(given)


def listen(process: subprocess.Popen[bytes], seconds: float | None) -> Answer:
    """Read what it gives, no more than a key and a sentence; `seconds` None waits without end.

    It is over when this returns, and so is whatever it started.
    """
    assert process.stdout is not None  # noqa: S101 - both are pipes of ours
    assert process.stderr is not None  # noqa: S101
    deadline = None if seconds is None else time.monotonic() + seconds
    key, had, said, over = bytearray(KEY_BYTES + 1), 0, bytearray(), False
    with selectors.DefaultSelector() as pipes, process.stdout, process.stderr:
        pipes.register(process.stdout, selectors.EVENT_READ, "key")
        pipes.register(process.stderr, selectors.EVENT_READ, "said")
        while pipes.get_map() and had <= KEY_BYTES and (deadline is None or time.monotonic() < deadline):
            # What it wrote before its end is there when its end is seen.
            over = _is_over(process, 0)
            ready = pipes.select(0 if over else _LOOK_SECONDS)
            if over and not ready:
                break
            for pipe, _ in ready:
                if pipe.data == "key":
                    # Into this memory alone, which is emptied below.
                    count = os.readv(pipe.fd, [memoryview(key)[had:]])
                    had += count
                else:
                    piece = os.read(pipe.fd, _PIECE)
                    count = len(piece)
                    said += piece[: MOST_SAID - len(said)]
                if not count:
                    pipes.unregister(pipe.fileobj)
    if had <= KEY_BYTES:
        over = _is_over(process, None if deadline is None else max(0.0, deadline - time.monotonic()))
    kill(process)
    answer = _answer(process.returncode if over else None, memoryview(key)[:had], said)
    key[:] = bytes(len(key))
    return answer


def kill(process: subprocess.Popen[bytes]) -> None:
    """End an opener, and whatever it started: before its status is taken, for then its number may be another's."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.wait()


def _is_over(process: subprocess.Popen[bytes], seconds: float | None) -> bool:
    """Wait for its end, at most so long, and leave its status where it is."""
    if process.returncode is not None:
        return True
    handle = os.pidfd_open(process.pid)
    try:
        return bool(select.select([handle], [], [], seconds)[0])
    finally:
        os.close(handle)


def _answer(status: int | None, key: memoryview, said: bytearray) -> Answer:
    if len(key) > KEY_BYTES:
        return Answer(os.EX_DATAERR, f"it gave more than {KEY_BYTES} bytes, and a key has {KEY_BYTES}.")
    if status is None:
        return Answer(None, "it did not end in its time and was killed.")
    if status == os.EX_OK:
        return _keep(key)
    return Answer(status, _one_line(said) or f"it ended with {children.ending(status)}.")


def _keep(key: memoryview) -> Answer:
    """A key in memory that nobody can change any more."""
    if len(key) != KEY_BYTES:
        return Answer(os.EX_DATAERR, f"it gave {len(key)} bytes, and a key has {KEY_BYTES}.")
    memory = os.memfd_create("custody-file-key", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(memory, key)
    fcntl.fcntl(memory, fcntl.F_ADD_SEALS, _SEALS)
    return Answer(os.EX_OK, "", memory)


def _one_line(said: bytes | bytearray) -> str:
    """The words of an opener as one line that no terminal acts on."""
    text = " ".join(said.decode("utf-8", "replace").split())
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)
