"""`custody unlock`: one person's share, typed or by a pipe, to the opener that waits; and what people are told."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from custody.kit import unlock_lines
from openers.kinds import people
from tests.openers.gathering import holder_of, key_of, wait_for
from tests.outside.typing_person import type_at_a_terminal

KEY = bytes(range(32))
SPLIT = people.split("2/3", "5089efbf191005cb", KEY)
AS_ANOTHER = """
import os, sys
from pathlib import Path
from ops import unlock
os.setuid(64799)
unlock._connect(Path(sys.argv[1]))
"""
COMMAND = [sys.executable, "-P", "-m", "ops", "unlock"]


@pytest.fixture
def home() -> Iterator[Path]:
    """An installation's folder with a short path, and the folder in which an opener waits."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        (Path(folder) / "run-opener").mkdir(mode=0o700)
        yield Path(folder)


def unlock(home: Path, given: bytes, *words: str, **settings: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*COMMAND, *words], input=given, capture_output=True, env=environment(home) | settings, check=False, timeout=60
    )


def environment(home: Path) -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("SERVICE_")}
    return ours | {"SERVICE_HOME": str(home)}


def test_two_people_bring_their_shares_and_the_key_is_open(home: Path) -> None:
    with wait_for(holder_of(SPLIT), home / "run-opener/unlock.sock") as opener:
        first = unlock(home, f"{SPLIT.shares[0]}\n".encode())
        assert (first.returncode, first.stderr) == (0, b"")
        assert first.stdout == b"1 of 2 came; one more within 10 minutes.\n"
        second = unlock(home, f"  {SPLIT.shares[2].upper()}".encode())
        assert (second.returncode, second.stderr) == (0, b"")
        assert second.stdout == b"Enough shares came: the master key's file is open, and the service starts.\n"
        assert key_of(opener)[:2] == (0, KEY)


def test_a_share_is_typed_at_a_terminal_and_not_shown(home: Path) -> None:
    with wait_for(holder_of(SPLIT), home / "run-opener/unlock.sock"):
        status, shown = type_at_a_terminal(COMMAND, environment(home), {"not shown: ": SPLIT.shares[1]})
        assert status == 0
        assert "2 shares are needed. None came yet." in shown
        assert "1 of 2 came; one more within 10 minutes." in shown
        assert not any(f" {word} " in shown for word in SPLIT.shares[1].split() if len(word) > 5)


def test_a_terminal_at_which_nobody_types_brings_nothing(home: Path) -> None:
    with wait_for(holder_of(SPLIT), home / "run-opener/unlock.sock"):
        status, shown = type_at_a_terminal(COMMAND, environment(home), {"not shown: ": "\x04"})
        assert (status, "no share was typed" in shown, "Traceback" in shown) == (1, True, False)


def test_a_terminal_that_shows_what_is_typed_would_be_noticed(home: Path) -> None:
    """The control: a program that reads the share as it reads anything else."""
    plainly = [sys.executable, "-c", "input('not shown: ')"]
    _, shown = type_at_a_terminal(plainly, environment(home), {"not shown: ": SPLIT.shares[1]})
    assert " ".join(SPLIT.shares[1].split()[:3]) in shown


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (b"", "A share has 33 words, and 0 were given."),
        (b"\n\n", "A share has 33 words, and 0 were given."),
        (b"academic acid\n", "A share has 33 words, and 2 were given."),
        (b"secretword\n", "Word 1 is none of the list"),
        ("gr\u00fc\u00dfe\n".encode(), "Word 1 is none of the list"),
        (b"\xff\xfe\0\n", "Word 1 is none of the list"),
        (b"academic " * 1000, "that is too long for a share"),
        (f"{SPLIT.shares[0]} {SPLIT.shares[1]}".encode(), "A share has 33 words, and 66 were given."),
    ],
)
def test_a_share_that_is_none_is_refused_and_not_repeated(home: Path, given: bytes, said: str) -> None:
    with wait_for(holder_of(SPLIT), home / "run-opener/unlock.sock"):
        done = unlock(home, given)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode().startswith(f"custody unlock: {said}")
    assert b"secretword" not in done.stderr


