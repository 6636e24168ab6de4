"""The embedded Postgres: the wheel's programs under our own supervision, where SERVICE_DATABASE_URL is not set.

Guarantees: SCRAM passwords for everybody, no TCP, a private socket folder, one owner at a time, and an end together
with the process that started it. Started as root it runs under an unprivileged uid; no folder, mode or user outside
the state folder is changed.
"""

import asyncio
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import asyncpg

from ops import places
from ops.launch import Streams, launch, stop
from ops.logs import tail
from ops.postgres_install import programs, programs_for_others

OWNER = "custody_owner"
DATABASE = "custody"
READY_SECONDS = 60.0
STOP_SECONDS = 30.0
# Root's child starts inside the data folder and names it so: it never walks through folders it may not enter.
_HERE = "/proc/self/cwd"
_SETTINGS = {
    "listen_addresses": "",
    "password_encryption": "scram-sha-256",
    "shared_buffers": "256MB",
    "max_connections": "100",
    "fsync": "on",
    "synchronous_commit": "on",
    "jit": "off",
    "timezone": "UTC",
    # A failing statement's text can hold what must not be in a log (promise P5).
    "log_min_error_statement": "panic",
    "log_parameter_max_length": "0",
}


class PostgresFailed(RuntimeError):
    """The embedded Postgres did not start."""


