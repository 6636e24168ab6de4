"""The master key: read from a file that only the signer can read, or made once for an empty database. Design 5."""

import os
import secrets
import stat
from pathlib import Path

import msgspec


class MasterKeyProblem(SystemExit):
    """The signer does not start with a missing, readable-by-others or malformed master key."""


class Keyring(msgspec.Struct, frozen=True):
    """Versions of the master key; new values are sealed with the newest, old ones stay readable."""

    versions: dict[int, bytes]

    @property
    def newest(self) -> int:
        """The version that seals."""
        return max(self.versions)

    def __repr__(self) -> str:
        return f"Keyring(versions={sorted(self.versions)})"


def load(path: Path, *, anything_sealed: bool) -> tuple[Keyring, bool]:
    """The keyring, and whether it was made just now. Never makes a new key over sealed rows."""
    if path.exists():
        return _read(path), False
    if anything_sealed:
        raise MasterKeyProblem(
            f"The database holds sealed keys, but there is no master key at {path}. Put the file back from your "
            "backup, "
            "or point SERVICE_MASTER_KEY_FILE to it. A new key could never open them."
        )
    key = secrets.token_bytes(32)  # noqa: TID251 - the root of all keys
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(
            "# Custody master key. Keep a copy apart from the database: without it everything sealed is lost.\n1 "
            f"{key.hex()}\n"
        )
        file.flush()
        os.fsync(file.fileno())
    return Keyring({1: key}), True


def _read(path: Path) -> Keyring:
    try:
        mode = path.stat().st_mode
        text = path.read_text()
    except OSError as problem:
        raise MasterKeyProblem(f"The master key {path} cannot be read: {problem.strerror}.") from None
    if stat.S_IMODE(mode) & 0o077:
        raise MasterKeyProblem(f"Others can read the master key {path}. Run: chmod 600 {path}")
    versions = {}
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        version, _, key = line.strip().partition(" ")
        # The text of the line never enters the message.
        if not version.isdigit() or len(key) != 64 or any(c not in "0123456789abcdef" for c in key):
            raise MasterKeyProblem(f"{path} is not a master key file: each line is a version and 64 hex digits.")
        versions[int(version)] = bytes.fromhex(key)
    if not versions:
        raise MasterKeyProblem(f"{path} holds no key.")
    return Keyring(versions)
