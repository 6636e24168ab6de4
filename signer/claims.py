"""Approvals that were signed under votes, and approvers' keys that were revoked, beside the database (promise P7).

A database writer who puts an item, its order and all its votes back would otherwise get a second signature for them,
and who puts a revoked key back would get its votes counted. Neither passes this file. A line is synced before the write
that it is about: what dies in between refuses the item until its votes have ended, which is the safe side.
"""

import os
import time
from pathlib import Path
from typing import Final, TextIO

COMPACT_AFTER: Final = 10_000
# Kept so long after the last vote ended: this process' clock is not the database's.
_MARGIN_SECONDS: Final = 60 * 60


class Claims:
    """Approvals by id, until when their votes may count; and revoked keys by tenant and fingerprint."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._claimed: dict[str, int] = {}
        self._revoked: set[str] = set()
        self._file: TextIO | None = None
        self._appended = 0

    def load(self) -> None:
        """Read what was written, and write it back without what has ended."""
        if self._path.exists():
            for line in self._path.read_text().splitlines():
                self._read(line.split(" "))
        self._compact()

    def is_claimed(self, approval: str) -> bool:
        """Say whether this approval was signed under votes, or may have been."""
        return approval in self._claimed

    def claim(self, approval: str, until: int) -> None:
        """Note, before the write, that an approval is signed under votes that end then at the latest."""
        self._claimed[approval] = until
        self._append(f"claimed {approval} {until} .\n")

    def release(self, approval: str) -> None:
        """Note that the write did not happen."""
        self._claimed.pop(approval, None)
        self._append(f"released {approval} .\n")

    def is_revoked(self, key: str) -> bool:
        """Say whether this key was revoked."""
        return key in self._revoked

    def revoke(self, key: str) -> None:
        """Note that a key counts no more."""
        self._revoked.add(key)
        self._append(f"revoked {key} .\n")

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _read(self, words: list[str]) -> None:
        match words:
            # A line cut off by a crash was about nothing that was done.
            case ["claimed", approval, until, "."] if until.isdigit():
                self._claimed[approval] = int(until)
            case ["released", approval, "."]:
                self._claimed.pop(approval, None)
            case ["revoked", key, "."]:
                self._revoked.add(key)
            case _:
                pass

    def _append(self, line: str) -> None:
        assert self._file is not None  # noqa: S101 - load() comes first
        self._file.write(line)
        self._file.flush()
        os.fdatasync(self._file.fileno())
        self._appended += 1
        if self._appended > COMPACT_AFTER:
            self._compact()

    def _compact(self) -> None:
        ended = int(time.time()) - _MARGIN_SECONDS  # noqa: TID251 - beside the database there is no other clock
        self._claimed = {approval: until for approval, until in self._claimed.items() if until > ended}
        fresh = self._path.with_suffix(".new")
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.writelines(f"claimed {approval} {until} .\n" for approval, until in self._claimed.items())
            file.writelines(f"revoked {key} .\n" for key in sorted(self._revoked))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)
        self.close()
        self._file = self._path.open("a")
        self._appended = 0
