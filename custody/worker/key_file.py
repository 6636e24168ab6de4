"""Key files of workers: each line is a version and 64 hex digits, read strictly. Normative: docs/sealed-blob.md 2."""

import os
import re
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from custody.kit.errors import Conflict
from custody.worker.keyring import Keyring

# Four bytes of each sealed value say which; the database counts them as signed integers.
_HIGHEST = 2**31 - 1
_LINE = re.compile(r"([0-9]{1,10}) ([0-9a-f]{64})", re.ASCII)


class KeyFileProblem(Conflict):
    """The key file is missing, readable by others or malformed; the worker cannot use it."""


class WrongKeyFile(KeyFileProblem):
    """The key file is wrong, and only the operator can mend it: a restart would not help."""


class KeyFile(msgspec.Struct, frozen=True, kw_only=True):
    """The place of a worker's key, and the words for it in messages."""

    path: Path
    # "master key" and "signer", or "identity key" and "identity".
    name: str
    process: str
    # Permissions that it may not have.
    forbidden: int = 0o077
    # What the operator does about the key of another deployment, and about a version that is not in it.
    cure_other: str
    cure_lacking: str
    # What is read of the content: of a sealed one what it keeps.
    opened: Callable[[bytes], bytes] = bytes

    def read(self) -> Keyring:
        """The versions of a file that is there; KeyFileProblem, without a word of it, for one that cannot be used."""
        path, name = self.path, self.name
        try:
            found = path.stat()
            content = path.read_bytes() if stat.S_ISREG(found.st_mode) else None
        except OSError as problem:
            raise KeyFileProblem(
                f"The {name} {path} cannot be read: {problem.strerror}. Give the {self.process}'s user the file (mode "
                "0600) and access to the folders above it."
            ) from None
        if content is None:
            raise WrongKeyFile(f"The {name} {path} is not a file.")
        if stat.S_IMODE(found.st_mode) & self.forbidden:
            raise WrongKeyFile(f"Others can read the {name} {path}. Run: chmod 600 {path}")
        versions: dict[int, bytes] = {}
        # Strict to the letter: what an editor or a copy has changed is refused, not guessed at.
        for line in self.opened(content).decode("ascii", "replace").splitlines():
            if not line.strip() or line.startswith("#"):
                continue
            said = _LINE.fullmatch(line.strip())
            version = int(said[1]) if said else 0
            # The text of the line never enters the message.
            if said is None or not 1 <= version <= _HIGHEST or version in versions:
                raise WrongKeyFile(
                    f"{path} is not a {name} file: each line is a version, from 1 and once, and 64 hex digits. "
                    f"{self.cure_other}"
                )
            versions[version] = bytes.fromhex(said[2])
        if not versions:
            raise WrongKeyFile(f"{path} holds no key. {self.cure_other}")
        return Keyring(versions)


def lines(versions: Mapping[int, bytes]) -> str:
    """Versions as a key file has them."""
    return "".join(f"{version} {key.hex()}\n" for version, key in sorted(versions.items()))


def text_of(content: bytes) -> str:
    """The text of a key file. Its comments may be in any encoding, and stay as they are when it is written again."""
    return content.decode("utf-8", "surrogateescape")


def bytes_of(text: str) -> bytes:
    """The bytes of such a text."""
    return text.encode("utf-8", "surrogateescape")


def write(descriptor: int, content: str) -> None:
    """Write to the end of an open file, and have it on disk."""
    with os.fdopen(descriptor, "wb") as file:
        file.write(bytes_of(content))
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Have the names of a folder on disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
