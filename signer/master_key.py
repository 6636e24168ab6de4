"""The master key: read from a file that only the signer can read, made once for an empty database, added to.

Each line of the file is a version; of a sealed file, each line of what it keeps. Nothing here ever replaces a key that
could have sealed something: a version is added beside the others, and taken out only when `signer/rotation/` has found
that nothing uses it. Who opens a sealed file is not changed here: its head stays as it is, to the byte.
"""

import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from custody.kit import key_head
from custody.kit.errors import Conflict
from custody.kit.key_head import Head, MalformedHead
from custody.worker import key_file, key_folder
from custody.worker.key_file import KeyFile, KeyFileProblem, WrongKeyFile
from custody.worker.keyring import Keyring
from custody.worker.sealed_keys import CannotBeOpened
from signer.unlock import VARIABLE, Unlock

HEAD = "# Custody master key. Keep a copy apart from the database: without it everything sealed is lost.\n"


class MasterKeyFixed(Conflict):
    """The signer has no permission to write the master key file."""


class MasterKeyFile:
    """The master key file at a path, and what opens it where it is sealed."""

    def __init__(self, path: Path, unlock: str | None) -> None:
        self.path = path
        self._unlock = Unlock(unlock) if unlock else None
        self.file = KeyFile(
            path=path,
            name="master key",
            process="signer",
            cure_other="Restore the right file.",
            cure_lacking="Copy its line from the host where it was made, or from your backup of the key.",
            opened=lambda content: key_file.bytes_of(self._read_lines(content)),
        )

    def load(self, *, anything_sealed: bool) -> tuple[Keyring, bool]:
        """The keyring, and whether it was made just now. Never makes a new key over sealed rows."""
        if _is_there(self.path):
            if anything_sealed or not self._is_prepared():
                return self.file.read(), False
            # Holders may be changed at any time: who read the file before must not put it back without its version.
            with key_folder.alone(self.path.resolve().parent):
                if not self._is_prepared():
                    return self.file.read(), False
                made = _make()
                self._replace(HEAD + key_file.lines(made.versions))
            return made, True
        if anything_sealed:
            raise WrongKeyFile(
                f"The database holds sealed keys, but there is no master key at {self.path}. Restore the file from "
                "your backup, or point SERVICE_MASTER_KEY_FILE to it. A new key cannot open them."
            )
        if self._unlock is not None:
            raise WrongKeyFile(
                f"There is no master key file at {self.path} that {VARIABLE} could open. Make one with `custody keys "
                "lock`, or unset SERVICE_MASTER_KEY_SOURCE."
            )
        made = _make()
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            key_file.write(descriptor, HEAD + key_file.lines(made.versions))
            key_file.sync_folder(self.path.parent)
        except OSError as problem:
            raise KeyFileProblem(f"The master key {self.path} cannot be made: {problem.strerror}.") from None
        return made, True

    def add(self, version: int) -> None:
        """Put a fresh version beside the others, on disk when this returns; MasterKeyFixed where that may not be."""
        with key_folder.alone(self.path.resolve().parent):
            text = self._read_lines(self.path.read_bytes())
            self._replace(f"{text}{'' if text.endswith('\n') else '\n'}{key_file.lines(_make(version).versions)}")

    def remove(self, versions: Iterable[int]) -> None:
        """Take versions out of the file; the others, and every comment, stay as they are."""
        gone = {str(version) for version in versions}
        with key_folder.alone(self.path.resolve().parent):
            lines = self._read_lines(self.path.read_bytes()).splitlines(keepends=True)
            kept = [line for line in lines if line.startswith("#") or line.strip().split(" ", 1)[0] not in gone]
            self._replace("".join(kept))

    def head(self) -> Head | None:
        """The head of a sealed file, to the byte; None of a plain one."""
        content = self.path.read_bytes()
        return key_head.split(content)[0] if key_head.is_sealed(content) else None

    def _read_lines(self, content: bytes) -> str:
        """The lines of a plain file, or those that a sealed one keeps; WrongKeyFile where it is not as it should be."""
        if not key_head.is_sealed(content):
            if self._unlock is not None:
                raise WrongKeyFile(
                    f"The master key {self.path} is not sealed, though {VARIABLE} is set. Seal it with `custody keys "
                    "lock`, or unset SERVICE_MASTER_KEY_SOURCE."
                )
            return key_file.text_of(content)
        if self._unlock is None:
            raise WrongKeyFile(
                f"The master key {self.path} is sealed. Set SERVICE_MASTER_KEY_SOURCE to the kinds of its holders."
            )
        try:
            return self._unlock.key_of(key_head.split(content)[0].file).open(content)
        except (MalformedHead, CannotBeOpened) as problem:
            raise WrongKeyFile(f"{self.path}: {problem.message}") from None

    def _is_prepared(self) -> bool:
        """Say whether it is a sealed file without a version: `custody keys lock` made it for a first start."""
        try:
            content = self.path.read_bytes()
        except OSError:
            return False
        return key_head.is_sealed(content) and not self._read_lines(content)

    def _replace(self, text: str) -> None:
        """Replace the file atomically, also across a power failure; sealed as it was."""
        file = self.path.resolve()
        draft = file.with_name(f".{file.name}.new")
        owner = file.stat()
        try:
            now = file.read_bytes()
            content = self._seal(now, text) if key_head.is_sealed(now) else key_file.bytes_of(text)
            draft.unlink(missing_ok=True)
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            if (owner.st_uid, owner.st_gid) != (os.geteuid(), os.getegid()):
                os.fchown(descriptor, owner.st_uid, owner.st_gid)
            key_file.write(descriptor, key_file.text_of(content))
            draft.replace(file)
            key_file.sync_folder(file.parent)
        except OSError as problem:
            raise MasterKeyFixed(
                f"The signer may not write {file} ({problem.strerror}). Change the file yourself (docs/recovery.md), "
                "then repeat the command."
            ) from None

    def _seal(self, now: bytes, text: str) -> bytes:
        head = key_head.split(now)[0]
        if self._unlock is None:
            raise WrongKeyFile(f"The master key {self.path} is sealed, and {VARIABLE} is not set.")
        return self._unlock.key_of(head.file).seal(head, text)


def _make(version: int = 1) -> Keyring:
    return Keyring({version: secrets.token_bytes(32)})  # noqa: TID251 - the root of all keys


def _is_there(path: Path) -> bool:
    """Say whether there is anything at all, a link to nothing too: only a name that is free may get a new key."""
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    except OSError as problem:
        raise KeyFileProblem(f"The master key {path} cannot be looked at: {problem.strerror}.") from None
    return True
