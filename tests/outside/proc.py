"""Processes as Linux shows them in /proc, where each may be gone as soon as it is listed."""

from contextlib import suppress
from pathlib import Path


def children(pid: int) -> dict[int, list[str]]:
    """Those of a process that are still there, each with the words of its command; none if the process is gone."""
    found = {}
    for child in _read(pid, f"task/{pid}/children").split():
        if words := words_of(int(child)):
            found[int(child)] = words
    return found


def words_of(pid: int) -> list[str]:
    """The words of a process' command; none if it is gone, or waits for nothing but to be counted."""
    return _read(pid, "cmdline").split("\0")[:-1]


def is_over(pid: int) -> bool:
    """Tell whether a process is gone, or waits for nothing but to be counted."""
    return _read(pid, "stat").rpartition(")")[2].split()[:1] in ([], ["Z"])


def catches(pid: int, number: int) -> bool:
    """Tell whether a process has a handler of its own for a signal; yes where nobody can tell."""
    caught = [line.split()[1] for line in _read(pid, "status").splitlines() if line.startswith("SigCgt:")]
    return not caught or bool(int(caught[0], 16) >> (number - 1) & 1)


def _read(pid: int, file: str) -> str:
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/{file}").read_text()
    return ""
