"""The folder of a key file: one program at a time replaces what is in it, so that no version is lost between two."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from custody.worker.key_file import KeyFileProblem


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Be the only one who replaces key files of a folder; KeyFileProblem where another program is at it."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise KeyFileProblem(f"Another program changes a key file in {folder} just now; repeat the command.") from None
    finally:
        os.close(handle)
