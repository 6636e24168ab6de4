"""Programs of others, run with bounds: what they may say, how long they may take, and that nothing of them stays.

It ends with the program that was started, not with the end of its output: a child that it left may hold a pipe open for
ever. Nobody waits for a pipe alone and nothing is read beyond its bound, so that an endless program costs no memory.
"""

import ctypes
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from time import monotonic

import msgspec

from openers import deadline

LONGEST_SECONDS = deadline.SECONDS
# The rest of what it says on standard error is read and dropped.
MOST_SAID = 2048
_PIECE = 65_536
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


class NotStarted(Exception):
    """There is no such program, or it cannot be executed."""


class SaidTooMuch(Exception):
    """It wrote more than it may."""


class TookTooLong(Exception):
    """It did not end in time."""


class Ended(msgspec.Struct, frozen=True):
    """Outcome of a program: its status as `subprocess` has it, output, and the beginning of what it complained of."""

    status: int
    output: bytes
    said: bytes

    def __repr__(self) -> str:
        """The outcome without the output, which may be a key."""
        return f"Ended(status={self.status}, {len(self.output)} bytes)"

    @property
    def complaint(self) -> str:
        """Its complaints as one line of printable ASCII, for they go to a terminal."""
        words = self.said.decode("ascii", "replace").split()
        return "".join(sign if " " <= sign <= "~" else "?" for sign in " ".join(words))


def run(
    command: Sequence[str],
    given: bytes = b"",
    *,
    most: int,
    until: float,
    environment: Mapping[str, str],
    files: Sequence[int] = (),
) -> Ended:
    """Run a program to its end, `until` on the clock of `monotonic`; it and what it left behind are dead afterwards.

    `files` are descriptors that it inherits.
    """
    try:
        process = subprocess.Popen(  # noqa: S603 - an operator's program, or one of the system
            command,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            pass_fds=files,
            start_new_session=True,
            umask=0o077,
            preexec_fn=_die_with_parent(),  # noqa: PLW1509
        )
    except OSError as problem:
        raise NotStarted(f"{command[0]}: {problem.strerror}") from None
    conversation = _Conversation(process, given, most)
    try:
        conversation.hold(until)
    finally:
        # Before anybody asked for its status: until then its number, which is its group's, is given to nobody else.
        os.killpg(process.pid, signal.SIGKILL)
        conversation.close()
    return conversation.outcome()


class _Conversation:
    """The pipes of one program."""

    def __init__(self, process: subprocess.Popen[bytes], given: bytes, most: int) -> None:
        self._process = process
        self._pipes = [pipe for pipe in (process.stdin, process.stdout, process.stderr) if pipe]
        self._in, self._out, self._err = (pipe.fileno() for pipe in self._pipes)
        self._given = memoryview(given)
        self._most = most
        self._output, self._said = bytearray(), bytearray()
        self._end = os.pidfd_open(process.pid)
        for pipe in (self._in, self._out, self._err):
            os.set_blocking(pipe, False)

    def hold(self, until: float) -> None:
        """Write and read until the program ends."""
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._end, selectors.EVENT_READ)
            waiting.register(self._out, selectors.EVENT_READ, self._hear_output)
            waiting.register(self._err, selectors.EVENT_READ, self._hear_complaints)
            waiting.register(self._in, selectors.EVENT_WRITE, self._tell)
            while True:
                ready = [key for key, _ in waiting.select(max(until - monotonic(), 0))]
                if any(key.fd == self._end for key in ready):
                    break
                # One that always has something to say is ended in time as well as a silent one.
                if monotonic() >= until:
                    raise TookTooLong
                for key in ready:
                    if not key.data():
                        waiting.unregister(key.fd)
        # What lies in the pipes since then, once: what a child that left its group goes on writing is nobody's answer.
        self._hear_output()
        self._hear_complaints()

    def close(self) -> None:
        """Close the pipes and take the status."""
        for pipe in self._pipes:
            pipe.close()
        os.close(self._end)
        self._process.wait()

    def outcome(self) -> Ended:
        """Outcome, once it is over."""
        return Ended(self._process.returncode, bytes(self._output), bytes(self._said))

    def _hear_output(self) -> bool:
        while len(self._output) <= self._most:
            piece = _read(self._out, self._most + 1 - len(self._output))
            if not piece:
                return piece is None
            self._output += piece
        raise SaidTooMuch

    def _hear_complaints(self) -> bool:
        piece = _read(self._err, _PIECE)
        self._said += (piece or b"")[: MOST_SAID - len(self._said)]
        return piece != b""

    def _tell(self) -> bool:
        try:
            while self._given:
                self._given = self._given[os.write(self._in, self._given) :]
        except BlockingIOError:
            return True
        except BrokenPipeError:
            # It need not read what it is told.
            pass
        self._pipes[0].close()
        return False


def _read(pipe: int, most: int) -> bytes | None:
    """Nothing at the end, and None where there is nothing yet."""
    try:
        return os.read(pipe, most)
    except BlockingIOError:
        return None


def _die_with_parent() -> Callable[[], None]:
    """Let the program die with us: who kills our group does not reach it in its own."""
    parent, libc = os.getpid(), _libc

    def arm() -> None:
        if libc is not None:
            libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
            if os.getppid() != parent:
                os._exit(1)

    return arm
