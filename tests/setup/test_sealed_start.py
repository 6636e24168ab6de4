"""`custody up` with a sealed master key file: its holder is asked once, waited for where it is away, and needed no more
by a signer that was killed (P9)."""

import os
import signal
import sys
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from custody.kit import key_head
from custody.kit.key_head import is_sealed
from custody.worker.sealed_keys import FileKey
from openers.kinds import recovery
from ops import opener_process, places
from ops.opener_process import Answer
from tests.fixtures.brought_up import BroughtUp, brought_up, custody, environment_of, starting
from tests.fixtures.each import each
from tests.fixtures.eventually import eventually
from tests.outside.proc import children, is_over

# An operator's program that keeps keys in files, as an HSM keeps them in hardware; what it finds beside itself decides.
HOLDER = """#!/bin/sh
set -eu
cd "$(dirname "$0")"
env | cut -d= -f1 | sort > environment
if [ "$1" = wrap ]; then
  IFS= read -r id; cat > "key-$id"; echo "$2 $(printf %s "$id" | base64)"; exit
fi
echo asked >> asked
[ -e killed ] && kill -9 $$
[ -e away ] && { echo "The safe is locked." >&2; exit 75; }
[ -e refused ] && { echo "Ask the keeper for the right to open." >&2; exit 77; }
[ -e wrong ] && { head -c 32 /dev/zero; exit; }
id=$(sed -n 's/^file //p')
[ -e "away-$id" ] && { echo "The safe is locked." >&2; exit 75; }
cat "key-$id"
"""


class Safe:
    """The program's folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder, self.program = folder, folder / "open-keys"
        self.program.write_text(HOLDER)
        self.program.chmod(0o755)
        text, self.public = recovery.make()
        (folder / "recovery").write_text(text)
        (folder / "recovery").chmod(0o600)
        self.settings = {"SERVICE_MASTER_KEY_OPENER": str(self.program), "SERVICE_MASTER_KEY_SOURCE": "command"}

    def be(self, state: str, yes: bool = True) -> None:
        """Be away, or refuse, or be there again."""
        (self.folder / state).touch() if yes else (self.folder / state).unlink()

    @property
    def asked(self) -> int:
        """The number of times that it was asked to open."""
        found = self.folder / "asked"
        return len(found.read_text().splitlines()) if found.exists() else 0

    def custody(self, home: Path, *words: str, **more: str) -> str:
        """A command of the operator's, which must succeed."""
        ended = custody(home, *words, **self.settings | more)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def lock(self, home: Path) -> None:
        """Seal what is there, or begin with a sealed file."""
        self.custody(home, "keys", "lock", "--to", "command:safe", "--to", f"recovery:{self.public}")


