"""The state folder: which files lie where, and which process owns them. Its place is SERVICE_HOME.

Started as root, every process gets a uid of its own, taken from a range that no distribution gives to users, or from
the one that SERVICE_UID_BASE begins, and without creating users. That needs a state folder which those uids can enter.
We never change a folder that is not ours, so below a closed folder (a checkout in root's home) the Python processes
keep root's uid and the caller is told.
"""

import contextlib
import fcntl
import grp
import hashlib
import os
import pwd
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from custody.kit import environment as read
from custody.kit.environment import BadSetting

BASE_VARIABLE: Final = "SERVICE_UID_BASE"
UID_BASE: Final = 64710
# In this order from the base on. A base is a multiple of ten, so two ranges are the same or have no uid in common.
_NAMES: Final = ("postgres", "signer", "api", "scheduler", "proxy", "identity", "chain", "opener")
_STEP: Final = 10
# Below are the system's own users; 65534 and 65535 are nobody's and nothing's.
_LOWEST, _HIGHEST, _NOBODYS = 1000, 2**31 - _STEP, 65530


def uids(base: int) -> dict[str, int]:
    """The uid of each process, where each has one."""
    return {name: base + number for number, name in enumerate(_NAMES)}


UIDS: Final = uids(UID_BASE)
# systemd gives any uid of these that has no name to a service with DynamicUser=, also one that runs here.
_DYNAMIC: Final = range(61184, 65520)
# Free in systemd's table and below 2^16, so that it is there in containers too.
UNGIVEN_BASE: Final = 60800
_SYSTEMD: Final = Path("/run/systemd/system")
_SUBORDINATE: Final = (Path("/etc/subuid"), Path("/etc/subgid"))
# sun_path holds 108 bytes with its NUL; ".s.PGSQL.5432.lock" is the longest name put behind a socket folder.
LONGEST_SOCKET_FOLDER = 106 - len("/.s.PGSQL.5432.lock")


class Home(msgspec.Struct, frozen=True):
    """The state folder, prepared; `separate` says whether processes run under uids of their own."""

    path: Path
    separate: bool
    uid_base: int = UID_BASE

    def uid_of(self, process: str) -> int | None:
        """The uid a process runs under, or None to keep ours."""
        return uids(self.uid_base)[process] if self.separate else None

    def file(self, *parts: str) -> Path:
        """A path inside the folder."""
        return self.path.joinpath(*parts)


def uid_base(environment: Mapping[str, str]) -> int:
    """The uid from which the processes' own are counted."""
    base = read.integer(environment, BASE_VARIABLE, UID_BASE, low=_LOWEST, high=_HIGHEST)
    if base % _STEP or base == _NOBODYS:
        raise BadSetting(BASE_VARIABLE, f"must be a multiple of {_STEP} such as {UID_BASE + _STEP}, and not {_NOBODYS}")
    return base


def unused_uid_base(environment: Mapping[str, str], subordinate: Iterable[Path] = _SUBORDINATE) -> int:
    """The same, for a check before the start: the uids are those of nobody on this machine.

    Who has a range of `subordinate` ids becomes any of them in a container of theirs, and so reads our keys. Of the
    base that nobody chose `also_given` says so: a deployment that ran yesterday starts.
    """
    base = uid_base(environment)
    lent = subordinate if environment.get(BASE_VARIABLE, "").strip() else ()
    for uid in uids(base).values():
        if owner := _owner_of(uid) or _lender_of(uid, lent):
            complaint = (
                f"uid {uid} is that of {owner}; choose a multiple of {_STEP} from which on {len(_NAMES)} are free, "
                f"such as {UNGIVEN_BASE} (docs/operate.md)"
            )
            raise BadSetting(BASE_VARIABLE, complaint)
    return base


def _owner_of(number: int) -> str | None:
    with contextlib.suppress(KeyError):
        return pwd.getpwuid(number).pw_name
    with contextlib.suppress(KeyError):
        return f"the group {grp.getgrgid(number).gr_name}"
    return None


def _lender_of(number: int, files: Iterable[Path]) -> str | None:
    return next(filter(None, (_lender(file, number) for file in files)), None)


def _lender(file: Path, number: int) -> str | None:
    """Find whose range in a file of subordinate ids has this one; a line that is none is not ours to judge."""
    try:
        lines = file.read_text(errors="replace").splitlines()
    except OSError:
        return None
    for line in lines:
        owner, _, numbers = line.partition(":")
        first, _, count = (part.strip() for part in numbers.partition(":"))
        if first.isdecimal() and count.isdecimal() and int(first) <= number < int(first) + int(count):
            return f"containers of {owner} ({file})"
    return None


def also_given(base: int, systemd: Path = _SYSTEMD, subordinate: Iterable[Path] = _SUBORDINATE) -> str | None:
    """A sentence where uids of this base may be others' too: in their containers, or by systemd's own choice."""
    for uid in uids(base).values():
        if owner := _lender_of(uid, subordinate):
            return f"{BASE_VARIABLE}: uid {uid} is also that of {owner}, which can read the keys (docs/operate.md)"
    if not systemd.is_dir() or not set(uids(base).values()) & set(_DYNAMIC):
        return None
    return (
        f"{BASE_VARIABLE}: systemd may give a uid from {base} on to a service with DynamicUser= ({_DYNAMIC.start} to "
        f"{_DYNAMIC.stop - 1}), which then reads the keys; {UNGIVEN_BASE} is out of its range (docs/operate.md)"
    )


