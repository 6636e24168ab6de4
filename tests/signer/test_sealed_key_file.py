"""The sealed master key file: built a second time from docs/sealed-blob.md 8, refused in every changed bit, and served
from, rotated and watched by a real signer."""

import hmac
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest
from Crypto.Cipher import AES

from custody.kit.errors import Conflict
from custody.kit.key_head import FIRST_LINE, MAX_FILE, Head, Holder, MalformedHead, is_sealed, read_head, write_head
from custody.worker import key_folder
from custody.worker.key_file import KeyFileProblem
from custody.worker.sealed_keys import CannotBeOpened, FileKey
from ops import places
from signer.master_key import MasterKeyFile
from signer.unlock import Unlock
from tests.fixtures.callers import new_tenant
from tests.fixtures.deployments import database_apart, deploy, owner_of
from tests.fixtures.each import each
from tests.fixtures.eventually import soon
from tests.fixtures.keepsakes import custody
from tests.fixtures.server import Service
from tests.outside.processes import PROJECT

KEY = bytes(range(32))
LINES = f"# one\n1 {'ab' * 32}\n"
ID = "5089efbf191005cb"
BY_HAND = (
    b"custody-sealed-keys 1\n# Custody master key, sealed.\nfile 5089efbf191005cb\n"
    b"holder recovery 00ff AAEC\nholder awskms arn:aws:kms:eu:1:key/2 AwQ=\n"
)
HEAD = write_head(ID, (Holder("recovery", "00ff", b"\0\1\2"), Holder("awskms", "arn:aws:kms:eu:1:key/2", b"\3\4")))
SEALED = FileKey(KEY).seal(HEAD, LINES)


def seal_by_hand(head: bytes, lines: str, key: bytes, file: str) -> bytes:
    """The page in other libraries: HKDF as two HMACs, and another AES."""
    extracted = hmac.digest(bytes(32), key, "sha256")
    derived = hmac.digest(extracted, b"custody/v1 key file" + bytes.fromhex(file) + b"\1", "sha256")
    cipher = AES.new(derived, AES.MODE_GCM, nonce=b"n" * 12)
    cipher.update(head)
    sealed, tag = cipher.encrypt_and_digest(lines.encode())
    return head + b"keys " + b64encode(b"n" * 12 + sealed + tag) + b"\n"


def refusal(content: bytes, key: bytes = KEY) -> Conflict:
    with pytest.raises((MalformedHead, CannotBeOpened)) as caught:
        FileKey(key).open(content)
    return caught.value


def test_the_page_builds_the_same_file() -> None:
    by_hand = seal_by_hand(BY_HAND, LINES, KEY, ID)

    assert HEAD.text == BY_HAND
    assert FileKey(KEY).open(by_hand) == LINES
    assert FileKey(KEY).open(SEALED) == LINES
    assert len(SEALED) == len(by_hand)
    assert FileKey(KEY).seal(HEAD, LINES) != SEALED


@each("content", [SEALED[:at] + bytes([SEALED[at] ^ 1]) + SEALED[at + 1 :] for at in range(len(SEALED))])
def test_a_file_with_a_bit_changed_opens_nothing(content: bytes) -> None:
    said = refusal(content).message if is_sealed(content) else "malformed"

    assert "ab" * 16 not in said


CUT = [SEALED.replace(b"# Custody", b"# custody"), SEALED.replace(ID.encode(), b"5089efbf191005cc")]
CUT += [SEALED.replace(b"holder recovery 00ff AAEC\n", b""), SEALED.replace(b"awskms", b"gcpkms")]
CUT += [SEALED.replace(b"AwQ=", b"AwU="), SEALED.replace(b"eu:1", b"eu:2")]
CUT += [BY_HAND.replace(b"# Custody master key, sealed.\n", b"") + SEALED[len(BY_HAND) :]]
HOLDERS = SEALED.splitlines(keepends=True)
CUT += [b"".join([*HOLDERS[:3], HOLDERS[4], HOLDERS[3], *HOLDERS[5:]])]


@each("content", CUT)
def test_a_head_of_other_holders_opens_nothing(content: bytes) -> None:
    assert isinstance(refusal(content), CannotBeOpened)


def test_another_key_opens_nothing() -> None:
    assert refusal(SEALED, bytes(32)).message == "The sealed key file cannot be opened with this key."


