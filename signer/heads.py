"""The highest policy version seen of each agent, kept beside the database (promise P7).

Putting back an old sealed head together with its old rules would pass every MAC. It does not pass this file.
Lines are appended and synced before the change is answered; on start the file is rewritten without the old ones.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

COMPACT_AFTER = 10_000


class RolledBack(Exception):
    """The database holds an older policy set than this signer has already seen."""


class Heads:
    """Versions by (tenant, agent, incarnation). Version 1, the one made with the agent, needs no line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: dict[tuple[str, str, str], int] = {}
        self._file: TextIO | None = None
        self._appended = 0

    def load(self) -> None:
        """Read what was seen, and write it back compacted."""
        self._read()
        self._compact()

    def seen_on_disk(self) -> dict[str, dict[tuple[str, str], int]]:
        """As `by_tenant`, read from the file; for who looks only, beside a signer that may run."""
        self._read()
        return self.by_tenant()

    def _read(self) -> None:
        if self._path.exists():
            for line in self._path.read_text().splitlines():
                parts = line.split(" ")
                # A line cut off by a crash was never acknowledged.
                if len(parts) == 5 and parts[3].isdigit() and parts[4] == ".":
                    self._seen[(parts[0], parts[1], parts[2])] = max(
                        int(parts[3]), self._seen.get((parts[0], parts[1], parts[2]), 0)
                    )

    def _compact(self) -> None:
        fresh = self._path.with_suffix(".new")
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.writelines(f"{t} {a} {i} {v} .\n" for (t, a, i), v in self._seen.items())
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)
        self.close()
        self._file = self._path.open("a")
        self._appended = 0

    def check(self, tenant: str, agent: str, incarnation: str, version: int) -> None:
        """Raise RolledBack for a version older than one seen; remember a newer one."""
        seen = self._seen.get((tenant, agent, incarnation), 1)
        if version < seen:
            raise RolledBack
        if version > seen:
            self.remember(tenant, agent, incarnation, version)

    def remember(self, tenant: str, agent: str, incarnation: str, version: int) -> None:
        """Record a version that was committed, durably."""
        assert self._file is not None  # noqa: S101 - load() comes first
        key = (tenant, agent, incarnation)
        # Two changes that commit one after the other may be remembered the other way round.
        self._seen[key] = max(version, self._seen.get(key, 0))
        self._file.write(f"{tenant} {agent} {incarnation} {version} .\n")
        self._file.flush()
        os.fdatasync(self._file.fileno())
        self._appended += 1
        if self._appended > COMPACT_AFTER:
            self._compact()

    def by_tenant(self) -> dict[str, dict[tuple[str, str], int]]:
        """The highest version seen of each agent and incarnation, tenant by tenant."""
        found: dict[str, dict[tuple[str, str], int]] = {}
        for (tenant, agent, incarnation), version in self._seen.items():
            found.setdefault(tenant, {})[(agent, incarnation)] = version
        return found

    def accept(self, older: Mapping[tuple[str, str, str], int]) -> None:
        """Take older versions for the newest, because the operator restored them; on disk when this returns."""
        self._seen.update(older)
        self._compact()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
