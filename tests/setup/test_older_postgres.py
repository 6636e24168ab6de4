"""The oldest Postgres that we promise, Debian's 15: tables, a backup, and that backup restored."""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fixtures.server import free_ports
from tests.outside.processes import PROJECT
from tests.outside.programs import OLDER_POSTGRES, ProgramMissing, install

pytestmark = pytest.mark.long


class Older:
    """A server, and the command on one of its databases."""

    def __init__(self, port: int, programs: Path, home: Path) -> None:
        self._port, self._programs, self._home = port, programs, home

    def custody(self, database: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a `custody` command as the operator, with a state folder for each database."""
        url = f"postgresql://postgres@127.0.0.1:{self._port}/{database}"
        given = {"SERVICE_HOME": str(self._home / database), "SERVICE_DATABASE_URL": url}
        return subprocess.run(
            [sys.executable, "-P", "-m", "ops", *words],
            cwd="/",
            capture_output=True,
            text=True,
            timeout=120,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT), **given},
            check=False,
        )

    def create(self, database: str) -> None:
        """Make an empty database."""
        words = ("-h", "127.0.0.1", "-p", str(self._port), "-U", "postgres", database)
        subprocess.run([self._programs / "createdb", *words], check=True)


@pytest.fixture
def older(tmp_path: Path) -> Iterator[Older]:
    """A server of version 15, for as long as a test."""
    try:
        programs = install(OLDER_POSTGRES).parent
    except ProgramMissing as problem:
        pytest.skip(str(problem))  # other systems have other versions
    [port] = free_ports(1)
    # Not below tmp_path, which nobody but its owner can enter.
    with tempfile.TemporaryDirectory(prefix="cp-") as folder, running_postgres(programs, Path(folder), port):
        yield Older(port, programs, tmp_path)


@contextmanager
def running_postgres(programs: Path, data: Path, port: int, **settings: str) -> Iterator[None]:
    """A server that listens on loopback alone; as root it runs as the user that its package made."""
    user = {"user": pwd.getpwnam("postgres").pw_uid, "group": 0} if os.geteuid() == 0 else {}
    if user:
        os.chown(data, user["user"], -1)
    made = ["-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"]
    subprocess.run([programs / "initdb", *made], check=True, stdout=subprocess.DEVNULL, cwd="/", **user)
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={data} -c fsync=off"
    options += "".join(f" -c {name}={value}" for name, value in settings.items())
    started = ["-D", str(data), "-w", "-l", str(data / "log"), "-o", options, "start"]
    subprocess.run([programs / "pg_ctl", *started], check=True, stdout=subprocess.DEVNULL, cwd="/", **user)
    try:
        yield
    finally:
        stopped = [programs / "pg_ctl", "-D", str(data), "-m", "immediate", "stop"]
        subprocess.run(stopped, check=True, stdout=subprocess.DEVNULL, cwd="/", **user)


def test_a_backup_of_it_is_restored_into_it(older: Older, tmp_path: Path) -> None:
    older.create("first")
    older.create("second")

    ended = [older.custody("first", "migrate"), older.custody("first", "backup", str(tmp_path / "copy"))]
    # Beside a database that is in use; its processes keep their passwords.
    refused = older.custody("second", "restore", str(tmp_path / "copy"))
    shutil.copytree(tmp_path / "first" / "db", tmp_path / "second" / "db", dirs_exist_ok=True)
    ended.append(older.custody("second", "restore", str(tmp_path / "copy")))

    assert (refused.returncode, "a new password would shut its processes out" in refused.stderr) == (2, True)
    assert [(one.returncode, one.stderr) for one in ended] == [(0, "")] * 3
    assert "Nothing is sealed in it yet" in ended[1].stdout
