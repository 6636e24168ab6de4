"""The versions of the master key while the signer runs, and of identity's key, which follows them."""

from typing import Any

from custody.kit.db import Pool
from custody.worker.keyring import Keyring
from custody.worker.keys import Keys
from custody.worker.sealing import Sealer
from signer.identity_key import IdentityKey
from signer.key_holders import KeyHolders
from signer.master_key import MasterKeyFile

# Any number that only these use cases use: of two signers one adds or retires, the other finds it done.
ADVISORY_LOCK = "SELECT pg_advisory_xact_lock(7160012)"
_ADD = (
    "INSERT INTO key_versions (version, fingerprint, identity_fingerprint, begun_at) "
    "VALUES ($1, $2, $3, CASE WHEN $4 THEN service_now() END) ON CONFLICT (version) DO NOTHING"
)


class MasterKeys(Keys):
    """Keeps both sealers and identity's key file up to date with the master key file and the database."""

    def __init__(self, pool: Pool, file: MasterKeyFile, sealer: Sealer, identity: IdentityKey) -> None:
        super().__init__(pool, file.file, sealer, "fingerprint")
        self.master = file
        # Notes who may open the file; not where somebody only looks.
        self.holders: KeyHolders | None = None
        self._identity = identity

    async def begin(self) -> None:
        """Hold the file against the database; KeyFileProblem where they do not belong together."""
        await super().begin()
        self._identity.sealer.look_again = self._sealer.look_again
        self._identity.keep()

    async def refresh(self) -> None:
        """Read file and database again, and note who may open the file now."""
        await super().refresh()
        if self.holders is not None:
            await self.holders.tell(self._pool)

    def read_file(self) -> None:
        """Take the file as it is now; KeyFileProblem where it cannot be used."""
        super().read_file()
        self._identity.keep()

    async def register(self) -> None:
        """Write down the versions of the file that the database does not know. Call it once they opened something."""
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.execute(ADVISORY_LOCK)
            await self.register_in(connection)

    async def register_in(self, connection: Any) -> list[Any]:
        """The same in a transaction that holds the lock; every version, as the database has them then."""
        rows = await connection.fetch(self._versions)
        known = {row["version"] for row in rows}
        # The first versions of a database have sealed already; one that comes later waits until it is begun.
        for version in sorted(self._sealer.keyring.versions.keys() - known):
            fingerprints = self._sealer.fingerprint(version), self._identity.sealer.fingerprint(version)
            await connection.execute(_ADD, version, *fingerprints, not known)
        rows = await connection.fetch(self._versions)
        self._take(self._sealer.keyring, rows)
        return list(rows)

    def _renew(self, keyring: Keyring) -> None:
        super()._renew(keyring)
        self._identity.follow(self._sealer)