class EmbeddedPostgres:
    """One Postgres server whose data lie in `folder`, owned by this process while it runs."""

    def __init__(
        self, folder: Path, log: Path, *, settings: Mapping[str, str] | None = None, uid_base: int = places.UID_BASE
    ) -> None:
        self._folder = folder
        self._data = folder / "data"
        self._log = log
        self._settings = {**_SETTINGS, **(settings or {})}
        self._uid = places.uids(uid_base)["postgres"] if os.geteuid() == 0 else None
        self._lock: places.Lock | None = None
        self._socket: Path | None = None
        self._programs: Path | None = None
        self.process: subprocess.Popen[bytes] | None = None

    async def start(self) -> str:
        """Start the server and return the owner's address, once it answers."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.chmod(0o700 if self._uid is None else 0o711)
        self._lock = places.Lock(self._folder / "lock")
        if not self._lock.take():
            raise PostgresFailed(f"another process already runs the database in {self._folder}")
        try:
            self._socket = places.socket_folder(
                self._folder / "socket",
                owner=self._uid,
                mode=0o700 if self._uid is None else 0o711,
                reach=self._uid is not None,
            )
            self._programs = programs() if self._uid is None else programs_for_others(self._near())
            if not self._data.exists():
                self._create(self._programs)
            return await self.restart()
        except BaseException:
            await self.stop()
            raise

    async def restart(self) -> str:
        """Start the server again after it died; its owner still holds the lock."""
        if self._programs is None:
            raise PostgresFailed("the database is not started")
        await asyncio.to_thread(_clear_stale, self._data)
        return await self._run(self._programs, self._password())

    async def stop(self) -> None:
        """Stop the server: open transactions are rolled back, what was committed stays."""
        if self.process is not None:
            await asyncio.to_thread(stop, self.process, signal.SIGINT, STOP_SECONDS)
            self.process = None
        if self._socket is not None and self._socket != self._folder / "socket":
            shutil.rmtree(self._socket, ignore_errors=True)
        if self._lock is not None:
            self._lock.release()

    def _near(self) -> Path:
        if places.enterable(self._folder.resolve()) or self._socket is None:
            return self._folder
        return self._socket

    def _password(self) -> str:
        file = self._folder / "owner.password"
        if not file.exists():
            if self._data.exists():
                raise PostgresFailed(f"{file} is missing; without it {self._data} cannot be opened")
            places.write_private(file, secrets.token_hex(32))  # noqa: TID251 - never leaves this machine's database
        return file.read_text().strip()

    def _create(self, bin_folder: Path) -> None:
        """Make the data folder beside its final place, so that one cut short is never taken for a whole one."""
        draft = self._folder / "data.new"
        shutil.rmtree(draft, ignore_errors=True)
        # initdb, unlike the server, insists on a user that has a name; any unprivileged one will do.
        name_holder = None if self._uid is None else _unprivileged_uid()
        places.folder(draft, owner=name_holder)
        password = self._folder / "initdb.password"
        places.write_private(password, self._password(), owner=name_holder)
        try:
            made = subprocess.run(  # noqa: S603 - our own command
                [
                    bin_folder / "initdb",
                    "-U",
                    OWNER,
                    "-D",
                    draft if name_holder is None else _HERE,
                    f"--pwfile={password if name_holder is None else f'{_HERE}/../{password.name}'}",
                    "--auth=scram-sha-256",
                    "--encoding=UTF8",
                    "--locale=C",
                    "--locale-provider=builtin",
                    "--builtin-locale=C.UTF-8",
                ],
                cwd=draft,
                user=name_holder,
                group=name_holder,
                extra_groups=None if name_holder is None else [],
                env=_plain_environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
        finally:
            password.unlink(missing_ok=True)
        if made.returncode != 0:
            said = made.stderr.strip() or made.stdout.strip()
            cure = "; give this uid a name, or set SERVICE_DATABASE_URL" if "look up effective user" in said else ""
            raise PostgresFailed(f"{said}{cure}")
        if self._uid is not None:
            for part in (draft, *draft.rglob("*")):
                os.chown(part, self._uid, self._uid, follow_symlinks=False)
        draft.rename(self._data)

    async def _run(self, bin_folder: Path, password: str) -> str:
        settings = {
            **self._settings,
            "unix_socket_directories": str(self._socket),
            # Other uids must reach the socket; SCRAM decides who gets in.
            "unix_socket_permissions": "0700" if self._uid is None else "0777",
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with self._log.open("ab") as output:
            self.process = launch(
                [bin_folder / "postgres", "-D", str(self._data) if self._uid is None else _HERE, *options],
                environment=_plain_environment(),
                streams=Streams(output),
                uid=self._uid,
                folder=self._data,
                when_parent_dies=signal.SIGINT,
            )
        await self._answers(self._url(password, "postgres"))
        return self._url(password, DATABASE)

    async def _answers(self, url: str) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while True:
            if self.process is None or self.process.poll() is not None:
                raise PostgresFailed(f"Postgres stopped while starting; last lines of {self._log}:\n{tail(self._log)}")
            try:
                connection = await asyncpg.connect(url, timeout=5)
            except (OSError, asyncpg.CannotConnectNowError, asyncpg.ConnectionDoesNotExistError):
                if time.monotonic() > deadline:
                    raise PostgresFailed(f"Postgres did not respond; see {self._log}") from None
                await asyncio.sleep(0.02)
                continue
            if not await connection.fetchval("SELECT 1 FROM pg_database WHERE datname = $1", DATABASE):
                await connection.execute(f"CREATE DATABASE {DATABASE}")
            await connection.close()
            return

    def _url(self, password: str, database: str) -> str:
        return f"postgresql://{OWNER}:{password}@/{database}?host={quote(str(self._socket), safe='/')}"


def _plain_environment() -> dict[str, str]:
    return {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}


def _unprivileged_uid() -> int:
    names = {entry.pw_name: entry.pw_uid for entry in pwd.getpwall() if entry.pw_uid > 0}
    if not names:
        raise PostgresFailed("this machine has no unprivileged user; set SERVICE_DATABASE_URL or start as one")
    return names.get("nobody", next(iter(names.values())))


def _clear_stale(data: Path) -> None:
    """Remove the pid file of a server that no longer runs; first see off one that its dead owner left behind.

    We hold the lock, so no live owner exists. A pid alone proves nothing: it may be a stranger's by now, and in a
    container it often is. A process is a server of this folder exactly when it is a Postgres and works in it.
    """
    pid_file = data / "postmaster.pid"
    if not pid_file.exists():
        return
    first = pid_file.read_text().split("\n", 1)[0]
    if sys.platform != "linux" or not first.isdecimal():
        return
    for number, seconds in ((signal.SIGINT, 10.0), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0)):
        left = _working_in(data)
        if not left:
            pid_file.unlink(missing_ok=True)
            return
        for pid in left if number == signal.SIGKILL else {int(first)} & left or left:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue
        deadline = time.monotonic() + seconds
        while _working_in(data) and time.monotonic() < deadline:
            time.sleep(0.02)
    if _working_in(data):
        raise PostgresFailed(f"a Postgres of an earlier run still uses {data} and cannot be stopped")
    pid_file.unlink(missing_ok=True)


def _working_in(data: Path) -> set[int]:
    found = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            # An operator's shell may stand in the folder too.
            if (entry / "comm").read_text() == "postgres\n" and (entry / "cwd").samefile(data):
                found.add(int(entry.name))
        except OSError:
            continue
    return found - {os.getpid()}
