"""The master key: read from a file that only the signer can read, made once for an empty database, added to. Design 5.

Each line of the file is a version. Nothing here ever replaces a key that could have sealed something: a version is
added beside the others, and taken out only when `signer/rotation/` has found that nothing uses it.
"""

import os
import re
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path

import msgspec

from custody.kit.errors import Conflict

HEAD = "# Custody master key. Keep a copy apart from the database: without it everything sealed is lost.\n"
# Four bytes of each sealed value say which; the database counts them as signed integers.
_HIGHEST = 2**31 - 1
_LINE = re.compile(r"([0-9]{1,10}) ([0-9a-f]{64})", re.ASCII)


class MasterKeyProblem(Conflict):
    """The master key file is missing, readable by others or malformed: no signer starts with it, or takes it anew."""


class MasterKeyFixed(Conflict):
    """The signer may not write the master key file."""


class Keyring(msgspec.Struct, frozen=True):
    """Versions of the master key: one seals, all open."""

    versions: dict[int, bytes]
    # Which one seals; without it the highest does.
    sealing: int | None = None
    # Those that something may be sealed with, as the database says; here or not.
    known: frozenset[int] = frozenset()

    @property
    def newest(self) -> int:
        """The version that seals."""
        return max(self.versions) if self.sealing is None else self.sealing

    def __repr__(self) -> str:
        return f"Keyring(versions={sorted(self.versions)}, sealing={self.newest})"


def load(path: Path, *, anything_sealed: bool) -> tuple[Keyring, bool]:
    """The keyring, and whether it was made just now. Never makes a new key over sealed rows."""
    if _is_there(path):
        return read(path), False
    if anything_sealed:
        raise MasterKeyProblem(
            f"The database holds sealed keys, but there is no master key at {path}. Put the file back from your "
            "backup, "
            "or point SERVICE_MASTER_KEY_FILE to it. A new key could never open them."
        )
    key = secrets.token_bytes(32)  # noqa: TID251 - the root of all keys
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        _write(descriptor, HEAD + _line(1, key))
        _sync_folder(path.parent)
    except OSError as problem:
        raise MasterKeyProblem(f"The master key {path} cannot be made: {problem.strerror}.") from None
    return Keyring({1: key}), True


def read(path: Path) -> Keyring:
    """The versions of a file that is there; MasterKeyProblem, without a word of it, for one that cannot be used."""
    try:
        found = path.stat()
        content = path.read_bytes() if stat.S_ISREG(found.st_mode) else None
    except OSError as problem:
        raise MasterKeyProblem(
            f"The master key {path} cannot be read: {problem.strerror}. Give the signer's user the file (mode 0600) "
            "and a way through the folders above it."
        ) from None
    if content is None:
        raise MasterKeyProblem(f"The master key {path} is not a file.")
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise MasterKeyProblem(f"Others can read the master key {path}. Run: chmod 600 {path}")
    versions: dict[int, bytes] = {}
    # Strict to the letter: what an editor or a copy has changed is refused, not guessed at.
    for line in content.decode("ascii", "replace").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        said = _LINE.fullmatch(line.strip())
        version = int(said[1]) if said else 0
        # The text of the line never enters the message.
        if said is None or not 1 <= version <= _HIGHEST or version in versions:
            raise MasterKeyProblem(
                f"{path} is not a master key file: each line is a version, from 1 and once, and 64 hex digits."
            )
        versions[version] = bytes.fromhex(said[2])
    if not versions:
        raise MasterKeyProblem(f"{path} holds no key.")
    return Keyring(versions)


def add(path: Path, version: int) -> None:
    """Put a fresh version beside the others, on disk when this returns; MasterKeyFixed where that may not be."""
    key = secrets.token_bytes(32)  # noqa: TID251 - the root of all keys
    text = path.read_text()
    _replace(path, f"{text}{'' if text.endswith('\n') else '\n'}{_line(version, key)}")


def remove(path: Path, versions: Iterable[int]) -> None:
    """Take versions out of the file; the others, and every comment, stay as they are."""
    gone = {str(version) for version in versions}
    lines = path.read_text().splitlines(keepends=True)
    _replace(path, "".join(line for line in lines if line.startswith("#") or line.strip().split(" ", 1)[0] not in gone))


def _is_there(path: Path) -> bool:
    """Whether there is anything at all, a link to nothing too: only a name that is free may get a new key."""
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    except OSError as problem:
        raise MasterKeyProblem(f"The master key {path} cannot be looked at: {problem.strerror}.") from None
    return True


def _replace(path: Path, content: str) -> None:
    """In one step: whoever reads, and whoever starts after a power failure, finds the old file or the new one."""
    file = path.resolve()
    draft = file.with_name(f".{file.name}.new")
    owner = file.stat()
    try:
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        if (owner.st_uid, owner.st_gid) != (os.geteuid(), os.getegid()):
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
        _write(descriptor, content)
        draft.replace(file)
        _sync_folder(file.parent)
    except OSError as problem:
        raise MasterKeyFixed(
            f"The signer may not write {file} ({problem.strerror}). Change the file yourself, as docs/recovery.md "
            "says, and repeat the command."
        ) from None


def _write(descriptor: int, content: str) -> None:
    with os.fdopen(descriptor, "w") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _line(version: int, key: bytes) -> str:
    return f"{version} {key.hex()}\n"