def open_home(path: Path, base: int = UID_BASE) -> Home:
    """Make the state folder if it is not there, private to its owner; 0711 when processes have uids of their own."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    separate = os.geteuid() == 0 and sys.platform == "linux" and enterable(path.resolve().parent)
    home = Home(path.resolve(), separate, base)
    _insist_on_base(home)
    path.chmod(0o711 if separate else 0o700)
    folder(home.file("db"), mode=0o711 if separate else 0o700)
    folder(home.file("log"))
    for process in ("signer", "identity", "api", "scheduler", "proxy", "chain"):
        folder(home.file(process), owner=home.uid_of(process))
    _identity_key_folder(home)
    return home


def _insist_on_base(home: Home) -> None:
    """The key and the database are of the uids of the first start: those of another base could open neither."""
    folder, uid = home.file("signer"), home.uid_of("signer")
    if uid is None or not folder.exists() or (found := folder.stat().st_uid) in (0, uid):
        return
    if home.path.stat().st_uid == 0:
        before = found - _NAMES.index("signer")
        again = f"set it to {before}, or " if before > 0 and before % 10 == 0 else ""
        cure = f"{again}give its files to the new ones (docs/operate.md)"
        raise BadSetting(
            BASE_VARIABLE, f"the processes of {home.path} have run under the uids from {before} on: {cure}"
        )


def found_home(path: Path, base: int = UID_BASE) -> Home:
    """The state folder as it is, for commands that only look: nothing is made, nothing changes hands."""
    insist_on_owner(path)
    separate = os.geteuid() == 0 and sys.platform == "linux" and path.is_dir() and enterable(path.resolve().parent)
    return Home(path.resolve(), separate, base)


def insist_on_owner(path: Path) -> None:
    """Raise PermissionError for root in somebody's folder: what root makes there, its processes could not open."""
    if os.geteuid() == 0 and path.is_dir() and (uid := path.stat().st_uid) != 0:
        raise PermissionError(f"the state folder {path} belongs to uid {uid}; run this as that user")


def folder(path: Path, *, owner: int | None = None, mode: int = 0o700) -> Path:
    """Make a folder with exactly this owner and mode."""
    path.mkdir(mode=0o700, exist_ok=True)
    if owner is not None:
        os.chown(path, owner, owner)
    path.chmod(mode)
    return path


def _identity_key_folder(home: Home) -> None:
    """Prepare the folder of identity's key: the signer writes, and by the folder's group identity alone reads.

    The signer may not give a file away to another uid; a file made in a folder with this bit belongs to its group.
    """
    path = folder(home.file("identity-key"))
    if (owner := home.uid_of("signer")) is not None and (group := home.uid_of("identity")) is not None:
        os.chown(path, owner, group)
        path.chmod(0o2750)


def enterable(path: Path) -> bool:
    """Say whether a user without rights of its own can reach this folder: every folder on the way lets others pass."""
    return all(part.stat().st_mode & 0o001 for part in (path, *path.parents))


def readable(file: Path) -> bool:
    """Say whether such a user can read this file or enter this folder."""
    needed = 0o005 if file.is_dir() else 0o004
    return file.stat().st_mode & needed == needed and enterable(file.resolve().parent)


def write_private(path: Path, content: str, *, owner: int | None = None) -> None:
    """Write a file that only its owner can read, in one step: readers see the old content or the new."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as file:
        if owner is not None:
            os.fchown(handle, owner, owner)
        file.write(content)
        file.flush()
        os.fsync(handle)
    draft.replace(path)


def socket_folder(wanted: Path, *, owner: int | None, mode: int, reach: bool = False) -> Path:
    """A folder for sockets: `wanted`, or where its path is too long a short one elsewhere with `wanted` as link.

    `reach` asks for a folder that another uid can enter from outside.
    """
    if len(os.fsencode(wanted)) <= LONGEST_SOCKET_FOLDER and not (reach and not enterable(wanted.parent)):
        if wanted.is_symlink():
            wanted.unlink()
        return folder(wanted, owner=owner, mode=mode)
    short = short_folder(wanted, owner)
    if wanted.is_dir() and not wanted.is_symlink():
        wanted.rmdir()
    if not wanted.is_symlink() or wanted.readlink() != short:
        wanted.unlink(missing_ok=True)
        wanted.symlink_to(short)
    return folder(short, owner=owner, mode=mode)


def short_folder(wanted: Path, owner: int | None) -> Path:
    """A folder in the temporary folder, the same for the same `wanted`."""
    name = hashlib.sha256(os.fsencode(wanted)).hexdigest()[:12]
    for parent in (tempfile.gettempdir(), "/tmp", "/var/tmp"):  # noqa: S108 - owner checked below, name is not secret
        short = Path(parent) / f"custody-{os.geteuid()}-{name}"
        if len(os.fsencode(short)) <= LONGEST_SOCKET_FOLDER and enterable(short.parent):
            break
    else:
        raise OSError(f"no temporary folder with a short path and open permissions for the sockets of {wanted}")
    short.mkdir(mode=0o711, exist_ok=True)
    found = short.lstat()
    # Another user could have put a folder or a link there first.
    if short.is_symlink() or found.st_uid not in {os.geteuid(), owner}:
        raise OSError(f"{short} belongs to another user; remove it")
    return short


class Lock:
    """Exclusive ownership of something on disk, held until it is released or this process dies."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None

    def take(self) -> bool:
        """Take the lock; False when another process holds it."""
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return False
        self._handle = handle
        return True

    def release(self) -> None:
        """Let the next one have it."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
