"""Files that are their owner's alone: keys, tokens, settings. What others could have read or written is not used."""

import os
import stat
from pathlib import Path
from typing import Final

_MOST_BYTES: Final = 65_536


class Exposed(Exception):
    """Others can read the file; the message names it and the cure."""


def read(file: Path, *, secret: bool = True) -> str:
    """The text of a private file. Raises Exposed, OSError, or ValueError for what is no text.

    What is not `secret` others may read, but not write.
    """
    with file.open("rb") as opened:
        # Asked of what was opened: the name may lead elsewhere a moment later.
        state = os.fstat(opened.fileno())
        if stat.S_IMODE(state.st_mode) & (0o077 if secret else 0o022):
            raise Exposed(
                f"others can {'read' if secret else 'change'} {file}, so it is not used; run: chmod 600 {file}"
            )
        if state.st_uid not in (os.geteuid(), 0):
            raise Exposed(f"{file} belongs to another user, so it is not used; create your own")
        content = opened.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise ValueError("it is too long")
    return content.decode()


def write(file: Path, text: str) -> None:
    """Put a text into a private file, whole or not at all. Raises OSError."""
    fresh = file.with_name(f"{file.name}.{os.getpid()}.new")
    fresh.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        fresh.replace(file)
    finally:
        fresh.unlink(missing_ok=True)
