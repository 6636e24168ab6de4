"""The keyring while the signer runs: the file says what each version is, the database which of them seals.

So every signer of a database seals with the same version, and one whose file lacks it refuses instead of going on with
an older one. A version that another host added is read from the file when it is met, on SIGHUP, or within two seconds.
"""

import asyncio
from pathlib import Path
from typing import Any

from custody.kit.db import DatabaseAway, Pool
from custody.kit.logs import logger
from signer import master_key
from signer.master_key import Keyring, MasterKeyProblem
from signer.sealing import Sealer

log = logger(__name__)
WATCH_SECONDS = 2.0
# Any number that only these stories use: of two signers one adds or retires, the other finds it done.
ADVISORY_LOCK = "SELECT pg_advisory_xact_lock(7160012)"
_ALL = "SELECT version, fingerprint, added_at, begun_at, retired_at FROM key_versions ORDER BY version"
_ADD = (
    "INSERT INTO key_versions (version, fingerprint, begun_at) "
    "VALUES ($1, $2, CASE WHEN $3 THEN service_now() END) ON CONFLICT (version) DO NOTHING"
)


class Keys:
    """Keeps the sealer's versions up to date with file and database."""

    def __init__(self, pool: Pool, path: Path, sealer: Sealer) -> None:
        self._pool = pool
        self.path = path
        self._sealer = sealer
        self._stamp = _stamp(path)
        self._asked = asyncio.Event()
        self._complained: str | None = None
        self._fingerprints: dict[int, bytes] = {}

    async def begin(self) -> None:
        """Hold the file against the database; MasterKeyProblem where they do not belong together."""
        self._sealer.look_again = self._look_again
        async with self._pool.acquire() as connection:
            self._take(self._sealer.keyring, await connection.fetch(_ALL))

    async def register(self) -> None:
        """Write down the versions of the file that the database does not know. Call it once they opened something."""
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.execute(ADVISORY_LOCK)
            await self.register_in(connection)

    async def register_in(self, connection: Any) -> list[Any]:
        """The same in a transaction that holds the lock; every version, as the database has them then."""
        rows = await connection.fetch(_ALL)
        known = {row["version"] for row in rows}
        # The first versions of a database have sealed already; one that comes later waits until it is begun.
        for version in sorted(self._sealer.keyring.versions.keys() - known):
            await connection.execute(_ADD, version, self._sealer.fingerprint(version), not known)
        rows = await connection.fetch(_ALL)
        self._take(self._sealer.keyring, rows)
        return list(rows)

    async def refresh(self) -> None:
        """Read file and database again; what cannot be used is logged, and the signer goes on with what it has."""
        self._look_again()
        async with self._pool.acquire() as connection:
            rows = await connection.fetch(_ALL)
        try:
            self._take(self._sealer.keyring, rows)
        except MasterKeyProblem as problem:
            self._complain(problem.message)
        else:
            self._complained = None

    def ask(self) -> None:
        """Refresh soon: SIGHUP."""
        self._asked.set()

    async def watch(self) -> None:
        """Refresh for as long as the signer runs."""
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
                log.exception("the versions of the master key could not be read")

    def read_file(self) -> None:
        """Take the file as it is now; MasterKeyProblem where it cannot be used."""
        self._stamp = _stamp(self.path)
        now, found = self._sealer.keyring, master_key.read(self.path)
        # What is sealed with a key that no other host knows by this version would be lost with this file.
        if wrong := self._not_ours(found):
            raise self._another_key(wrong)
        self._sealer.renew(Keyring(found.versions, now.newest, now.known))

    def _look_again(self) -> None:
        if _stamp(self.path) == self._stamp:
            return
        try:
            self.read_file()
        except MasterKeyProblem as problem:
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
        self._sealer.renew(Keyring(keyring.versions, sealing, known))
        if wrong:
            raise self._another_key(wrong)
        for row in rows:
            version = row["version"]
            if version not in keyring.versions and row["begun_at"] is not None and row["retired_at"] is None:
                raise MasterKeyProblem(
                    f"The master key {self.path} lacks version {version}, which this database is sealed with. Copy "
                    "its line from the host where it was made, or from your backup of the key."
                )

    def _not_ours(self, keyring: Keyring) -> list[int]:
        """Versions by which the database means another key."""
        sealer = Sealer(keyring)
        known = keyring.versions.keys() & self._fingerprints.keys()
        return sorted(version for version in known if sealer.fingerprint(version) != self._fingerprints[version])

    def _another_key(self, versions: list[int]) -> MasterKeyProblem:
        return MasterKeyProblem(
            f"The master key {self.path} does not open what is sealed in this database: its version {versions[0]} is "
            "another key. Put the right one back."
        )

    def _complain(self, what: str) -> None:
        # Once, not every two seconds.
        if what != self._complained:
            log.error("the master key file was not taken", extra={"reason": what})
        self._complained = what


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