@pytest.fixture
def safe(tmp_path: Path) -> Safe:
    """A holder that answers."""
    return Safe(tmp_path / "safe")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A state folder to be."""
    return tmp_path / "home"


def is_ready(running: BroughtUp) -> bool:
    try:
        return httpx.get(f"{running.url}/ready", timeout=60, trust_env=False).is_success
    except httpx.HTTPError:
        return False


def kill_signer(running: BroughtUp) -> None:
    """Kill it, and return once another one serves."""
    killed = running.pid_of("signer")
    os.kill(killed, signal.SIGKILL)
    eventually(lambda: running.pid_of("signer") not in (0, killed), about=running.output)
    eventually(lambda: is_ready(running), about=running.output)


@pytest.mark.long
def test_a_service_begins_sealed_and_a_killed_signer_needs_no_holder(home: Path, safe: Safe) -> None:
    safe.lock(home)
    with brought_up(home, **safe.settings) as running:
        content = (home / "master.key").read_bytes()
        assert is_sealed(content)
        assert safe.asked == 2  # when it was locked, and when it started
        given = set((safe.folder / "environment").read_text().split())
        assert not {name for name in given if name.startswith("SERVICE_")} - {"SERVICE_MASTER_KEY_OPENER"}
        signer = environment_of(running.pid_of("signer"))
        assert signer["SERVICE_MASTER_KEY_UNLOCK"].startswith("fd:")
        assert not signer.keys() & {"SERVICE_MASTER_KEY_OPENER", "SERVICE_MASTER_KEY_SOURCE"}

        status = safe.custody(home, "keys", "status")
        assert f"each of these opens it:\n  command safe\n  recovery {safe.public}\n" in status
        assert "ok     key holders: command safe, recovery" in custody(home, "doctor", **safe.settings).stdout
        asked = custody(home, "doctor", "--holders", **safe.settings).stdout
        assert "ok     key holders: each that needs no person opens the file" in asked
        insist_on_silence(running, safe)
        safe.be("away")
        asked = custody(home, "doctor", "--holders", **safe.settings).stdout
        assert "NOT        command safe: The safe is locked." in asked
        before = safe.asked
        kill_signer(running)
        assert safe.asked == before
        rotated = safe.custody(home, "keys", "rotate")
        assert "Every value uses version 2" in rotated
        kill_signer(running)

        # Another key of the file: the one that runs goes on, and the next one has the supervisor ask.
        safe.be("away", False)
        said = safe.custody(home, "keys", "holders", "--new-file-key")
        assert "has another key" in said
        assert key_head.split((home / "master.key").read_bytes())[0].file != key_head.split(content)[0].file
        assert is_ready(running)
        before = safe.asked
        kill_signer(running)
        assert safe.asked == before + 1


def insist_on_silence(running: BroughtUp, safe: Safe) -> None:
    """The key of the file is in no log, no environment and no argument."""
    (kept,) = (one.read_bytes() for one in safe.folder.glob("key-*"))
    shapes = (kept, kept.hex().encode(), b64encode(kept).rstrip(b"="), repr(kept)[2:-1].encode())
    said = [running.output().encode(), *(file.read_bytes() for file in (running.home / "log").glob("*.log"))]
    for pid in (running.process.pid, *children(running.process.pid)):
        said += [Path(f"/proc/{pid}/{part}").read_bytes() for part in ("environ", "cmdline")]
    assert len(said) > 10
    assert not [text for text in said if any(shape in text for shape in shapes)]


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0 or sys.platform != "linux", reason="only root can give uids")
def test_an_opener_has_a_uid_of_its_own_and_the_signer_may_rotate(shared_folder: Path) -> None:
    shared_folder.chmod(0o755)
    if not places.enterable(shared_folder):
        pytest.skip("other uids cannot enter this folder")
    safe, home = Safe(shared_folder / "safe"), shared_folder / "home"
    uids = places.uids(64740)
    given = safe.settings | {"SERVICE_UID_BASE": "64740"}
    safe.custody(home, "keys", "lock", "--to", "command:safe", "--to", f"recovery:{safe.public}", **given)
    file = home / "signer" / "master.key"
    assert (home / "master.key").readlink() == Path("signer", "master.key")
    assert file.stat().st_uid == uids["signer"]
    for part in (safe.folder, *safe.folder.glob("key-*")):
        os.chown(part, uids["opener"], uids["opener"])
    (safe.folder / "asked").unlink(missing_ok=True)
    (safe.folder / "environment").unlink()
    with brought_up(home, **given) as running:
        assert (safe.folder / "asked").stat().st_uid == uids["opener"]
        kept = next(safe.folder.glob("key-*")).read_bytes()
        assert FileKey(kept).open(file.read_bytes()).count("\n1 ") == 1
        assert "Every value uses version 2" in safe.custody(home, "keys", "rotate", **given)
        assert file.stat().st_uid == uids["signer"]
        assert is_sealed(file.read_bytes())
        assert is_ready(running)


@pytest.mark.long
def test_a_plain_file_is_sealed_and_plain_again(home: Path, safe: Safe) -> None:
    with brought_up(home):
        plain = (home / "master.key").read_text()
        refused = custody(home, "backup", str(home.with_name("copy")), "--with-sealed-key")
        assert (refused.returncode, "the plain master key goes into no backup" in refused.stderr) == (1, True)
        assert not home.with_name("copy").exists()
        assert "a copy of it opens everything" in custody(home, "doctor").stdout
        ended = custody(home, "keys", "lock", "--to", f"recovery:{safe.public}")
        assert (ended.returncode, "stop it first" in ended.stderr) == (1, True)
    safe.lock(home)
    assert plain.splitlines()[-1] not in (home / "master.key").read_text()
    with brought_up(home, **safe.settings):
        pass
    opens = {"SERVICE_RECOVERY_KEY_FILE": str(safe.folder / "recovery"), "SERVICE_MASTER_KEY_SOURCE": "recovery"}
    safe.be("away")
    safe.custody(home, "keys", "unlock-file", **opens)
    assert (home / "master.key").read_text() == plain
    with brought_up(home):
        pass


def have_plain_once_read(pipe: Path, content: bytes) -> None:
    """Give the content to who reads first, and be a plain file for everybody after."""
    with pipe.open("wb") as first:
        first.write(content)
        first.flush()
        pipe.unlink()
        pipe.write_text("1 plain\n")


@pytest.mark.long
def test_a_backup_the_sealed_file_and_the_recovery_key_are_enough(home: Path, safe: Safe, tmp_path: Path) -> None:
    """The drill: another machine, another home, and the holder of every day is gone with the account."""
    safe.lock(home)
    with brought_up(home, **safe.settings):
        said = safe.custody(home, "backup", str(tmp_path / "copy"), "--with-sealed-key")
        assert f"opened by command safe, recovery {safe.public} alone" in said
        assert "sealed: command safe" in safe.custody(home, "backup", str(tmp_path / "bare"))
        # One that somebody has plain again while it is copied is kept as it was looked at.
        file, sealed = tmp_path / "unlocked.key", (home / "master.key").read_bytes()
        os.mkfifo(file, 0o600)
        with ThreadPoolExecutor() as beside:
            turned = beside.submit(have_plain_once_read, file, sealed)
            made = str(tmp_path / "unlocked")
            safe.custody(home, "backup", made, "--with-sealed-key", SERVICE_MASTER_KEY_FILE=str(file))
            turned.result()
        assert file.read_text() == "1 plain\n"
        assert (tmp_path / "unlocked" / "master.key.sealed").read_bytes() == sealed
    assert not (tmp_path / "bare" / "master.key.sealed").exists()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(0o700)
    (tmp_path / "copy" / "master.key.sealed").rename(elsewhere / "master.key")
    safe.program.unlink()
    opens = {"SERVICE_RECOVERY_KEY_FILE": str(safe.folder / "recovery"), "SERVICE_MASTER_KEY_SOURCE": "recovery"}

    ended = custody(elsewhere, "restore", str(tmp_path / "copy"), "--verify", **opens)

    assert ended.returncode == 0, ended.stderr
    assert "Every sealed value opens" in ended.stdout
    with brought_up(elsewhere, **opens) as running:
        assert is_ready(running)
    other = recovery.make()[0]
    (safe.folder / "recovery").write_text(other)
    refused = custody(elsewhere, "restore", "--verify", **opens)
    assert (refused.returncode != 0, "another recovery key" in refused.stderr) == (True, True), refused.stderr


@pytest.mark.long
def test_a_holder_that_is_away_is_waited_for_and_each_reason_said_once(home: Path, safe: Safe) -> None:
    safe.lock(home)
    safe.be("away")
    with starting(home, **safe.settings) as running:
        process, said = running.process, running.output
        eventually(lambda: "waits for command: The safe is locked." in said(), about=said)
        asked = safe.asked
        eventually(lambda: safe.asked > asked + 2, about=said)
        assert said().count("The safe is locked.") == 1
        assert process.poll() is None
        safe.be("killed")
        eventually(lambda: "was killed by signal 9" in said(), about=said)
        safe.be("killed", False)
        safe.be("away", False)
        eventually(lambda: "Ready in" in said(), about=said)


@pytest.mark.long
def test_a_start_that_waits_takes_the_file_as_it_is_by_now(home: Path, safe: Safe) -> None:
    """The cure of a holder that stays away is another file key or another holder, and not another start."""
    safe.lock(home)
    (kept,) = safe.folder.glob("key-*")
    safe.be(kept.name.replace("key", "away"))
    with starting(home, **safe.settings) as running:
        eventually(lambda: "waits for command: The safe is locked." in running.output(), about=running.output)
        opens = {"SERVICE_RECOVERY_KEY_FILE": str(safe.folder / "recovery"), "SERVICE_MASTER_KEY_SOURCE": "recovery"}
        safe.custody(home, "keys", "holders", "--new-file-key", **opens)
        eventually(lambda: "Ready in" in running.output(), about=running.output)


REFUSALS = {
    "refused": "Ask the keeper for the right to open.",
    "wrong": "cannot be opened with this key",
}


@pytest.mark.long
@each(("state", "sentence"), list(REFUSALS.items()))
def test_a_holder_that_refuses_ends_the_start_with_its_sentence(
    state: str, sentence: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("refused")
    safe = Safe(folder / "safe")
    safe.lock(folder / "home")
    safe.be(state)
    with starting(folder / "home", **safe.settings) as running:
        process, said = running.process, running.output
        eventually(lambda: process.poll() is not None, about=said)
        assert process.returncode in (1, 2)
        assert sentence in said()
        assert "Traceback" not in said()


@pytest.mark.long
def test_the_next_kind_is_asked_where_the_first_does_not_open(home: Path, safe: Safe) -> None:
    safe.lock(home)
    safe.be("away")
    opens = {
        "SERVICE_RECOVERY_KEY_FILE": str(safe.folder / "recovery"),
        "SERVICE_MASTER_KEY_SOURCE": "command,recovery",
    }
    with brought_up(home, **safe.settings | opens) as running:
        assert is_ready(running)
        assert not [words for words in children(running.process.pid).values() if "openers" in words]


WRONG = {
    "": ("is not sealed", "unset SERVICE_MASTER_KEY_SOURCE"),
    "custody-sealed-keys 2\n": ("malformed",),
}


@each(("content", "sentences"), list(WRONG.items()))
def test_a_file_that_does_not_fit_the_settings_is_refused_with_the_cure(
    content: str, sentences: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("unfit")
    safe = Safe(folder / "safe")
    (folder / "home").mkdir(0o700)
    if content:
        (folder / "home" / "master.key").write_text(content)
        (folder / "home" / "master.key").chmod(0o600)
    with starting(folder / "home", **safe.settings) as running:
        process, said = running.process, running.output
        eventually(lambda: process.poll() is not None, about=said)
        for sentence in sentences if content else ("is not there", "custody keys lock"):
            assert sentence in said()


def test_a_source_that_is_no_kind_is_refused_at_once(home: Path) -> None:
    ended = custody(home, "up", "--no-demo", SERVICE_MASTER_KEY_SOURCE="awskms,paper")

    assert ended.returncode == 2
    assert "SERVICE_MASTER_KEY_SOURCE: has no kind paper" in ended.stderr


# Openers as programs of strangers: what each gives, and what becomes of it.
HEAD = key_head.split(
    b"custody-sealed-keys 1\nfile 5089efbf191005cb\nholder command x eA==\nkeys " + b"A" * 40 + b"\n"
)[0]
HOSTILE: dict[str, tuple[str, int | None, str]] = {
    "31 bytes": ("head -c 31 /dev/zero", os.EX_DATAERR, "it gave 31 bytes"),
    "33 bytes": ("head -c 33 /dev/zero", os.EX_DATAERR, "more than 32 bytes"),
    "nothing": ("true", os.EX_DATAERR, "it gave 0 bytes"),
    "endless": ("cat /dev/zero", os.EX_DATAERR, "more than 32 bytes"),
    "an endless complaint": ("cat /dev/zero >&2", None, "did not end"),
    "silence": ("exec sleep 600", None, "did not end"),
    "a key and silence": ("head -c 32 /dev/zero; exec sleep 600", None, "did not end"),
    "a key and a child that stays": ("head -c 32 /dev/zero; sleep 600 & exit 0", os.EX_OK, ""),
    "closed and silent": ("exec >&- 2>&- sleep 600", None, "did not end"),
    "refused": ("echo no >&2; exit 77", os.EX_NOPERM, "no"),
    "refused with a key": ("head -c 32 /dev/zero; echo no >&2; exit 77", os.EX_NOPERM, "no"),
    "a sentence for a terminal": (
        r"printf 'a\033[2Jb\n\nc' >&2; exit 65",
        os.EX_DATAERR,
        "a\N{REPLACEMENT CHARACTER}[2Jb c",
    ),
    "a long sentence": ("head -c 100000 /dev/zero | tr '\\0' x >&2; exit 65", os.EX_DATAERR, "x" * 2048),
    "killed": ("kill -9 $$", -signal.SIGKILL, "signal SIGKILL"),
}


@each(("script", "status", "said"), list(HOSTILE.values()), ids=list(HOSTILE))
def test_an_opener_gives_a_key_and_a_sentence_and_nothing_more(script: str, status: int | None, said: str) -> None:
    process = opener_process.start(("/bin/sh", "-c", script), {"PATH": os.defpath}, HEAD, None)

    found = opener_process.listen(process, 1.0 if status is None else 60.0)

    assert found.status == status
    assert said in found.said
    assert len(found.said) <= opener_process.MOST_SAID
    assert (found.memory is not None) == (status == os.EX_OK)
    opener_process.kill(process)
    assert is_over(process.pid)
    if found.memory is not None:
        with pytest.raises(PermissionError):
            os.pwrite(found.memory, b"x", 0)
        assert os.pread(found.memory, 64, 0) == bytes(32)
        os.close(found.memory)


def test_an_opener_reads_the_head_and_never_the_keys() -> None:
    process = opener_process.start(("/bin/sh", "-c", "cat >&2; exit 65"), {"PATH": os.defpath}, HEAD, None)
    found: Answer = opener_process.listen(process, 20.0)
    opener_process.kill(process)

    assert "holder command x" in found.said
    assert "keys" not in found.said.replace("custody-sealed-keys", "")
