"""`python -m openers.waiting`: gets the file's key for a signer that nobody starts with it, as in a container.

It sees the head of the sealed file and never the sealed keys. It asks the kinds of SERVICE_MASTER_KEY_SOURCE in their
order until one opens, and puts the key into a folder in memory, as a file that the head's id names, for the signer
alone. Then it watches the head, and asks again once it is of another file. `python -m openers.waiting check` only says
whether the key is there.
"""

import contextlib
import os
import select
import signal
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Never

from custody.kit.key_head import KEY_BYTES, MAX_FILE, Head, MalformedHead, is_sealed, read_head
from custody.kit.opener_settings import HEAD_FILE as HEAD
from custody.kit.opener_settings import SETTINGS, UNLOCK_SOCKET, settings_of
from openers import bounded, no_dumps
from openers.outcomes import Away, BadSettings, NotOpened, Refused

SOURCE = "SERVICE_MASTER_KEY_SOURCE"
FOLDER = "SERVICE_MASTER_KEY_UNLOCK"
PEOPLE = "people"
# One opener, but for people: they come when they come.
OPENER_SECONDS = 20.0
FIRST_PAUSE, LONGEST_PAUSE, LOOK_SECONDS = 0.2, 30.0, 1.0
_COMMON = (
    *("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "LD_LIBRARY_PATH"),
    *("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"),
)
_IN_MEMORY = ("tmpfs", "ramfs")


def main(words: list[str], environment: Mapping[str, str]) -> int:
    """Wait, or check; the exit status of settings where they are wrong."""
    no_dumps.forbid()
    # The first process of a container ignores what it does not handle.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        if words == ["check"]:
            return 0 if is_open(_folder(environment), _read(_head_file(environment))) else os.EX_TEMPFAIL
        if words:
            raise BadSettings("usage: python -m openers.waiting [check]")
        waiting = Waiting(_kinds(environment), _head_file(environment), _folder(environment), environment)
        waiting.serve()
    except NotOpened as problem:
        sys.stderr.write(f"{problem.sentence}\n")
        return problem.status


class Waiting:
    """The kinds to ask, the head that is watched, and the folder in memory."""

    def __init__(self, kinds: tuple[str, ...], head: Path, folder: Path, environment: Mapping[str, str]) -> None:
        self._kinds, self._path, self._folder, self._environment = kinds, head, folder, environment
        self._said: dict[str, str] = {}
        self._people: subprocess.Popen[bytes] | None = None

    def serve(self) -> Never:
        """Open what is not open, for ever."""
        try:
            while True:
                head = self._look()
                if head is None or is_open(self._folder, head):
                    self._pause(LOOK_SECONDS)
                else:
                    self._open(head)
        finally:
            self._send_people_away()

    def _look(self) -> Head | None:
        """The head as it is now; what is wrong with it is said once, for it may be replaced."""
        try:
            return _read(self._path)
        except NotOpened as problem:
            self._say("head", problem.sentence)
            return None

    def _open(self, head: Head) -> None:
        """Ask until one opens, or until the head is another one."""
        # One that said no is not asked again about this head: a PIN that is tried too often is locked.
        to_ask, delay = list(self._kinds), 0.0
        try:
            while self._look() == head:
                for kind in [kind for kind in to_ask if kind != PEOPLE]:
                    if self._ask(kind, head, to_ask):
                        return
                if PEOPLE in to_ask and self._people is None:
                    self._people = self._invite(head)
                delay = min(max(FIRST_PAUSE, delay * 2), LONGEST_PAUSE)
                until = monotonic() + delay
                while monotonic() < until and self._look() == head:
                    self._pause(min(LOOK_SECONDS, delay))
                    if self._hear_people(head, to_ask):
                        return
        finally:
            self._send_people_away()

    def _ask(self, kind: str, head: Head, to_ask: list[str]) -> bool:
        """Ask one kind once; it is put away where it will not open, and kept where it may later."""
        try:
            ended = bounded.run(
                self._command(kind),
                head.text,
                most=KEY_BYTES,
                until=monotonic() + OPENER_SECONDS,
                environment=self._environment_of(kind),
            )
        except bounded.TookTooLong:
            self._say(kind, f"it did not end in {OPENER_SECONDS:.0f} s and is asked again.")
            return False
        except bounded.SaidTooMuch:
            to_ask.remove(kind)
            self._say(kind, f"it gave more than {KEY_BYTES} bytes, and is not asked again about this file.")
            return False
        return self._take(kind, ended.status, ended.output, ended.complaint, to_ask, head)

    def _take(self, kind: str, status: int, key: bytes, said: str, to_ask: list[str], head: Head) -> bool:
        if status == os.EX_OK and len(key) == KEY_BYTES:
            write(self._folder, head.file, key)
            self._say(kind, f"opened the master key file {head.file}.")
            return True
        if status == Away.status:
            self._say(kind, f"{said} It is asked again.")
        else:
            to_ask.remove(kind)
            self._say(kind, f"{said or f'it ended with {status}.'} It is not asked again about this file.")
        return False

    def _invite(self, head: Head) -> subprocess.Popen[bytes]:
        """Start the opener that people come to; what it says goes where we say ours."""
        process = subprocess.Popen(  # noqa: S603 - ourselves
            self._command(PEOPLE),
            env=self._environment_of(PEOPLE),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        if process.stdin is not None:
            with contextlib.suppress(BrokenPipeError), process.stdin:
                process.stdin.write(head.text)
        self._say(
            PEOPLE, f"waits for shares at {self._environment.get(UNLOCK_SOCKET, '')}: `custody unlock` brings them."
        )
        return process

    def _hear_people(self, head: Head, to_ask: list[str]) -> bool:
        process = self._people
        if process is None or process.stdout is None or not select.select([process.stdout], [], [], 0)[0]:
            return False
        key = os.read(process.stdout.fileno(), KEY_BYTES + 1)
        self._send_people_away()
        return self._take(PEOPLE, 0 if key else os.EX_CONFIG, key, "", to_ask, head)

    def _send_people_away(self) -> None:
        """End their opener, with the shares that came."""
        if (process := self._people) is None:
            return
        self._people = None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def _pause(self, seconds: float) -> None:
        """Wait, and no longer than until people are through."""
        pipes = [self._people.stdout] if self._people is not None and self._people.stdout is not None else []
        select.select(pipes, [], [], seconds)

    def _command(self, kind: str) -> list[str]:
        return [sys.executable, "-P", "-m", "openers", kind, "open"]

    def _environment_of(self, kind: str) -> dict[str, str]:
        common = {name: value for name, value in self._environment.items() if name in _COMMON}
        return common | settings_of(kind, self._environment)

    def _say(self, subject: str, sentence: str) -> None:
        """Say it, once until something else is said of it."""
        if self._said.get(subject) != sentence:
            self._said[subject] = sentence
            sys.stderr.write(f"{subject}: {sentence}\n")
            sys.stderr.flush()


def is_open(folder: Path, head: Head) -> bool:
    """Say whether the key of this head's file is there."""
    try:
        return (folder / head.file).lstat().st_size == KEY_BYTES
    except OSError:
        return False


def write(folder: Path, file: str, key: bytes) -> None:
    """Put the key there in one step, for the owner of the folder alone; those of other files go."""
    insist_on_memory(folder)
    draft = folder / ".new"
    draft.unlink(missing_ok=True)
    opened = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o400)
    try:
        owner = folder.stat()
        if owner.st_uid != os.geteuid():
            # As root, for a signer of another uid.
            os.fchown(opened, owner.st_uid, owner.st_gid)
        os.write(opened, key)
    finally:
        os.close(opened)
    draft.replace(folder / file)
    for other in folder.iterdir():
        if other.name != file:
            other.unlink()


def insist_on_memory(folder: Path) -> None:
    """Raise unless the folder is one in memory that nobody else enters: what is on a disk stays there."""
    try:
        found = folder.stat()
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError as problem:
        raise BadSettings(f"{FOLDER}: {folder} cannot be looked at: {problem.strerror}.") from None
    device = f"{os.major(found.st_dev)}:{os.minor(found.st_dev)}"
    kinds = {line.partition(" - ")[2].split(" ")[0] for line in mounts if line.split(" ")[2] == device}
    if not stat.S_ISDIR(found.st_mode) or not kinds.intersection(_IN_MEMORY):
        raise BadSettings(f"{FOLDER}: {folder} is no folder in memory (tmpfs), so a disk would keep the key.")
    if found.st_mode & 0o077 or os.geteuid() not in (0, found.st_uid):
        raise Refused(f"{FOLDER}: {folder} is not the signer's alone: chown it to the signer's uid, and chmod 0700 it.")


def _read(path: Path) -> Head:
    try:
        with path.open("rb") as file:
            text = file.read(MAX_FILE + 1)
    except OSError as problem:
        raise BadSettings(f"{HEAD}: {path} cannot be read: {problem.strerror}.") from None
    if is_sealed(text) and b"\nkeys " in text:
        raise Refused(f"{HEAD}: {path} has the sealed keys too: leave its last line out, for this must not see them.")
    try:
        return read_head(text)
    except MalformedHead as problem:
        raise BadSettings(f"{HEAD}: {path}: {problem.message}") from None


def _kinds(environment: Mapping[str, str]) -> tuple[str, ...]:
    given = [word.strip() for word in environment.get(SOURCE, "").split(",") if word.strip()]
    if not given or (unknown := [word for word in given if word not in SETTINGS]):
        raise BadSettings(
            f"{SOURCE} is a list of {', '.join(sorted(SETTINGS))}{f', not {unknown[0]!r}' if given else ''}."
        )
    return tuple(dict.fromkeys(given))


def _head_file(environment: Mapping[str, str]) -> Path:
    return _absolute(HEAD, environment, "the head of the sealed master key file")


def _folder(environment: Mapping[str, str]) -> Path:
    folder = _absolute(FOLDER, environment, "a folder in memory that the signer reads")
    insist_on_memory(folder)
    return folder


def _absolute(name: str, environment: Mapping[str, str], meaning: str) -> Path:
    path = Path(environment.get(name, ""))
    if not path.is_absolute():
        raise BadSettings(f"{name} is the absolute path of {meaning}.")
    return path


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
