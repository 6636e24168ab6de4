"""`custody keys lock`, `holders`, `unlock-file`: each opens again what it wrapped, and replaces in one step."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from custody.kit.key_head import Head, Holder, is_sealed, split, write_head
from custody.worker import key_folder
from custody.worker.sealed_keys import FileKey
from openers.kinds import recovery
from tests.fixtures.each import each
from tests.fixtures.terminal import Terminal
from tests.outside.processes import PROJECT

PLAIN = f"# Custody master key.\n1 {'ab' * 32}\n2 {'cd' * 32}\n"


class Desk:
    """A master key file, and somebody who may open it."""

    def __init__(self, folder: Path) -> None:
        self.file, self.folder = folder / "master.key", folder
        self.environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT)}

    def write(self, content: str = PLAIN) -> None:
        """Have a plain file."""
        self.file.write_text(content)
        self.file.chmod(0o600)

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-P", "-m", "openers.locking", "--file", str(self.file), *words]

    def run(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run it where nobody is at the terminal."""
        return subprocess.run(
            self.command(*words),
            env=self.environment | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            start_new_session=True,
            check=False,
        )

    def do(self, *words: str, **environment: str) -> str:
        ended = self.run(*words, **environment)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def recovery_key(self, name: str = "recovery") -> tuple[str, dict[str, str]]:
        """A recovery key that was made elsewhere: its public half, and settings that lead to it."""
        text, public = recovery.make()
        path = self.folder / name
        path.write_text(text + "\n")
        path.chmod(0o600)
        return f"recovery:{public}", {"SERVICE_RECOVERY_KEY_FILE": str(path)}

    @property
    def head(self) -> Head:
        return split(self.file.read_bytes())[0]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A desk with a plain file of two versions."""
    found = Desk(tmp_path)
    found.write()
    yield found
    # Whatever was done: no draft with keys lies about, and nobody else can read the file.
    assert {path.name for path in tmp_path.iterdir() if path.name.startswith(".")} == set()
    assert not stat.S_IMODE(found.file.stat().st_mode) & 0o077


def test_a_file_is_sealed_by_a_recovery_key_that_is_shown_and_typed_back(desk: Desk) -> None:
    at = Terminal(desk.command("lock", "--to", "recovery"), desk.environment)
    text = write_down(at)
    at.read_until("The recovery key: ")
    at.type(recovery.make()[0])
    at.read_until("That is another one.")
    at.read_until("The recovery key: ")
    at.type(text.lower())
    code = at.end()

    assert code == 0, at.shown
    assert "SERVICE_MASTER_KEY_SOURCE=recovery" in at.shown
    assert at.shown.count(text) == 1
    assert "\x1b[3J" in at.shown
    assert is_sealed(desk.file.read_bytes())
    assert "abab" not in desk.file.read_text()
    assert [one.name for one in desk.head.holders] == [recovery.public_of(text)]

    opening = Terminal(desk.command("unlock-file"), desk.environment)
    opening.read_until("Recovery key, not shown: ")
    opening.type(text)
    assert opening.end() == 0, opening.shown
    assert text not in opening.shown
    assert desk.file.read_text() == PLAIN


def test_a_file_is_sealed_for_people_and_opened_by_enough_of_them(desk: Desk) -> None:
    at = Terminal(desk.command("lock", "--to", "people:2/3"), desk.environment)
    shares = [write_down(at) for _ in range(3)]
    for _ in range(2):
        at.read_until("not shown: share ")
        at.type(shares[int(at.read_until(": ")) - 1])
    assert at.end() == 0, at.shown
    assert "SERVICE_MASTER_KEY_SOURCE=people" in at.shown
    assert [one.name.partition("@")[0] for one in desk.head.holders] == ["2-of-3"]

    opening = Terminal(desk.command("unlock-file"), desk.environment)
    for typed, said in ((shares[2], ""), (shares[2], "came already"), ("abandon", "none of the list"), (shares[0], "")):
        opening.read_until("not shown: ")
        opening.type(typed)
        if said:
            opening.read_until(said)
    assert opening.end() == 0, opening.shown
    assert desk.file.read_text() == PLAIN
    assert not {share for share in shares if share.split()[5] + " " + share.split()[6] in opening.shown}


def write_down(at: Terminal) -> str:
    """The text of what is shown, once it is on paper."""
    at.read_until("It is shown this once.")
    shown = at.read_until("Enter, when it is written down")
    at.type("")
    words = shown.split()
    return " ".join(word for word in words if not word.isdigit()) if "  1 " in shown else shown.strip()


def test_a_file_without_versions_is_made_for_a_first_start(desk: Desk) -> None:
    desk.file.unlink()
    holder, opens = desk.recovery_key()

    said = desk.do("lock", "--to", holder)

    assert said.startswith("Made, without a version until the first start,")
    assert "Copies of the plain file" not in said
    assert desk.do("unlock-file", **opens)
    assert desk.file.read_text() == ""


def test_holders_come_and_go_under_the_same_key_until_it_is_another(desk: Desk) -> None:
    first, opens_first = desk.recovery_key("one")
    second, opens_second = desk.recovery_key("two")
    desk.do("lock", "--to", first)
    before = desk.head.file
    copy = desk.file.read_bytes()

    desk.do("holders", "--add", second, **opens_first)
    assert (desk.head.file, len(desk.head.holders)) == (before, 2)
    desk.do("holders", "--remove", first, **opens_second)
    assert desk.run("unlock-file", **opens_first).returncode != 0
    # Under the same key, so a copy of before and its holder open what is sealed from now on too.
    desk.do("holders", "--new-file-key", **opens_second)
    assert desk.head.file != before
    desk.do("unlock-file", **opens_second)
    assert desk.file.read_text() == PLAIN

    desk.file.write_bytes(copy)
    assert desk.run("unlock-file", **opens_second).returncode != 0
    desk.do("unlock-file", **opens_first)


def test_a_holder_of_another_host_is_left_alone_and_added_there_again(desk: Desk) -> None:
    """Its TPM could not open what is wrapped here in its name, and nobody would know before that host starts."""
    holder, opens = desk.recovery_key()
    desk.do("lock", "--to", holder)
    text = Path(opens["SERVICE_RECOVERY_KEY_FILE"]).read_text()
    key = recovery.unwrap_with(text.strip(), desk.head.holders[0].name, desk.head.holders[0].blob, desk.head.file)
    own, (kept,) = Holder("tpm2", f"sha256:7@{os.uname().nodename}x", b"theirs"), desk.head.holders
    head = write_head(desk.head.file, (kept, own))
    desk.file.write_bytes(FileKey(key).seal(head, PLAIN))

    desk.do("holders", "--refresh", **opens)
    assert desk.head.holders[1] == own
    said = desk.do("holders", "--new-file-key", **opens)

    assert f"tpm2 {own.name} is of another host: add it there again." in said
    assert [one.kind for one in desk.head.holders] == ["recovery"]
    assert desk.do("unlock-file", **opens)


def test_all_wrap_again_when_they_are_refreshed(desk: Desk) -> None:
    holder, opens = desk.recovery_key()
    desk.do("lock", "--to", holder)
    before = desk.head.holders

    desk.do("holders", "--refresh", **opens)

    assert [one.name for one in desk.head.holders] == [one.name for one in before]
    assert desk.head.holders[0].blob != before[0].blob
    desk.do("unlock-file", **opens)


REFUSED = {
    "no terminal": (("lock", "--to", "recovery"), "shown at a terminal only"),
    "no such kind": (("lock", "--to", "paper:x", "--to", "recovery:00"), "There is no kind of holder 'paper'"),
    "a public key that is none": (("lock", "--to", "recovery:00"), "64 hex digits"),
    "a point of small order": (("lock", "--to", f"recovery:{'00' * 32}"), "anybody could open"),
    "a provider alone": (("lock", "--to", "systemd:host"), "No holder is your own"),
    "holders of a plain file": (("holders", "--refresh"), "is not sealed"),
    "a plain file unlocked": (("unlock-file",), "is not sealed"),
}


@each(("words", "said"), list(REFUSED.values()), ids=list(REFUSED))
def test_an_act_that_cannot_be_done_changes_nothing(
    words: tuple[str, ...], said: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    desk = Desk(tmp_path_factory.mktemp("desk"))
    desk.write()

    ended = desk.run(*words)

    assert ended.returncode != 0
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr
    assert desk.file.read_text() == PLAIN


def test_a_file_that_is_wrong_is_not_sealed(desk: Desk) -> None:
    holder, _ = desk.recovery_key()
    for content, said in (("1 abcd\n", "is not a master key file"), ("", "holds no key")):
        desk.write(content)
        ended = desk.run("lock", "--to", holder)
        assert (ended.returncode, said in ended.stderr) == (1, True), ended.stderr
    desk.file.chmod(0o640)
    assert "Others can read" in desk.run("lock", "--to", holder).stderr
    desk.write()
    desk.do("lock", "--to", holder)
    assert "is sealed already" in desk.run("lock", "--to", holder).stderr


def test_a_comment_in_any_encoding_stays_as_it_is(desk: Desk) -> None:
    """The signer passes over it, so it is no reason to stop when the recovery key has just been written down."""
    holder, opens = desk.recovery_key()
    for comment in ("# Schlüssel\n".encode(), "# Schlüssel\n".encode("latin-1")):
        desk.file.write_bytes(comment + PLAIN.encode())
        desk.do("lock", "--to", holder)
        desk.do("holders", "--refresh", **opens)
        desk.do("unlock-file", **opens)
        assert desk.file.read_bytes() == comment + PLAIN.encode()


def test_the_last_holder_and_the_last_of_the_operators_own_stay(desk: Desk) -> None:
    holder, opens = desk.recovery_key()
    desk.do("lock", "--to", holder)

    ended = desk.run("holders", "--remove", "recovery", **opens)
    unknown = desk.run("holders", "--remove", "awskms", **opens)

    assert "last holder cannot go" in ended.stderr
    assert "0 holders are meant" in unknown.stderr
    assert len(desk.head.holders) == 1


def test_a_file_that_the_signer_changes_meanwhile_is_not_replaced(desk: Desk) -> None:
    """A version that was added between reading and replacing would be lost, and all that it seals."""
    added = PLAIN + f"3 {'ef' * 32}\n"
    at = Terminal(desk.command("lock", "--to", "recovery"), desk.environment)
    text = write_down(at)
    desk.write(added)
    at.read_until("The recovery key: ")
    at.type(text)

    assert at.end() == 1
    assert "was changed meanwhile; nothing was changed" in at.shown
    assert desk.file.read_text() == added

    holder, _ = desk.recovery_key()
    with key_folder.alone(desk.folder):
        assert "Another program changes a key file" in desk.run("lock", "--to", holder).stderr
    assert desk.file.read_text() == added


def test_the_draft_of_another_command_stays_its_own(desk: Desk) -> None:
    """Else the later of two puts the draft of the other, half written, in the place of all keys."""
    holder, _ = desk.recovery_key()
    draft = desk.folder / ".master.key.locking"
    draft.write_text("half of another's")

    with key_folder.alone(desk.folder):
        assert "Another program changes a key file" in desk.run("lock", "--to", holder).stderr
        assert draft.read_text() == "half of another's"

    # Of one that was killed it is in nobody's way.
    desk.do("lock", "--to", holder)
    assert not draft.exists()


# Opens for one of its holders, whose key was not deleted.
PROGRAM = f"""#!{sys.executable}
import base64, sys
given = sys.stdin.buffer.read()
if sys.argv[1] == "wrap":
    print(sys.argv[2], base64.b64encode(given.split(b"\\n", 1)[1]).decode())
