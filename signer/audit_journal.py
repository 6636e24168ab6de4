"""The size of each audit log when this signer last sealed it, kept beside the database (promise P7).

A signer must never sign two checkpoints of one log that contradict each other. An older database put back would have it
do so: its logs are shorter than this file says, or have another root. Lines are appended after a sealing has committed;
the last line of a log counts, because an operator who restored on purpose may make it shorter.
"""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import msgspec

from custody.kit.logs import logger

log = logger(__name__)
COMPACT_AFTER = 10_000


class Seen(msgspec.Struct, frozen=True):
    """Size and root of a log."""

    size: int
    root: bytes


class Journal:
    """The last seen of each log."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: dict[str, Seen] = {}
        self._file: TextIO | None = None
        self._appended = 0

    def load(self) -> None:
        """Read what was seen, and write it back compacted."""
        if self._path.exists():
            for line in self._path.read_text().splitlines():
                parts = line.split(" ")
                # A line cut off by a crash is one sealing behind; the next look at the log finds that it went on.
                if len(parts) == 4 and parts[1].isdigit() and len(parts[2]) == 64 and parts[3] == ".":
                    self._seen[parts[0]] = Seen(int(parts[1]), bytes.fromhex(parts[2]))
        self._compact()

    def find(self, tenant: str) -> Seen | None:
        """Find what was seen of a log, or None for one that this signer has never sealed."""
        return self._seen.get(tenant)

    def sizes(self) -> Iterator[tuple[str, int]]:
        """Every log, and how long it was."""
        return ((tenant, seen.size) for tenant, seen in self._seen.items())

    def remember(self, tenant: str, size: int, root: bytes) -> None:
        """Note a sealing that was committed; `sync` makes the notes durable."""
        assert self._file is not None  # noqa: S101 - load() comes first
        self._seen[tenant] = Seen(size, root)
        self._file.write(_line(tenant, self._seen[tenant]))
        self._appended += 1

    def accept(self, tenant: str, size: int, root: bytes) -> None:
        """Go on from a log as it was restored, although it is shorter or another: an operator said so."""
        self.remember(tenant, size, root)
        self.sync()

    def sync(self) -> None:
        """Everything that was noted is on the disk."""
        assert self._file is not None  # noqa: S101 - load() comes first
        self._file.flush()
        os.fdatasync(self._file.fileno())
        if self._appended > COMPACT_AFTER:
            self._compact()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _compact(self) -> None:
        fresh = self._path.with_suffix(".new")
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.writelines(_line(tenant, seen) for tenant, seen in self._seen.items())
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)
        self.close()
        self._file = self._path.open("a")
        self._appended = 0


class Stop(msgspec.Struct, frozen=True):
    """Why a log is signed no more. `other`: the database holds another log than this signer sealed."""

    reason: str
    other: bool


class AuditLog:
    """Sealing's memory between messages."""

    def __init__(self, journal: Journal, checkpoint_file: Path | None) -> None:
        self.journal = journal
        # One sealing at a time, so that the journal's last line of a log is the newest.
        self.turn = asyncio.Lock()
        # Why a log is signed no more.
        self.stopped: dict[str, Stop] = {}
        # Checkpoints that are committed and not yet published: the newest of each log.
        self.notes: dict[str, str] = {}
        self.after = ""
        self.compared = False
        self._checkpoint_file = checkpoint_file

    def publish(self) -> None:
        """Put what was sealed on our own disk and in the operator's file: the copies no database writer reaches."""
        if not self.notes:
            return
        self.journal.sync()
        if self._checkpoint_file is not None:
            try:
                with self._checkpoint_file.open("a") as file:
                    file.writelines(f"{note}\n" for note in self.notes.values())
                    file.flush()
                    os.fsync(file.fileno())
            except OSError as problem:
                # Kept, so that they are written when there is room again.
                log.error("checkpoints were not written to their file", extra={"reason": problem.strerror})
                return
        self.notes.clear()


def _line(tenant: str, seen: Seen) -> str:
    return f"{tenant} {seen.size} {seen.root.hex()} .\n"
