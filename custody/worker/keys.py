"""The keyring while a worker runs: the file says what each version is, the database which of them seals.

So every worker of a database seals with the same version, and one whose file lacks it refuses instead of going on with
an older one. A version that came later is read from the file when it is met, on SIGHUP, or within two seconds.
"""

import asyncio
from pathlib import Path
from typing import Any, Literal

from custody.kit.db import DatabaseAway, Pool
from custody.kit.logs import logger
from custody.worker.key_file import KeyFile, KeyFileProblem, WrongKeyFile
from custody.worker.keyring import Keyring
from custody.worker.sealing import Sealer

log = logger(__name__)
WATCH_SECONDS = 2.0
# The column of key_versions by which this kind of file is known again.
Fingerprint = Literal["fingerprint", "identity_fingerprint"]


class Keys:
    """Keeps the sealer's versions up to date with file and database."""

    def __init__(self, pool: Pool, file: KeyFile, sealer: Sealer, fingerprint: Fingerprint) -> None:
        self._pool = pool
        self._file = file
        self._sealer = sealer
        self._versions = (
            f"SELECT version, {fingerprint} AS fingerprint, added_at, begun_at, retired_at "  # noqa: S608
            "FROM key_versions ORDER BY version"
        )
        self._stamp = _stamp(file.path)
        self._asked = asyncio.Event()
        self._complained: str | None = None
        self._fingerprints: dict[int, bytes] = {}

    async def begin(self) -> None:
        """Hold the file against the database; KeyFileProblem where they do not belong together."""
        self._sealer.look_again = self._look_again
        async with self._pool.acquire() as connection:
            self._take(self._sealer.keyring, await connection.fetch(self._versions))

    @property
    def path(self) -> Path:
        """Name where the file lies."""
        return self._file.path

    async def refresh(self) -> None:
        """Read file and database again; what cannot be used is logged, and the worker goes on with what it has."""
        self._look_again()
        async with self._pool.acquire() as connection:
            rows = await connection.fetch(self._versions)
        try:
            self._take(self._sealer.keyring, rows)
        except KeyFileProblem as problem:
            self._complain(problem.message)
        else:
            self._complained = None

    def call(self) -> None:
        """Refresh soon: SIGHUP."""
        self._asked.set()

    async def watch(self) -> None:
        """Refresh for as long as the worker runs."""
        while True:
            try:
                async with asyncio.timeout(WATCH_SECONDS):
                    await self._asked.wait()
            except TimeoutError:
                pass
            self._asked.clear()
            try:
                await self.refresh()
            except DatabaseAway:
                continue
            except Exception:  # the edge of a look: one that fails must not be the last
                log.exception("the versions of a key file could not be read")

    def read_file(self) -> None:
        """Take the file as it is now; KeyFileProblem where it cannot be used."""
        self._stamp = _stamp(self.path)
        now, found = self._sealer.keyring, self._file.read()
        # What is sealed with a key that no other host knows by this version would be lost with this file.
        if wrong := self._not_ours(found):
            raise self._another_key(wrong)
        self._renew(Keyring(found.versions, now.newest, now.known))

    def _renew(self, keyring: Keyring) -> None:
        """Go on with these versions."""
        self._sealer.renew(keyring)

    def _look_again(self) -> None:
        if _stamp(self.path) == self._stamp:
            return
        try:
            self.read_file()
        except KeyFileProblem as problem:
            self._complain(problem.message)

    def _take(self, keyring: Keyring, rows: list[Any]) -> None:
        begun = [row["version"] for row in rows if row["begun_at"] is not None]
        self._fingerprints = {row["version"]: row["fingerprint"] for row in rows}
        wrong = self._not_ours(keyring)
        keyring = Keyring({v: key for v, key in keyring.versions.items() if v not in wrong}, keyring.sealing)
        # Never back: who can write the database must not have new values sealed with an older key.
        sealing = max([*begun, keyring.sealing or 0]) or None
        # Of a retired one nothing is left but what callers still hold, which ended.
        known = frozenset(row["version"] for row in rows if row["retired_at"] is None)
        self._renew(Keyring(keyring.versions, sealing, known))
        if wrong:
            raise self._another_key(wrong)
        for row in rows:
            version = row["version"]
            if version not in keyring.versions and row["begun_at"] is not None and row["retired_at"] is None:
                raise KeyFileProblem(
                    f"The {self._file.name} {self.path} lacks version {version}, which this database is sealed with. "
                    f"{self._file.cure_lacking}"
                )

    def _not_ours(self, keyring: Keyring) -> list[int]:
        """Versions by which the database means another key."""
        sealer = Sealer(keyring)
        known = keyring.versions.keys() & self._fingerprints.keys()
        return sorted(version for version in known if sealer.fingerprint(version) != self._fingerprints[version])

    def _another_key(self, versions: list[int]) -> KeyFileProblem:
        return (WrongKeyFile if self._file.process == "signer" else KeyFileProblem)(  # identity's is written again
            f"The {self._file.name} {self.path} does not match this database: its version "
            f"{versions[0]} is another key. {self._file.cure_other}"
        )

    def _complain(self, what: str) -> None:
        # Once, not every two seconds.
        if what != self._complained:
            log.error("a key file was not taken", extra={"reason": what})
        self._complained = what


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
