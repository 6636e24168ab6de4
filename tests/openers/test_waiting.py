"""The program that waits beside a container of the signer: the key of the file, put into memory for it alone."""

import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from custody.kit.key_head import Holder, write_head
from openers.kinds import people, recovery
from tests.fixtures.eventually import eventually
from tests.openers.asking import PATIENCE_SECONDS, surroundings, wrap
from tests.openers.gathering import bring
from tests.outside.replies import Reply
from tests.outside.web_server import WebServer, serving

FILE, LATER = "5089efbf191005cb", "00000000000000aa"
KEY, NEXT = bytes(range(32)), bytes(range(50, 82))
IN_MEMORY = Path("/dev/shm")
pytestmark = pytest.mark.skipif(not IN_MEMORY.is_dir(), reason="there is no folder in memory here")
PAPER, PUBLIC = recovery.make()


class Place:
    """The things that the container sees: the head, a folder in memory, and settings."""

    def __init__(self, disk: Path, memory: Path) -> None:
        self.head, self.folder, self.disk = disk / "head", memory / "unlock", disk
        self.folder.mkdir(mode=0o700)
        self.socket = memory / "unlock.sock"
        paper = disk / "recovery.key"
        paper.touch(mode=0o600)
        paper.write_text(PAPER)
        self.settings = {
            "SERVICE_MASTER_KEY_SOURCE": "recovery",
            "SERVICE_MASTER_KEY_UNLOCK": str(self.folder),
            "SERVICE_MASTER_KEY_HEAD_FILE": str(self.head),
            "SERVICE_RECOVERY_KEY_FILE": str(paper),
            "SERVICE_UNLOCK_SOCKET": str(self.socket),
        }

    def put(self, *holders: Holder, file: str = FILE) -> None:
        """Replace the head, as an operator's `mv` does."""
        draft = self.disk / "head.new"
        draft.write_bytes(write_head(file, holders).text)
        draft.chmod(0o644)
        draft.replace(self.head)

    def key(self, file: str = FILE) -> bytes | None:
        path = self.folder / file
        return path.read_bytes() if path.exists() else None

    def program(self, text: str) -> None:
        """The operator's own opener."""
        path = self.disk / "opener"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        self.settings["SERVICE_MASTER_KEY_OPENER"] = str(path)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A folder on the disk, and one in memory with a short path."""
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as memory:
        found = Place(tmp_path, Path(memory))
        found.put(wrap("recovery", PUBLIC, KEY))
        yield found


@contextmanager
def wait_in(place: Place, **settings: str) -> Iterator[subprocess.Popen]:
    """The program while it runs."""
    command = [sys.executable, "-P", "-m", "openers.waiting"]
    with (place.disk / "said").open("wb") as said:
        process = subprocess.Popen(
            command, env=surroundings(place.settings | settings), stderr=said, stdin=subprocess.DEVNULL
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def said_by(place: Place) -> str:
    return (place.disk / "said").read_text()


def run(environment: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-P", "-m", "openers.waiting", *words]
    return subprocess.run(
        command, env=surroundings(environment), capture_output=True, timeout=PATIENCE_SECONDS, check=False
    )


def test_the_key_is_put_into_memory_for_its_owner_alone(place: Place) -> None:
    assert run(place.settings, "check").returncode == os.EX_TEMPFAIL
    with wait_in(place) as waiting:
        eventually(place.key, KEY)
        found = (place.folder / FILE).stat()
        assert (stat.S_IMODE(found.st_mode), found.st_uid) == (0o400, place.folder.stat().st_uid)
        assert [path.name for path in place.folder.iterdir()] == [FILE]
        assert run(place.settings, "check").returncode == 0
        assert waiting.poll() is None
    assert waiting.returncode == 0
    assert said_by(place) == f"recovery: opened the master key file {FILE}.\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a file to another user needs root")
def test_a_key_that_root_puts_there_belongs_to_the_signer(place: Place) -> None:
    os.chown(place.folder, 64711, 64711)
    with wait_in(place):
        eventually(place.key, KEY)
    found = (place.folder / FILE).stat()
    assert (stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid) == (0o400, 64711, 64711)


def test_another_head_is_asked_about_and_the_key_of_before_goes(place: Place) -> None:
    with wait_in(place):
        eventually(place.key, KEY)
        place.put(wrap("recovery", PUBLIC, NEXT, file=LATER), file=LATER)
        eventually(lambda: place.key(LATER), NEXT)
        eventually(place.key, lambda found: found is None)
        # Other holders of the same file: nobody is asked, for the key is the same.
        place.put(Holder("command", "theirs", b"x"), file=LATER)
    assert place.key(LATER) == NEXT
    assert said_by(place).count("opened") == 2


def test_a_key_that_is_taken_away_is_put_there_again(place: Place) -> None:
    with wait_in(place):
        eventually(place.key, KEY)
        (place.folder / FILE).unlink()
        eventually(place.key, KEY)


def test_a_holder_that_is_away_is_asked_until_it_answers(place: Place) -> None:
    asked = place.disk / "asked"
    key = place.disk / "key"
    place.program(f'echo x >>{asked}; cat {key} 2>/dev/null || {{ echo "not yet" >&2; exit 75; }}')
    place.put(Holder("command", "theirs", b"x"))
    with wait_in(place, SERVICE_MASTER_KEY_SOURCE="command"):
        eventually(lambda: asked.exists() and asked.read_text().count("x") >= 3)
        assert place.key() is None
        key.write_bytes(KEY)
        eventually(place.key, KEY)
    assert said_by(place).splitlines() == [
        "command: not yet It is asked again.",
        f"command: opened the master key file {FILE}.",
    ]


def test_a_holder_that_refuses_is_asked_once_and_the_next_one_opens(place: Place) -> None:
    asked = place.disk / "asked"
    place.program(f'echo x >>{asked}; echo "the PIN is wrong" >&2; exit 77')
    own = wrap("recovery", PUBLIC, KEY)
    place.put(Holder("command", "theirs", b"x"), own)
    with wait_in(place, SERVICE_MASTER_KEY_SOURCE="command, recovery"):
        eventually(place.key, KEY)
    assert asked.read_text() == "x\n"
    assert "command: the PIN is wrong It is not asked again about this file." in said_by(place)


def test_a_holder_that_refuses_is_asked_once_about_each_head(place: Place) -> None:
    asked, token = place.disk / "asked", place.disk / "token"
    place.program(f"echo x >>{asked}; exit 77")
    token.touch(mode=0o600)
    token.write_text("t")
    sealed = WebServer()
    sealed.replies("/v1/transit/decrypt/custody", Reply(503))
    away = {"SERVICE_TRANSIT_TOKEN_FILE": str(token), "SERVICE_MASTER_KEY_SOURCE": "command,transit"}
    with serving(sealed), wait_in(place, SERVICE_TRANSIT_URL=sealed.url, **away):
        for count in (1, 2):
            heard = len(sealed.heard)
            place.put(
                Holder("command", f"theirs-{count}", b"x"), Holder("transit", "transit/custody", b"vault:v1:AAAA")
            )
            # The other one is asked again meanwhile, so there was the time to ask this one too.
            eventually(lambda heard=heard: len(sealed.heard) >= heard + 4)
            assert asked.read_text() == "x\n" * count


@pytest.mark.parametrize(
    "text",
    ["head -c 31 /dev/zero", "head -c 33 /dev/zero", "exit 3", "cat /dev/zero", "kill -9 $$", "true"],
)
def test_a_program_that_gives_no_key_gives_the_signer_nothing(place: Place, text: str) -> None:
    place.program(text)
    place.put(Holder("command", "theirs", b"x"))
    with wait_in(place, SERVICE_MASTER_KEY_SOURCE="command") as waiting:
        eventually(lambda: "command: " in said_by(place))
        assert waiting.poll() is None
    assert list(place.folder.iterdir()) == []


def test_people_are_waited_for_while_a_holder_that_is_away_is_asked_on(place: Place) -> None:
    split = people.split("2/3", FILE, KEY)
    asked = place.disk / "asked"
    place.program(f"echo x >>{asked}; exit 75")
    place.put(Holder("command", "theirs", b"x"), Holder("people", split.name, split.blob))
    with wait_in(place, SERVICE_MASTER_KEY_SOURCE="command,people"):
        eventually(lambda: answer_of(place, split.shares[0]), lambda said: said.startswith(("came 1", "no Share 1")))
        count = asked.read_text().count("x")
        eventually(lambda: asked.read_text().count("x") > count)
        assert answer_of(place, split.shares[2]) == "opened"
        eventually(place.key, KEY)
    assert not place.socket.exists()


def test_a_holder_that_comes_back_sends_people_home(place: Place) -> None:
    split = people.split("2/3", FILE, KEY)
    key = place.disk / "key"
    place.program(f"cat {key} 2>/dev/null || exit 75")
    place.put(Holder("command", "theirs", b"x"), Holder("people", split.name, split.blob))
    with wait_in(place, SERVICE_MASTER_KEY_SOURCE="command,people"):
        eventually(lambda: answer_of(place, split.shares[0]).startswith(("came 1", "no Share 1")))
        key.write_bytes(KEY)
        eventually(place.key, KEY)
        eventually(lambda: answer_of(place, split.shares[1]), "")


def answer_of(place: Place, share: str) -> str:
    """The answer to a share; empty where nobody waits."""
    try:
        return bring(place.socket, share)[-1]
    except (FileNotFoundError, ConnectionError):
        return ""


def test_an_opener_gets_the_settings_of_its_kind_and_no_others(place: Place) -> None:
    place.program(f"env >{place.disk}/env; exit 77")
    place.put(Holder("command", "theirs", b"x"))
    others = {"AWS_SECRET_ACCESS_KEY": "s3cret", "SERVICE_TRANSIT_TOKEN_FILE": "/token"}
    with wait_in(place, SERVICE_MASTER_KEY_SOURCE="command", **others):
        eventually(lambda: "not asked again" in said_by(place))
    names = {line.split("=")[0] for line in (place.disk / "env").read_text().splitlines()}
    assert {name for name in names if name.startswith(("SERVICE_", "AWS_"))} == {"SERVICE_MASTER_KEY_OPENER"}


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL])
def test_a_waiting_program_that_ends_leaves_what_the_signer_has(place: Place, ending: signal.Signals) -> None:
    with wait_in(place) as waiting:
        eventually(place.key, KEY)
        waiting.send_signal(ending)
        assert waiting.wait(PATIENCE_SECONDS) == (0 if ending == signal.SIGTERM else -ending)
    assert place.key() == KEY
    with wait_in(place):
        eventually(place.key, KEY)


def test_a_copy_with_the_sealed_keys_is_refused(place: Place) -> None:
    place.head.write_bytes(write_head(FILE, (wrap("recovery", PUBLIC, KEY),)).text + b"keys AAAA\n")
    assert b"leave its last line out" in run(place.settings, "check").stderr
    with wait_in(place) as waiting:
        eventually(lambda: "leave its last line out" in said_by(place))
        assert waiting.poll() is None
        place.put(wrap("recovery", PUBLIC, KEY))
        eventually(place.key, KEY)


@pytest.mark.parametrize("content", [b"", b"\0" * 100, b"x" * 100_000, b"custody-sealed-keys 2\nfile 0\n", b"1 00\n"])
def test_a_head_that_is_none_is_said_once_and_waited_for(place: Place, content: bytes) -> None:
    place.head.write_bytes(content)
    with wait_in(place) as waiting:
        eventually(lambda: "SERVICE_MASTER_KEY_HEAD_FILE" in said_by(place))
        place.put(wrap("recovery", PUBLIC, KEY))
        eventually(place.key, KEY)
        assert waiting.poll() is None
    assert len(said_by(place).splitlines()) == 2


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("SERVICE_MASTER_KEY_SOURCE", "", "is a list of"),
        ("SERVICE_MASTER_KEY_SOURCE", "file", "not 'file'"),
        ("SERVICE_MASTER_KEY_SOURCE", "recovery,nobody", "not 'nobody'"),
        ("SERVICE_MASTER_KEY_UNLOCK", "", "is the absolute path of a folder in memory"),
        ("SERVICE_MASTER_KEY_UNLOCK", "fd:3", "is the absolute path of a folder in memory"),
        ("SERVICE_MASTER_KEY_UNLOCK", "/nowhere/at/all", "cannot be looked at: No such file"),
        ("SERVICE_MASTER_KEY_UNLOCK", "/proc", "is no folder in memory"),
        ("SERVICE_MASTER_KEY_HEAD_FILE", "head", "is the absolute path of the head"),
    ],
)
def test_a_wrong_setting_ends_it_with_its_name(place: Place, name: str, value: str, said: str) -> None:
    done = run(place.settings | {name: value})
    assert (done.returncode, done.stdout) == (os.EX_CONFIG, b"")
    assert done.stderr.decode().startswith(name)
    assert said in done.stderr.decode()


def test_a_folder_on_a_disk_or_open_to_others_gets_no_key(place: Place) -> None:
    place.folder.chmod(0o755)
    done = run(place.settings)
    assert (done.returncode, b"is not the signer's alone" in done.stderr) == (os.EX_NOPERM, True)
    on_disk = place.disk / "unlock"
    on_disk.mkdir(mode=0o700)
    if os.stat(on_disk).st_dev != IN_MEMORY.stat().st_dev:
        done = run(place.settings | {"SERVICE_MASTER_KEY_UNLOCK": str(on_disk)})
        assert (done.returncode, b"a disk would keep the key" in done.stderr) == (os.EX_CONFIG, True)
        assert list(on_disk.iterdir()) == []


def test_words_that_it_does_not_know_are_refused(place: Place) -> None:
    assert run(place.settings, "open").returncode == os.EX_CONFIG