KEYS = SEALED[len(BY_HAND) :]
HOLDER = b"holder recovery 00ff AAEC\n"
MALFORMED = {
    "CRLF": SEALED.replace(b"\n", b"\r\n"),
    "BOM": b"\xef\xbb\xbf" + SEALED,
    "format 2": SEALED.replace(b"keys 1\n", b"keys 2\n", 1),
    "blank before": b"\n" + SEALED,
    "no keys": BY_HAND,
    "two keys": SEALED + KEYS,
    "no last newline": SEALED[:-1],
    "text behind": SEALED + b"more\n",
    "a plain version behind": SEALED + b"1 " + b"ab" * 32 + b"\n",
    "a plain version before": BY_HAND + b"1 " + b"ab" * 32 + b"\n" + KEYS,
    "NUL": SEALED.replace(b"# Custody", b"# C\0stody"),
    "not ASCII": SEALED.replace(b"# Custody", "# Cüstody".encode()),
    "no id": SEALED.replace(b"file 5089efbf191005cb\n", b""),
    "two ids": SEALED.replace(HOLDER, b"file 5089efbf191005cb\n" + HOLDER),
    "capitals": SEALED.replace(b"5089efbf", b"5089EFBF"),
    "no holder": SEALED.replace(HOLDER, b"").replace(b"holder awskms arn:aws:kms:eu:1:key/2 AwQ=\n", b""),
    "17 holders": SEALED.replace(HOLDER, HOLDER * 16),
    "a long name": SEALED.replace(b"00ff", b"0" * 513),
    "a very long name": SEALED.replace(b"00ff", b"0" * 60_000),
    "a long kind": SEALED.replace(b"recovery", b"r" * 17),
    "a long blob": SEALED.replace(b"AAEC", b64encode(bytes(8193))),
    "only padding": SEALED.replace(b"AAEC", b"=" * 50_000),
    "loose base64": SEALED.replace(b"AwQ=", b"AwR="),
    "no padding": SEALED.replace(b"AwQ=", b"AwQ"),
    "keys of no base64": BY_HAND + b"keys !!!!\n",
    "short keys": BY_HAND + b"keys " + b64encode(bytes(27)) + b"\n",
    "a comment of a MiB": SEALED.replace(b"# Custody", b"# " + b"x" * 2**20),
}


@each(("name", "content"), list(MALFORMED.items()), ids=list(MALFORMED))
def test_a_file_that_is_not_as_the_page_says_is_malformed(name: str, content: bytes) -> None:
    assert is_sealed(content)
    problem = refusal(content)

    assert isinstance(problem, MalformedHead)
    assert ("too long" in problem.message) == (len(content) > MAX_FILE)
    assert "ab" * 16 not in problem.message


def test_six_hundred_versions_open_and_a_thousand_are_not_sealed() -> None:
    def lines(count: int) -> str:
        return "".join(f"{version} {'ab' * 32}\n" for version in range(1, count + 1))

    assert FileKey(KEY).open(FileKey(KEY).seal(HEAD, lines(600))) == lines(600)
    with pytest.raises(MalformedHead, match="longer than 64 KiB"):
        FileKey(KEY).seal(HEAD, lines(1000))


def test_a_head_reads_as_it_was_written() -> None:
    assert read_head(HEAD.text) == HEAD
    assert HEAD.text.startswith(FIRST_LINE)


def test_neither_key_nor_head_shows_the_key() -> None:
    shown = f"{FileKey(KEY)!r} {FileKey(KEY)} {HEAD!r} {Unlock('/nowhere')!r}"

    assert KEY.hex() not in shown
    assert repr(KEY)[2:20] not in shown


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder in memory."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


def put(path: Path, key: bytes, mode: int = 0o400) -> str:
    path.write_bytes(key)
    path.chmod(mode)
    return str(path)


def test_the_key_comes_from_a_file_or_a_folder_in_memory(memory: Path) -> None:
    put(memory / ID, KEY)

    for given in (str(memory / ID), str(memory)):
        assert Unlock(given).key_of(ID).open(SEALED) == LINES
    with pytest.raises(KeyFileProblem, match="is not at"):
        Unlock(str(memory)).key_of("00" * 8)


def test_the_key_comes_from_a_descriptor_that_is_read_once() -> None:
    descriptor = os.memfd_create("key")
    os.write(descriptor, KEY)

    unlock = Unlock(f"fd:{descriptor}")

    assert unlock.key_of(ID).open(SEALED) == LINES
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_a_key_that_others_could_have_or_a_disk_would_keep_is_refused(memory: Path, tmp_path: Path) -> None:
    key = put(memory / "key", KEY)
    (memory / "link").symlink_to(key)
    os.mkfifo(memory / "pipe", 0o400)
    refused = {
        put(memory / "open", KEY, 0o440): "Others can read",
        put(memory / "short", KEY[:-1]): "exactly 32 bytes",
        put(memory / "long", KEY + b"\n"): "exactly 32 bytes",
        str(memory / "link"): "is not at",
        str(memory / "pipe"): "is not a file",
        put(tmp_path / "disk", KEY): "is not in memory",
    }
    if os.statvfs(tmp_path).f_fsid == os.statvfs(memory).f_fsid:
        del refused[str(tmp_path / "disk")]

    for given, said in refused.items():
        with pytest.raises(KeyFileProblem, match=said):
            Unlock(given).key_of(ID)


