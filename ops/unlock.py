"""`custody unlock`: brings one person's share to the opener that waits for people. docs/master-key/people.md.

Typed at a terminal, unechoed, or read from a pipe; never an argument, never kept, and never said again.
"""

import contextlib
import getpass
import os
import socket
import struct
import sys
import warnings
from argparse import Namespace
from collections.abc import Container
from pathlib import Path
from typing import Any

from custody.kit import unlock_lines
from custody.kit.opener_settings import UNLOCK_SOCKET
from custody.kit.unlock_lines import LINE_SECONDS, MAX_LINE, Counts, Malformed, Refused
from ops import places
from ops.settings import Settings

_PEER = struct.Struct("3i")


class NotBrought(RuntimeError):
    """The share did not arrive, or was not taken; the message says why."""


def declare(commands: Any) -> None:
    """Add the command."""
    unlock = commands.add_parser("unlock", help="bring your share of the master key's file, when people open it")
    at = "where the opener listens, if not in this installation's place"
    unlock.add_argument("--socket", type=Path, metavar="PATH", help=at)


def run(chosen: Namespace, settings: Settings) -> int:
    """Bring a share; 1 where it was not taken."""
    named = chosen.socket or settings.environment.get(UNLOCK_SOCKET)
    # The folder is a link to a shorter one where its path would be too long for a socket.
    path = Path(named) if named else (settings.home / "run-opener").resolve() / "unlock.sock"
    # Who listens at a named place is for who names it to know: in a container it has a uid of its own.
    trusted = None if named else {0, os.geteuid(), places.uids(settings.uid_base)["opener"]}
    try:
        print(_say(_bring(path, trusted)))
    except (NotBrought, Refused) as problem:
        print(f"custody unlock: {problem}", file=sys.stderr)
        return 1
    return 0


def _bring(path: Path, trusted: Container[int] | None) -> Counts | None:
    with _connect(path, trusted) as looked:
        waiting = _answer(looked)
    if waiting is not None and sys.stdin.isatty():
        print(_say(waiting))
    share = _read_share()
    with _connect(path, trusted) as connection:
        _answer(connection)
        connection.sendall(share)
        connection.shutdown(socket.SHUT_WR)
        return _answer(connection)


def _connect(path: Path, trusted: Container[int] | None = None) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(LINE_SECONDS)
    try:
        # First, for a path that is too long has another error.
        path.lstat()
        connection.connect(os.fspath(path))
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        raise NotBrought(
            f"nobody waits for shares at {path}: the service runs already, or was not started yet, or opens its key "
            "by another kind of holder."
        ) from None
    except PermissionError:
        connection.close()
        raise NotBrought(f"{path} is not for you: run this as root, or as the service's user.") from None
    except OSError as problem:
        connection.close()
        raise NotBrought(f"{path}: {problem.strerror or problem}.") from None
    # The short folder is one that everybody may make while no service runs, as after a start of the machine.
    if trusted is not None and (there := _listener_of(connection)) not in trusted:
        connection.close()
        raise NotBrought(f"who listens at {path} is no opener, but uid {there}: bring it nothing, and see who that is.")
    return connection


def _listener_of(connection: socket.socket) -> int:
    """The user who listens, by the kernel's word."""
    peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    return int(_PEER.unpack(peer)[1])


def _answer(connection: socket.socket) -> Counts | None:
    """One line of the opener's."""
    line = bytearray()
    with contextlib.suppress(OSError):
        while not line.endswith(b"\n") and len(line) <= MAX_LINE:
            piece = connection.recv(1)
            if not piece:
                break
            line += piece
    try:
        return unlock_lines.read(bytes(line))
    except Malformed:
        raise NotBrought("what waits there does not answer as an opener does, or ended: try again.") from None


def _read_share() -> bytes:
    """The share as it is typed or comes by a pipe; more than a share's length is not read."""
    typed = _ask() if sys.stdin.isatty() else sys.stdin.buffer.readline(MAX_LINE + 1)
    if len(typed) > MAX_LINE:
        raise NotBrought("that is too long for a share.")
    return b" ".join(typed.split()) + b"\n"


def _ask() -> bytes:
    try:
        with warnings.catch_warnings():
            # Rather nothing than a share that is shown.
            warnings.simplefilter("error", getpass.GetPassWarning)
            return getpass.getpass("Your share, not shown: ").encode("ascii", "replace")
    except (EOFError, getpass.GetPassWarning):
        raise NotBrought("no share was typed.") from None


def _say(counts: Counts | None) -> str:
    if counts is None:
        return "Enough shares came: the master key's file is open, and the service starts."
    if not counts.came:
        return f"{counts.needed} shares are needed. None came yet."
    missing, minutes = counts.needed - counts.came, max(1, -(-counts.seconds // 60))
    more = f"{missing} more" if missing > 1 else "one more"
    return f"{counts.came} of {counts.needed} came; {more} within {minutes} minute{'s' if minutes > 1 else ''}."
