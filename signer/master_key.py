"""The master key: read from a file that only the signer can read, made once for an empty database, added to.

Each line of the file is a version. Nothing here ever replaces a key that could have sealed something: a version is
added beside the others, and taken out only when `signer/rotation/` has found that nothing uses it.
"""

import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from custody.kit.errors import Conflict
from custody.worker import key_file
from custody.worker.key_file import KeyFile, KeyFileProblem, WrongKeyFile
from custody.worker.keyring import Keyring

HEAD = "# Custody master key. Keep a copy apart from the database: without it everything sealed is lost.\n"


class MasterKeyFixed(Conflict):
    """The signer has no permission to write the master key file."""


def of(path: Path) -> KeyFile:
    """The master key file at a path."""
    return KeyFile(
        path=path,
        name="master key",
        process="signer",
        cure_other="Restore the right file.",
        cure_lacking="Copy its line from the host where it was made, or from your backup of the key.",
    )


def load(path: Path, *, anything_sealed: bool) -> tuple[Keyring, bool]:
    """The keyring, and whether it was made just now. Never makes a new key over sealed rows."""
    if _is_there(path):
        return of(path).read(), False
    if anything_sealed:
        raise WrongKeyFile(
            f"The database holds sealed keys, but there is no master key at {path}. Restore the file from your "
            "backup, or point SERVICE_MASTER_KEY_FILE to it. A new key cannot open them."
        )
    key = secrets.token_bytes(32)  # noqa: TID251 - the root of all keys
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        key_file.write(descriptor, HEAD + key_file.lines({1: key}))
        key_file.sync_folder(path.parent)
    except OSError as problem:
        raise KeyFileProblem(f"The master key {path} cannot be made: {problem.strerror}.") from None
    return Keyring({1: key}), True


def add(path: Path, version: int) -> None:
    """Put a fresh version beside the others, on disk when this returns; MasterKeyFixed where that may not be."""
    key = secrets.token_bytes(32)  # noqa: TID251 - the root of all keys
    text = path.read_text()
    _replace(path, f"{text}{'' if text.endswith('\n') else '\n'}{key_file.lines({version: key})}")


def remove(path: Path, versions: Iterable[int]) -> None:
    """Take versions out of the file; the others, and every comment, stay as they are."""
    gone = {str(version) for version in versions}
    lines = path.read_text().splitlines(keepends=True)
    _replace(path, "".join(line for line in lines if line.startswith("#") or line.strip().split(" ", 1)[0] not in gone))


def _is_there(path: Path) -> bool:
    """Say whether there is anything at all, a link to nothing too: only a name that is free may get a new key."""
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    except OSError as problem:
        raise KeyFileProblem(f"The master key {path} cannot be looked at: {problem.strerror}.") from None
    return True


def _replace(path: Path, content: str) -> None:
    """Replace the file atomically, also across a power failure."""
    file = path.resolve()
    draft = file.with_name(f".{file.name}.new")
    owner = file.stat()
    try:
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        if (owner.st_uid, owner.st_gid) != (os.geteuid(), os.getegid()):
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
        key_file.write(descriptor, content)
        draft.replace(file)
        key_file.sync_folder(file.parent)
    except OSError as problem:
        raise MasterKeyFixed(
            f"The signer may not write {file} ({problem.strerror}). Change the file yourself (docs/recovery.md), "
            "then repeat the command."
        ) from None
