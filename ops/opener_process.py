"""One opener: a program that asks a holder for the key of the sealed master key file, and is believed in nothing else.

Of what it writes a key and a sentence are read, and it ends in its time, with whatever it started.
"""

import contextlib
import fcntl
import os
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
    """Read what it gives, no more than a key and a sentence; `seconds` None waits without end."""
    assert process.stdout is not None  # noqa: S101 - both are pipes of ours
    assert process.stderr is not None  # noqa: S101
    deadline = None if seconds is None else time.monotonic() + seconds
    key, had, said = bytearray(KEY_BYTES + 1), 0, bytearray()
    with selectors.DefaultSelector() as pipes, process.stdout, process.stderr:
        pipes.register(process.stdout, selectors.EVENT_READ, "key")
        pipes.register(process.stderr, selectors.EVENT_READ, "said")
        while pipes.get_map():
            ready = pipes.select(_LOOK_SECONDS if process.poll() is None else 0)
            for pipe, _ in ready:
                if pipe.data == "key" and had <= KEY_BYTES:
                    # Into this memory alone, which is emptied below.
                    count = os.readv(pipe.fd, [memoryview(key)[had:]])
                    had += count
                else:
                    piece = os.read(pipe.fd, _PIECE)
                    count = len(piece)
                    said += piece[: MOST_SAID - len(said)]
                if not count:
                    pipes.unregister(pipe.fileobj)
            if had > KEY_BYTES or (not ready and process.poll() is not None):
                break
            if deadline is not None and time.monotonic() > deadline:
                kill(process)
                return Answer(None, f"it did not end in {seconds:.0f} s and was killed.")
    if had > KEY_BYTES:
        key[:] = bytes(len(key))
        return Answer(os.EX_DATAERR, f"it gave more than {KEY_BYTES} bytes, and a key has {KEY_BYTES}.")
    status = end(process, deadline)
    answer = Answer(status, _one_line(said) or f"it ended with {children.ending(status)}.")
    if status == os.EX_OK:
        answer = _keep(memoryview(key)[:had])
    key[:] = bytes(len(key))
    return answer


def end(process: subprocess.Popen[bytes], deadline: float | None) -> int:
    """The exit status of an opener that has said all; it is killed where it then goes on."""
    try:
        return process.wait(None if deadline is None else max(_LOOK_SECONDS, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        kill(process)
        return os.EX_DATAERR


def kill(process: subprocess.Popen[bytes]) -> None:
    """End an opener, and whatever it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    process.wait()


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
