"""The key of the sealed master key file, handed over by who asked a holder: never asked for here."""

import os
import re
import stat
from pathlib import Path

from custody.kit.key_head import KEY_BYTES
from custody.worker.key_file import KeyFileProblem, WrongKeyFile
from custody.worker.sealed_keys import FileKey

VARIABLE = "SERVICE_MASTER_KEY_UNLOCK"
_DESCRIPTOR = re.compile(r"fd:([0-9]{1,6})", re.ASCII)
_IN_MEMORY = {"tmpfs", "ramfs"}


class Unlock:
    """The place of the key: a descriptor of memory, a file in memory, or a folder there with a file for each id."""

    def __init__(self, given: str) -> None:
        """Take what the variable says. A descriptor is read here, once, and closed."""
        self._path, self._key = Path(given), None
        if said := _DESCRIPTOR.fullmatch(given):
            self._key = _read_descriptor(int(said[1]))
        elif not self._path.is_absolute():
            raise WrongKeyFile(f"{VARIABLE} is fd:N, or the absolute path of a file or folder in memory.")

    def __repr__(self) -> str:
        return "Unlock()"

    def key_of(self, file: str) -> FileKey:
        """The key of the file with this id; KeyFileProblem while it is not there."""
        if self._key is not None:
            return self._key
        return FileKey(_read(self._path / file if self._path.is_dir() else self._path))


def _read_descriptor(number: int) -> FileKey:
    try:
        if number <= 2 or not os.readlink(f"/proc/self/fd/{number}").startswith("/memfd:"):
            raise WrongKeyFile(f"{VARIABLE}: descriptor {number} is not one of memory.")
        key = os.pread(number, KEY_BYTES + 1, 0)
        os.close(number)
    except OSError as problem:
        raise WrongKeyFile(f"{VARIABLE}: descriptor {number} cannot be read: {problem.strerror}.") from None
    return FileKey(_insist(key, f"descriptor {number}"))


def _read(path: Path) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as problem:
        raise KeyFileProblem(
            f"The key of the sealed master key file is not at {path}: {problem.strerror}. Its opener has not put it "
            "there, or put it elsewhere."
        ) from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise WrongKeyFile(f"{VARIABLE}: {path} is not a file.")
        if stat.S_IMODE(found.st_mode) & 0o077:
            raise WrongKeyFile(f"Others can read {path}, the key of the master key file. It has mode 0400.")
        if _file_system(found.st_dev) not in _IN_MEMORY:
            raise WrongKeyFile(f"{VARIABLE}: {path} is not in memory (tmpfs), so a disk would keep it.")
        return _insist(os.read(descriptor, KEY_BYTES + 1), str(path))
    finally:
        os.close(descriptor)


def _insist(key: bytes, where: str) -> bytes:
    if len(key) != KEY_BYTES:
        raise WrongKeyFile(f"{VARIABLE}: {where} has not exactly 32 bytes.")
    return key


def _file_system(device: int) -> str:
    """The type of a mounted file system, by its device's number; empty where the kernel lists none."""
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        mounted, _, kind = line.partition(" - ")
        if mounted.split(" ")[2] == number:
            return kind.split(" ")[0]
    return ""
