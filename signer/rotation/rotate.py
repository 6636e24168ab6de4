"""`RotateKeys`: a new version of the master key, and everything made again under it while the service runs.

There is no progress to keep: what is left to do is what an older version made. So a rotation that was cut off anywhere
goes on with the next call, and every version stays readable until nothing uses it and it is retired.
"""

from typing import Any

from custody.kit import clock
from custody.kit.errors import Conflict
from custody.protocol.signer.operation import (
    KeyVersion,
    KeyVersions,
    ReadyToRetire,
    RotateKeys,
    Rotation,
    StillOlder,
    VersionBegun,
    VersionsRetired,
)
from custody.worker import walk
from custody.worker.acts import operating, tell
from custody.worker.call import Call
from custody.worker.proven import ProvenPlatform
from custody.worker.registry import ENDS, IDENTITY_TABLES, IS_SETTLED, OLD_SESSIONS, SETTLED
from signer.context import Signer
from signer.rotation.keys import ADVISORY_LOCK
from signer.rotation.registry import KINDS

_BEGIN = "UPDATE key_versions SET begun_at = service_now() WHERE version <= $1 AND begun_at IS NULL"
_COUNT_SESSIONS = f"SELECT count(*) {OLD_SESSIONS}"
# Waits for current writers of sealed values; later ones find the version retired.
_STILL = "SELECT hold_sealed()"
# Everything that a version of the master key may be behind: what is ours, and what identity made with its own key.
_TABLES = {kind.table: kind.what for kind in KINDS} | IDENTITY_TABLES
_RETIRE = (
    "UPDATE key_versions SET retired_at = service_now() "
    "WHERE version < $1 AND begun_at IS NOT NULL AND retired_at IS NULL RETURNING version"
)


class KeysInUse(Conflict):
    """Sealed values still use an older version of the master key."""


async def rotate(signer: Signer, message: RotateKeys, call: Call[ProvenPlatform]) -> Rotation:
    """One act: status, prepare, begin, step, finish, ready or retire."""
    call.caller.need_unscoped()
    if message.act == "step":
        return await walk.step(signer, KINDS, message.table, message.after)
    if message.act == "ready":
        return await _ready(signer)
    if message.act == "retire":
        return await _retire(signer, call)
    if message.act in ("prepare", "begin"):
        return await _begin(signer, call, message)
    if message.act == "finish":
        return await _finish(signer, call)
    return await _status(signer)


async def _begin(signer: Signer, call: Call[ProvenPlatform], message: RotateKeys) -> VersionBegun:
    """Seal with another version from now on; go on with the last one where something older is left."""
    async with operating(signer, call) as connection:
        await connection.execute(ADVISORY_LOCK)
        signer.keys.read_file()
        rows = await signer.keys.register_in(connection)
        waiting = sum([sum(await _older(signer, connection, table)) for table in _TABLES])
        ready = [row["version"] for row in rows if row["begun_at"] is None]
        version: int = max(ready) if ready else signer.sealer.key_version
        begins = message.act == "begin"
        if not ready and (message.force or not waiting or not begins):
            version = max(row["version"] for row in rows) + 1
            # On disk before anything else knows of it; until it is begun nothing is sealed with it.
            signer.keys.master.add(version)
            signer.keys.read_file()
            await signer.keys.register_in(connection)
            await tell(connection, call, "key.version_added", "master_key", str(version))
            ready = [version]
        if begins and ready:
            await connection.execute(_BEGIN, version)
            await tell(connection, call, "key.version_begun", "master_key", str(version))
    # Only what is committed seals.
    await signer.keys.refresh()
    return VersionBegun(version, begins and bool(ready), waiting)


async def _finish(signer: Signer, call: Call[ProvenPlatform]) -> StillOlder:
    """Say what an older version still made, and note where it is nothing."""
    async with operating(signer, call) as connection:
        left = {what: sum(await _older(signer, connection, table)) for table, what in _TABLES.items()}
        left = {what: count for what, count in left.items() if count}
        if not left:
            await tell(connection, call, "key.rotated", "master_key", str(signer.sealer.key_version))
    return StillOlder(signer.sealer.key_version, left)


