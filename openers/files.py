"""Files that settings of openers lead to: what is executed or loaded, and what is secret."""

import os
import stat
from pathlib import Path

from openers.outcomes import BadSettings

MOST_SECRET_BYTES = 256
_FOR_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_WRITABLE = stat.S_IWGRP | stat.S_IWOTH


def trusted_code(variable: str, example: str) -> str:
    """The path of code that only root and we can change, for it sees the key."""
    path = _path(variable, example)
    found = _look(variable, path)
    if found.st_mode & _WRITABLE or found.st_uid not in (0, os.geteuid()):
        raise BadSettings(f"{variable}: others can change {path}. chown root and chmod go-w it.")
    return str(path)


def secret_text(variable: str, example: str, most: int = MOST_SECRET_BYTES) -> str:
    """One line of a file that nobody else can read; only its end of line is taken away."""
    path = _path(variable, example)
    _look(variable, path)
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            content = file.read(most + 1)
    except OSError as problem:
        raise BadSettings(f"{variable}: {path} cannot be read: {problem.strerror}.") from None
    # Root locks the file with the secret of the user who opens it later.
    if found.st_mode & _FOR_OTHERS or (found.st_uid != os.geteuid() != 0):
        raise BadSettings(f"{variable}: {path} is not for us alone. chown it to the opener's user, and chmod 0600 it.")
    try:
        text = content.removesuffix(b"\n").removesuffix(b"\r").decode()
    except UnicodeDecodeError:
        text = ""
    if not text.isprintable() or not text or len(content) > most:
        raise BadSettings(f"{variable}: {path} holds one line of text, of {most} bytes at most.")
    return text


def _path(variable: str, example: str) -> Path:
    path = Path(os.environ.get(variable, ""))
    if not path.is_absolute():
        raise BadSettings(f"{variable} is not set to an absolute path, such as {example}.")
    return path


def _look(variable: str, path: Path) -> os.stat_result:
    """Its state; a fifo or a device is refused before it is opened."""
    try:
        found = path.stat()
    except OSError as problem:
        raise BadSettings(f"{variable}: {path} is not there or not for us: {problem.strerror}.") from None
    if not stat.S_ISREG(found.st_mode):
        raise BadSettings(f"{variable}: {path} is no file.")
    return found