def test_one_who_comes_while_nobody_waits_is_told_so_before_typing(home: Path) -> None:
    done = unlock(home, b"never read\n")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"nobody waits for shares at" in done.stderr
    with wait_for(holder_of(SPLIT), home / "run-opener/unlock.sock") as opener:
        opener.kill()
        opener.wait()
    assert b"nobody waits for shares at" in unlock(home, b"never read\n").stderr


def test_a_socket_elsewhere_is_found_by_word_and_by_setting(home: Path) -> None:
    (home / "elsewhere").mkdir()
    path = home / "elsewhere/its.sock"
    with wait_for(holder_of(SPLIT), path):
        assert unlock(home, SPLIT.shares[0].encode(), "--socket", str(path)).returncode == 0
        assert unlock(home, SPLIT.shares[1].encode(), SERVICE_UNLOCK_SOCKET=str(path)).returncode == 0


STRANGER = """
import os, socket, sys
os.setgid(64799); os.setuid(64799)
with socket.create_server(sys.argv[1], family=socket.AF_UNIX) as door:
    print("waits", flush=True)
    while True:
        with door.accept()[0] as came:
            try:
                came.sendall(sys.argv[2].encode() + b"\\n")
                heard = came.recv(4096)
            except OSError:
                heard = b""
            print(heard, flush=True)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_a_stranger_who_listens_in_the_short_folder_gets_no_share(home: Path) -> None:
    """The folder in /tmp is gone after a start of the machine, and its name is known to everybody."""
    asked = unlock_lines.Counts(0, 2, 600).line("waiting")
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        os.chown(short, 64799, 64799)
        (home / "run-opener").rmdir()
        (home / "run-opener").symlink_to(short)
        path = Path(short) / "unlock.sock"
        listening = [sys.executable, "-c", STRANGER, str(path), asked]
        with subprocess.Popen(listening, stdout=subprocess.PIPE, text=True) as stranger:
            assert stranger.stdout is not None
            assert stranger.stdout.readline() == "waits\n"
            done = unlock(home, SPLIT.shares[0].encode())
            assert stranger.stdout.readline() == "b''\n"
            # The control: it is given one by who names its place.
            unlock(home, SPLIT.shares[0].encode(), "--socket", str(path))
            heard = [stranger.stdout.readline() for _ in range(2)]
            stranger.kill()
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"is no opener, but uid 64799" in done.stderr
    assert SPLIT.shares[0].split()[0] in "".join(heard)


def test_a_folder_with_a_long_path_is_followed_to_its_short_one(home: Path) -> None:
    deep = home / ("d" * 90)
    deep.mkdir()
    (deep / "run-opener").symlink_to(home / "run-opener")
    with wait_for(holder_of(SPLIT), home / "run-opener/unlock.sock"):
        assert unlock(deep, SPLIT.shares[0].encode()).returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_another_user_is_told_who_may(home: Path) -> None:
    path = home / "run-opener/unlock.sock"
    home.chmod(0o711)
    with wait_for(holder_of(SPLIT), path):
        done = subprocess.run(
            [sys.executable, "-P", "-c", AS_ANOTHER, str(path)], env=environment(home), capture_output=True, check=False
        )
    assert b"is not for you: run this as root, or as the service's user." in done.stderr


def test_a_path_that_is_no_socket_is_said_to_be_so(home: Path) -> None:
    (home / "file").touch()
    for path, said in (
        (home / "file", b"nobody waits"),
        (home, b"nobody waits"),
        (home / ("n" * 200), b"nobody waits"),
    ):
        done = unlock(home, b"never read\n", "--socket", str(path))
        assert (done.returncode, said in done.stderr) == (1, True), done.stderr


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"hello\n",
        b"came 1 2\n",
        b"came 1 2 3 4\n",
        b"no \x1b[2J\n",
        b"opened \n",
        b"a" * 2000,
        b"no " + b"a" * 600,
    ],
)
def test_a_line_of_no_opener_is_not_believed(line: bytes) -> None:
    with pytest.raises(unlock_lines.Malformed):
        unlock_lines.read(line)


def test_a_share_is_no_argument(home: Path) -> None:
    done = unlock(home, b"", *SPLIT.shares[0].split())
    assert done.returncode == 2