else:
    (name, blob), = [line.split()[2:] for line in given.decode().splitlines() if line.startswith("holder ")]
    if name == GONE:
        sys.exit("that key was deleted")
    sys.stdout.buffer.write(base64.b64decode(blob))
"""


def test_each_of_several_holders_of_a_kind_is_checked_by_itself(desk: Desk) -> None:
    """One that opens must not answer for one that is lost."""
    program = desk.folder / "program"

    def serve(gone: str) -> None:
        program.unlink(missing_ok=True)
        program.write_text(PROGRAM.replace("GONE", repr(gone)))
        program.chmod(0o755)

    opener = {"SERVICE_MASTER_KEY_OPENER": str(program)}
    serve("")
    desk.do("lock", "--to", "command:here", "--to", "command:there", "--no-recovery", **opener)
    both = desk.run("check", **opener)
    serve("there")
    one = desk.run("check", **opener)

    assert (both.returncode, both.stdout.count("opens      command")) == (0, 2)
    assert one.returncode == 1
    assert "opens      command here" in one.stderr
    assert "NOT        command there" in one.stderr


def test_a_link_is_followed_and_stays_one(desk: Desk) -> None:
    """As `custody up` makes it, where processes have uids of their own."""
    (desk.folder / "signer").mkdir()
    desk.file.rename(desk.folder / "signer" / "master.key")
    desk.file.symlink_to(Path("signer", "master.key"))
    holder, opens = desk.recovery_key()

    desk.do("lock", "--to", holder)

    assert desk.file.is_symlink()
    desk.do("unlock-file", **opens)
    assert (desk.folder / "signer" / "master.key").read_text() == PLAIN


# The calls of a command that touch the disk, of which any may be the last; and one that is never reached, the control.
STEPS = 9
NEVER = 30


@pytest.mark.long
@each("step", [*range(STEPS), NEVER])
def test_a_command_that_is_killed_at_any_step_leaves_a_file_that_opens(
    step: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    desk = Desk(tmp_path_factory.mktemp("killed"))
    desk.write()
    holder, opens = desk.recovery_key()
    other, _ = desk.recovery_key("other")
    for words in (
        ("lock", "--to", holder),
        ("holders", "--add", other),
        ("holders", "--new-file-key"),
        ("unlock-file",),
    ):
        killed = subprocess.run(
            [sys.executable, "-P", "-c", KILLED, str(step), "--file", str(desk.file), *words],
            env=desk.environment | opens,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert killed.returncode == (0 if step == NEVER else -signal.SIGKILL), killed.stderr
        content = desk.file.read_bytes()
        if is_sealed(content):
            Desk.do(_copy(desk, tmp_path_factory), "unlock-file", **opens)
        else:
            assert content == PLAIN.encode()
        if killed.returncode:
            # What was cut off is done by the next call.
            ended = desk.run(*words, **opens)
            assert ended.returncode == 0 or "already" in ended.stderr or "is not sealed" in ended.stderr, ended.stderr


KILLED = """
import os, signal, sys
left = int(sys.argv[1])
def count(event, _arguments):
    global left
    if event.split(".")[0] in ("open", "os") and left >= 0:
        frame = sys._getframe()
        while frame and not frame.f_code.co_filename.endswith(("locking.py", "key_file.py")):
            frame = frame.f_back
        if frame is not None and frame.f_code.co_name in ("replace", "write", "sync_folder", "alone", "read"):
            left -= 1
            if left == -1:
                os.kill(os.getpid(), signal.SIGKILL)
from openers import locking
sys.addaudithook(count)
sys.exit(locking.main(sys.argv[2:]))
"""


def _copy(desk: Desk, folders: pytest.TempPathFactory) -> Desk:
    copy = Desk(folders.mktemp("copy"))
    copy.file.write_bytes(desk.file.read_bytes())
    copy.file.chmod(0o600)
    return copy
