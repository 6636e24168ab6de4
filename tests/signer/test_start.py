"""The signer starts only where it is safe, never makes a second master key, and gives up what it does not need (P5)."""

import os
import secrets
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from custody.protocol.frames import VERSION
from ops import places
from tests.fixtures.callers import new_tenant
from tests.fixtures.deployments import database_apart, deploy
from tests.fixtures.server import Service
from tests.outside.processes import PROJECT

pytestmark = pytest.mark.long

SOMEBODY = os.getuid() or places.UIDS["signer"]
KEY_LINE = "1 " + "ab" * 32
MALFORMED = (
    "",
    "# only words\n",
    "1\n",
    "1 abcd\n",
    f"x {'ab' * 32}\n",
    f"1 {'AB' * 32}\n",
    f"{KEY_LINE} more\n",
    f"0 {'ab' * 32}\n",
    f"\u00b2 {'ab' * 32}\n",
    f"4294967296 {'ab' * 32}\n",
    f"{KEY_LINE}\n{KEY_LINE}\n",
    f"1  {'ab' * 32}\n",
    f"{KEY_LINE}\n2 {'ab' * 31}\n",
)


@pytest.fixture(scope="module")
def apart(postgres_home: places.Home, worker_id: str) -> Iterator[Service]:
    """A deployment of this file's own, with something sealed."""
    database = database_apart(postgres_home, f"{worker_id}_start")
    with deploy(database, really=True) as service, new_tenant(service) as tenant:
        assert tenant.agent().sign().status_code == 200
        yield service


def test_a_master_key_that_others_can_read_is_refused(apart: Service, tmp_path: Path) -> None:
    for mode in (0o604, 0o640, 0o601):
        key = _write(tmp_path, (apart.home / "master.key").read_text(), mode)

        code, said = apart.run_to_end("signer", SERVICE_MASTER_KEY_FILE=str(key))

        assert code == os.EX_CONFIG
        assert f"Others can read the master key {key}. Run: chmod 600 {key}" in said


def test_another_master_key_is_refused_and_not_shown(apart: Service, tmp_path: Path) -> None:
    key = _write(tmp_path, f"{KEY_LINE}\n")

    code, said = apart.run_to_end("signer", SERVICE_MASTER_KEY_FILE=str(key))

    assert code == os.EX_CONFIG
    assert "does not match this database" in said
    assert "ab" * 32 not in said


def test_a_missing_master_key_is_not_recreated_where_rows_are_sealed(apart: Service, tmp_path: Path) -> None:
    code, said = apart.run_to_end("signer", SERVICE_MASTER_KEY_FILE=str(tmp_path / "gone.key"))

    assert code == os.EX_CONFIG
    assert "Restore the file from your backup" in said
    assert not (tmp_path / "gone.key").exists()


@pytest.mark.parametrize("content", MALFORMED, ids=range(len(MALFORMED)))
def test_a_malformed_master_key_is_refused_and_not_shown(apart: Service, tmp_path: Path, content: str) -> None:
    key = _write(tmp_path, content)

    code, said = apart.run_to_end("signer", SERVICE_MASTER_KEY_FILE=str(key))

    assert code == os.EX_CONFIG
    assert str(key) in said
    assert "abab" not in said.lower()


def test_an_unreadable_key_file_is_refused_and_left_alone(apart: Service, tmp_path: Path) -> None:
    """A folder, a link that leads nowhere, one that leads in a circle: none of them is a place for a new key."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "nowhere").symlink_to(tmp_path / "absent")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")

    # What is no file stays none; what cannot be opened may come.
    for name, ends in (("folder", os.EX_CONFIG), ("nowhere", 1), ("circle", 1)):
        code, said = apart.run_to_end("signer", SERVICE_MASTER_KEY_FILE=str(tmp_path / name))

        assert (code, "Traceback" in said) == (ends, False), said
        assert f"The master key {tmp_path / name} " in said
    assert not (tmp_path / "absent").exists()


def test_a_master_key_behind_a_closed_folder_is_not_taken_for_a_missing_one(tmp_path: Path) -> None:
    """Tried without root's rights, for whom no folder is closed."""
    tmp_path.chmod(0o711)
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "master.key").write_text(f"{KEY_LINE}\n")
    closed.chmod(0)

    code, said = _as_somebody(f"MasterKeyFile(Path({str(closed / 'master.key')!r}), None).load(anything_sealed=False)")

    closed.chmod(0o700)
    assert (code, "Traceback" in said) == (1, False), said
    assert "Permission denied" in said