async def _ready(signer: Signer) -> ReadyToRetire:
    """Raise KeysInUse unless older versions can be retired, but for what ends by itself."""
    version = signer.sealer.key_version
    # What cannot be used now is found before anything is retired.
    signer.keys.read_file()
    async with signer.pool.acquire() as connection:
        await _nothing_older(signer, connection, version)
    return ReadyToRetire(version)


async def _retire(signer: Signer, call: Call[ProvenPlatform]) -> VersionsRetired:
    """Take older versions out of the file, once nothing uses them."""
    version = signer.sealer.key_version
    async with operating(signer, call) as connection:
        await connection.execute(ADVISORY_LOCK)
        signer.keys.read_file()
        await _nothing_older(signer, connection, version)
        await _nothing_that_ends(signer, connection, version)
        await connection.execute(_STILL)
        if any([*await _older(signer, connection, "sealed"), *await _older(signer, connection, "identity_sealed")]):
            raise KeysInUse("Something was sealed with an older version just now; repeat `custody keys rotate`.")
        retired = [row["version"] for row in await connection.fetch(_RETIRE, version)]
        for one in retired:
            await tell(connection, call, "key.version_retired", "master_key", str(one))
        rows = await signer.keys.register_in(connection)
    gone = {row["version"] for row in rows if row["retired_at"] is not None} & signer.sealer.keyring.versions.keys()
    if gone:
        # After the commit: cut off before this, the line stays in the file, and the next call takes it out.
        signer.keys.master.remove(gone)
        signer.keys.read_file()
    return VersionsRetired(version, sorted({*retired, *gone}))


async def _nothing_older(signer: Signer, connection: Any, version: int) -> None:
    if not await connection.fetchval(IS_SETTLED, version):
        raise KeysInUse(f"Version {version} seals for less than {SETTLED}; other signers may not know it yet.")
    for table, what in _TABLES.items():
        if count := sum(await _older(signer, connection, table)):
            raise KeysInUse(f"{count} {what} still use an older version; run `custody keys rotate` first.")


async def _nothing_that_ends(signer: Signer, connection: Any, version: int) -> None:
    """Refuse over what nobody can make again: identity ends it where the operator says so."""
    for table, what in ((end.table, end.what) for end in ENDS if end.table is not None):
        if count := sum(await _older(signer, connection, table)):
            raise KeysInUse(f"There are {count} {what}, of an older version. {_AT_ONCE}")
    if count := await connection.fetchval(_COUNT_SESSIONS, version):
        raise KeysInUse(f"{count} sessions may hold a refresh token of an older version. {_AT_ONCE}")


_AT_ONCE = "Wait until they end, or end them with `custody keys rotate --retire --at-once`."


async def _older(signer: Signer, connection: Any, table: str) -> list[int]:
    newest = signer.sealer.key_version
    return [count for version, count in (await walk.versions(connection, table)).items() if version != newest]


async def _status(signer: Signer) -> KeyVersions:
    await signer.keys.refresh()
    async with signer.pool.acquire() as connection:
        rows = await connection.fetch("SELECT version, added_at, begun_at, retired_at FROM key_versions ORDER BY 1")
        tables = [*_TABLES.items(), *((end.table, end.what) for end in ENDS if end.table)]
        uses = {what: await walk.versions(connection, table) for table, what in tables}
        sessions = await connection.fetchval(_COUNT_SESSIONS, signer.sealer.key_version)
    here = signer.sealer.keyring.versions
    versions = [
        KeyVersion(
            version=row["version"],
            here=row["version"] in here,
            added_at=clock.iso(row["added_at"]),
            begun_at=clock.iso(row["begun_at"]) if row["begun_at"] else None,
            retired_at=clock.iso(row["retired_at"]) if row["retired_at"] else None,
            uses={what: found[row["version"]] for what, found in uses.items() if row["version"] in found},
        )
        for row in rows
    ]
    return KeyVersions(str(signer.keys.path), signer.sealer.key_version, sessions, versions)
