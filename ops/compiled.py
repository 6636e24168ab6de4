"""Compiled code that was cut short: a disk that is full while Python writes it leaves a file that no start survives.

Some versions of Python put such a file in place as if it were whole, and every import of it fails until it is removed.
"""

import shutil
from pathlib import Path

from ops.children import Program
from ops.logs import tail
from ops.runtime import PACKAGES, PROJECT

_SAID = ("EOFError: marshal data too short", "EOFError: EOF read where", "ValueError: bad marshal data")
_LINES = 3


def cut_short(log: Path) -> bool:
    """Say whether a process' last words are those of an import of such a file."""
    said = tail(log, _LINES)
    return any(words in said for words in _SAID)


def clear(program: Program) -> Path | None:
    """Remove the compiled code of a process that died of it; everything is compiled again. None: it did not."""
    if not cut_short(program.log):
        return None
    # So that the next death is judged by its own words.
    with program.log.open("a") as log:
        log.write("compiled code was cut short, and is removed\n" * _LINES)
    if own := program.environment.get("PYTHONPYCACHEPREFIX"):
        # The folder is the process' own; what links lead to is not followed.
        shutil.rmtree(own, ignore_errors=True)
        return Path(own)
    for package in PACKAGES:
        for folder in (PROJECT / package).rglob("__pycache__"):
            shutil.rmtree(folder, ignore_errors=True)
    return PROJECT / "**/__pycache__"