def test_production_wants_a_platform_key_of_the_operators(apart: Service, tmp_path: Path) -> None:
    kept = apart.run_to_end("identity", SERVICE_ENV="production")
    none = apart.run_to_end("identity", SERVICE_ENV="production", SERVICE_PLATFORM_KEY_FILE=str(tmp_path / "none.key"))

    assert (kept[0], none[0]) == (os.EX_CONFIG, os.EX_CONFIG)
    assert "refuses the platform key of the state folder" in kept[1]
    assert "requires a platform key of your own" in none[1]
    assert not (tmp_path / "none.key").exists()


def test_production_refuses_peers_of_the_signers_own_uid(apart: Service, tmp_path: Path) -> None:
    key = _write(tmp_path, secrets.token_urlsafe(32))
    # A folder of its own: the path of a socket may have 107 bytes.
    with (
        tempfile.TemporaryDirectory(prefix="cq-") as folder,
        apart.beside(
            "signer", SERVICE_ENV="production", SERVICE_PLATFORM_KEY_FILE=str(key), SERVICE_SIGN_SOCKET=f"{folder}/s"
        ),
    ):
        for name in ("api", "scheduler", "operator"):
            assert _greeting(f"{folder}/s", name) == b""
    assert '"event":"a peer was refused"' in apart.logs()


def test_there_are_no_core_files_and_no_new_privileges(apart: Service) -> None:
    proc = Path(f"/proc/{apart.processes['signer'].pid}")

    assert "Max core file size        0                    0" in (proc / "limits").read_text()
    assert "NoNewPrivs:\t1" in (proc / "status").read_text()


def test_others_of_the_same_uid_cannot_look_into_the_signer() -> None:
    # The kernel gives the files of a process that is not dumpable to root.
    assert _owner_of_its_secrets("pass") == SOMEBODY
    assert _owner_of_its_secrets("harden('signer')") == 0


@pytest.mark.parametrize(("ends_with", "code"), [("SystemExit('gone wrong')", 1), ("KeyboardInterrupt", 130)])
def test_a_background_task_that_ends_ends_the_process(socket_folder: Path, ends_with: str, code: int) -> None:
    """Whatever is still under way: a loop that waits for it would keep the socket, and nobody starts another signer."""
    program = f"""
import asyncio
from custody.worker.life import run
async def fail(reader, writer):
    await reader.read(1)
    raise {ends_with}
async def never_ends():
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass
async def life():
    endless = asyncio.get_running_loop().create_task(never_ends())
    server = await asyncio.start_unix_server(fail, {str(socket_folder / "s")!r})
    reader, writer = await asyncio.open_unix_connection({str(socket_folder / "s")!r})
    writer.write(b"x")
    await asyncio.sleep(60)
run('signer', life())
"""
    ended = subprocess.run(
        [sys.executable, "-P", "-c", program],
        env={"PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )

    assert ended.returncode == code, ended.stderr
    assert ("gone wrong" in ended.stderr) == (code == 1)


def _greeting(path: str, name: str) -> bytes:
    """Return the signer's answer to a greeting: its own, or nothing before it hangs up."""
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(60)
        peer.connect(path)
        hello = msgspec.msgpack.encode({"version": VERSION, "process": name})
        peer.sendall(len(hello).to_bytes(4, "big") + hello)
        return peer.recv(64)


def _owner_of_its_secrets(act: str) -> int:
    program = f"""
import ctypes, os, sys
from custody.worker.harden import harden
if os.getuid() == 0:
    os.setgroups([]), os.setresgid(*[{SOMEBODY}] * 3), os.setresuid(*[{SOMEBODY}] * 3)
    # A change of uid has taken this away; a process that was started under its uid has it.
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
{act}
print("ready", flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-P", "-c", program],
        env={"PYTHONPATH": str(PROJECT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "ready\n"
        owner = Path(f"/proc/{process.pid}/environ").stat().st_uid
        process.stdin.close()
    return owner


def _write(folder: Path, content: str, mode: int = 0o600) -> Path:
    path = folder / "some.key"
    path.write_text(content)
    path.chmod(mode)
    return path


def _as_somebody(act: str) -> tuple[int, str]:
    """Something of `signer.master_key`, done without root's rights."""
    program = f"""
import os
from pathlib import Path
from custody.worker.key_file import KeyFileProblem
from signer.master_key import MasterKeyFile
if os.getuid() == 0:
    os.setgroups([]), os.setresgid(*[{SOMEBODY}] * 3), os.setresuid(*[{SOMEBODY}] * 3)
try:
    {act}
except KeyFileProblem as problem:
    raise SystemExit(problem.message)
"""
    ended = subprocess.run(
        [sys.executable, "-P", "-c", program],
        env={"PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return ended.returncode, ended.stdout + ended.stderr