@each("given", ["fd:0", "fd:1", "fd:2", "fd:9999", "fd:", "fd:-1", "fd:3x", "key", "./key", "fd:1234567"])
def test_a_place_that_is_none_is_refused(given: str) -> None:
    with pytest.raises(KeyFileProblem, match="SERVICE_MASTER_KEY_UNLOCK"):
        Unlock(given)


def test_a_descriptor_of_no_memory_or_of_another_length_is_refused(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(KEY)
    wrong = os.open(tmp_path / "key", os.O_RDONLY)
    with pytest.raises(KeyFileProblem, match="is not one of memory"):
        Unlock(f"fd:{wrong}")
    os.close(wrong)
    for length in (0, 31, 33):
        descriptor = os.memfd_create("key")
        os.write(descriptor, bytes(length))
        with pytest.raises(KeyFileProblem, match="exactly 32 bytes"):
            Unlock(f"fd:{descriptor}")


# The calls of a change that touch the disk, of which any may be the last; and one that is never reached, the control.
STEPS = 9
NEVER = 60
KILLED = """
import os, signal, sys
from pathlib import Path
from signer.master_key import MasterKeyFile
left = int(sys.argv[1])
def count(event, _arguments):
    global left
    if event.split(".")[0] in ("open", "os", "fcntl") and left >= 0:
        left -= 1
        if left == -1:
            os.kill(os.getpid(), signal.SIGKILL)
master = MasterKeyFile(Path(sys.argv[2]), sys.argv[3])
sys.addaudithook(count)
master.add(2) if sys.argv[4] == "add" else master.remove([1])
"""


@each("step", [*range(STEPS), NEVER])
def test_a_signer_that_is_killed_at_any_step_of_a_rotation_leaves_a_file_that_opens(
    step: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        file, unlock = tmp_path_factory.mktemp("killed") / "master.key", put(Path(folder) / ID, KEY)
        for act, before, after in (("add", "\n1 ", "\n2 "), ("remove", "\n2 ", "\n1 ")):
            lines = LINES if act == "add" else f"# one\n1 {'ab' * 32}\n2 {'cd' * 32}\n"
            file.write_bytes(FileKey(KEY).seal(HEAD, lines))
            file.chmod(0o600)
            killed = subprocess.run(
                [sys.executable, "-P", "-c", KILLED, str(step), str(file), unlock, act],
                env={"PYTHONPATH": str(PROJECT)},
                capture_output=True,
                check=False,
            )
            assert killed.returncode == (0 if step == NEVER else -signal.SIGKILL), killed.stderr
            opened = FileKey(KEY).open(file.read_bytes())
            assert before in opened
            assert file.read_bytes().startswith(HEAD.text)
            if step == NEVER:
                assert (after in opened) == (act == "add")


class Lock:
    """The master key file of a deployment, sealed by hand, and a key in memory."""

    def __init__(self, file: Path, memory: Path) -> None:
        self.file, self.memory, self.key = file, memory, secrets.token_bytes(32)

    def seal(self, file: str, *holders: Holder) -> Head:
        """Seal what is there, under a key of this id."""
        head = write_head(file, holders)
        (self.memory / file).unlink(missing_ok=True)
        put(self.memory / file, self.key)
        self.file.write_bytes(FileKey(self.key).seal(head, self.read()))
        return head

    def read(self) -> str:
        """The lines of the file."""
        content = self.file.read_bytes()
        return FileKey(self.key).open(content) if is_sealed(content) else content.decode()


@pytest.fixture
def apart(postgres_home: places.Home, worker_id: str) -> Iterator[Service]:
    """A deployment whose key may be sealed, and which made its key as a plain file."""
    with deploy(database_apart(postgres_home, f"{worker_id}_sealed")) as service:
        yield service


async def changes_in(service: Service) -> list[tuple[str, str]]:
    """Changes of the file, as the operator's log has them."""
    async with owner_of(service.database) as connection:
        rows = await connection.fetch(
            "SELECT action, metadata::jsonb->>'holders' AS holders FROM audit WHERE tenant_id = 'platform' "
            "AND action LIKE 'key.%' AND action NOT LIKE 'key.version%' AND action <> 'key.rotated' ORDER BY seq"
        )
    return [(row["action"], row["holders"]) for row in rows]


async def test_a_sealed_file_serves_rotates_and_is_noted(apart: Service, memory: Path) -> None:
    lock = Lock(apart.home / "master.key", memory)
    with new_tenant(apart) as tenant:
        agent = tenant.agent()
        assert agent.sign().status_code == 200
        plain = lock.read()

        apart.kill("signer")
        head = lock.seal(ID, Holder("recovery", "00ff", b"x"))
        assert plain.splitlines()[-1] not in lock.file.read_bytes().decode()
        code, said = apart.run_to_end("signer")
        assert (code, "is sealed. Set SERVICE_MASTER_KEY_SOURCE" in said) == (os.EX_CONFIG, True)
        apart._environment["SERVICE_MASTER_KEY_UNLOCK"] = str(memory)
        apart.start("signer")
        assert agent.sign().status_code == 200
        await soon(lambda: changes_in(apart), [("key.file_locked", '["recovery 00ff"]')])

        assert custody(apart, "keys", "rotate").returncode == 0
        assert lock.read().startswith(plain)
        assert lock.read() != plain
        assert lock.file.read_bytes().startswith(head.text)
        assert lock.file.stat().st_mode & 0o777 == 0o600

        # Another holder while it runs: noted, and nothing else happens.
        lock.seal(ID, Holder("recovery", "00ff", b"x"), Holder("people", "2-of-3", b"y"))
        changed = ("key.holders_changed", '["recovery 00ff", "people 2-of-3"]')
        await soon(lambda: changes_in(apart), [("key.file_locked", '["recovery 00ff"]'), changed])
        assert agent.sign().status_code == 200

        # One with another key: the signer goes on, and one that starts finds the key of the new id.
        lock.file.write_text(lock.read())
        lock.key = secrets.token_bytes(32)
        lock.seal("00" * 8, Holder("recovery", "00ff", b"z"))
        apart.kill("signer")
        apart.start("signer")
        assert agent.sign().status_code == 200

        apart.kill("signer")
        lock.file.write_text(lock.read())
        code, said = apart.run_to_end("signer")
        assert (code, "is not sealed" in said) == (os.EX_CONFIG, True)
        del apart._environment["SERVICE_MASTER_KEY_UNLOCK"]
        apart.start("signer")
        assert agent.sign().status_code == 200
        assert [action for action, _ in await changes_in(apart)][-2:] == ["key.holders_changed", "key.file_unlocked"]


def test_a_first_start_makes_version_one_in_a_sealed_file(
    postgres_home: places.Home, worker_id: str, memory: Path, tmp_path: Path
) -> None:
    lock = Lock(tmp_path / "master.key", memory)
    lock.file.touch(0o600)
    lock.seal(ID, Holder("recovery", "00ff", b"x"))
    settings = {"SERVICE_MASTER_KEY_FILE": str(lock.file), "SERVICE_MASTER_KEY_UNLOCK": str(memory / ID)}
    with deploy(database_apart(postgres_home, f"{worker_id}_sealed_first"), **settings) as service:
        with new_tenant(service) as tenant:
            assert tenant.agent().sign().status_code == 200
        assert lock.read().count("\n1 ") == 1

        # Over sealed rows an empty file is a wrong one.
        service.kill("signer")
        lock.file.write_bytes(FileKey(lock.key).seal(read_head(lock.file.read_bytes().rpartition(b"keys ")[0]), ""))
        code, said = service.run_to_end("signer")
        assert (code, "holds no key" in said) == (os.EX_CONFIG, True)
        (memory / ID).unlink()
        put(memory / ID, bytes(32))
        code, said = service.run_to_end("signer")
        assert (code, "cannot be opened with this key" in said) == (os.EX_CONFIG, True)


def test_a_first_version_is_not_made_while_somebody_changes_the_holders(memory: Path, tmp_path: Path) -> None:
    """They read a file without a version, and would put it back over the one that was made."""
    lock = Lock(tmp_path / "master.key", memory)
    lock.file.touch(0o600)
    lock.seal(ID, Holder("recovery", "00ff", b"x"))
    prepared = lock.file.read_bytes()
    master = MasterKeyFile(lock.file, str(memory / ID))

    with key_folder.alone(tmp_path), pytest.raises(KeyFileProblem, match="Another program changes a key file"):
        master.load(anything_sealed=False)
    assert lock.file.read_bytes() == prepared

    keyring, made = master.load(anything_sealed=False)
    assert (made, list(keyring.versions)) == (True, [1])
    again, made = master.load(anything_sealed=False)
    assert (made, again.versions) == (False, keyring.versions)


def test_a_comment_in_any_encoding_is_no_reason_not_to_rotate(tmp_path: Path) -> None:
    path = tmp_path / "master.key"
    for comment in ("# Schlüssel\n".encode(), "# Schlüssel\n".encode("latin-1")):
        path.write_bytes(comment + f"1 {'ab' * 32}\n".encode())
        path.chmod(0o600)
        master = MasterKeyFile(path, None)

        master.add(2)
        assert sorted(master.file.read().versions) == [1, 2]
        master.remove([1])

        assert path.read_bytes().startswith(comment + b"2 ")
        assert [one.name for one in tmp_path.iterdir()] == ["master.key"]
