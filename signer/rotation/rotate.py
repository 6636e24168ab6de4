"""`RotateKeys`: a new version of the master key, and everything made anew under it while the service runs. Design 5.

There is no progress to keep: what is left to do is what an older version made. So a rotation that was cut off anywhere
goes on with the next call, and every version stays readable until nothing uses it and it is retired.
"""

from typing import Any

from custody.kit import clock
from custody.kit.errors import Conflict, Invalid
from custody.protocol.messages import Done, Outcome, RotateKeys
from signer import master_key
from signer.administration.acts import operating, tell
from signer.administration.platform_keys import OnlyUnscoped
from signer.context import Ask, Signer
from signer.proofs import ProvenPlatform
from signer.rotation import walk
from signer.rotation.keys import ADVISORY_LOCK
from signer.rotation.registry import ENDS, KINDS

# Every signer knows of a version before that: whoever lacks it has stopped to seal by then.
SETTLED = "1 minute"
_BEGIN = "UPDATE key_versions SET begun_at = service_now() WHERE version <= $1 AND begun_at IS NULL"
_SETTLED = f"SELECT begun_at < service_now() - interval '{SETTLED}' FROM key_versions WHERE version = $1"  # noqa: S608
# A token is as old as its session's last use; the margin is for signers that heard of the version later.
_OLD_SESSIONS = (
    "FROM sessions s, key_versions v WHERE v.version = $1 AND s.revoked_at IS NULL AND s.expires_at > service_now() "
    f"AND s.used_at < v.begun_at + interval '{SETTLED}'"
)
_COUNT_SESSIONS = f"SELECT count(*) {_OLD_SESSIONS}"
_END_SESSIONS = f"UPDATE sessions SET revoked_at = service_now() WHERE id IN (SELECT s.id {_OLD_SESSIONS})"  # noqa: S608
# Waits for whoever writes a sealed value now; who comes after finds the version retired.
_STILL = "LOCK TABLE sealed IN SHARE MODE"
_RETIRE = (
    "UPDATE key_versions SET retired_at = service_now() "
    "WHERE version < $1 AND begun_at IS NOT NULL AND retired_at IS NULL RETURNING version"
)


class KeysInUse(Conflict):
    """Something still uses an older version of the master key."""


class NothingToGoOnWith(Invalid):
    """There is no table of this name to go on with."""


async def rotate(signer: Signer, message: RotateKeys, ask: Ask[ProvenPlatform]) -> Outcome:
    """One act: status, prepare, begin, step, finish or retire."""
    if ask.caller.scopes is not None:
        raise OnlyUnscoped
    if message.act == "step":
        return await _step(signer, message)
    if message.act == "retire":
        return await _retire(signer, ask, at_once=message.force)
    if message.act in ("prepare", "begin"):
        return await _begin(signer, ask, message)
    if message.act == "finish":
        return await _finish(signer, ask)
    return Done(await _status(signer))


async def _begin(signer: Signer, ask: Ask[ProvenPlatform], message: RotateKeys) -> Outcome:
    """Seal with another version from now on; go on with the last one where something older is left."""
    async with operating(signer, ask) as connection:
        await connection.execute(ADVISORY_LOCK)
        signer.keys.read_file()
        rows = await signer.keys.register_in(connection)
        waiting = sum([sum(await _older(signer, connection, kind.table)) for kind in KINDS])
        ready = [row["version"] for row in rows if row["begun_at"] is None]
        version: int = max(ready) if ready else signer.sealer.key_version
        begins = message.act == "begin"
        if not ready and (message.force or not waiting or not begins):
            version = max(row["version"] for row in rows) + 1
            # On disk before anything else knows of it; until it is begun nothing is sealed with it.
            master_key.add(signer.keys.path, version)
            signer.keys.read_file()
            await signer.keys.register_in(connection)
            await tell(connection, ask, "key.version_added", "master_key", str(version))
            ready = [version]
        if begins and ready:
            await connection.execute(_BEGIN, version)
            await tell(connection, ask, "key.version_begun", "master_key", str(version))
    # Only what is committed seals.
    await signer.keys.refresh()
    return Done({"version": version, "begun": begins and bool(ready), "waiting": waiting})


async def _step(signer: Signer, message: RotateKeys) -> Outcome:
    """Make the next batch of a table anew; `table` and `after` of the answer are what the next call names."""
    kind = walk.named(message.table) if message.table is not None else KINDS[0]
    if kind is None:
        raise NothingToGoOnWith
    walked = await walk.reseal(signer.pool, signer.sealer, kind, message.after)
    following = KINDS[KINDS.index(kind) + 1 :]
    table = kind.table if walked.after else following[0].table if following else None
    return Done({"table": table, "after": walked.after, "done": walked.done, "broken": walked.broken})


async def _finish(signer: Signer, ask: Ask[ProvenPlatform]) -> Outcome:
    """Say what an older version still made, and note where it is nothing."""
    async with operating(signer, ask) as connection:
        left = {kind.what: sum(await _older(signer, connection, kind.table)) for kind in KINDS}
        left = {what: count for what, count in left.items() if count}
        if not left:
            await tell(connection, ask, "key.rotated", "master_key", str(signer.sealer.key_version))
    return Done({"version": signer.sealer.key_version, "left": left})


async def _retire(signer: Signer, ask: Ask[ProvenPlatform], *, at_once: bool) -> Outcome:
    """Take older versions out of the file, once nothing uses them; `at_once` ends what only time would end."""
    version = signer.sealer.key_version
    async with operating(signer, ask) as connection:
        await connection.execute(ADVISORY_LOCK)
        # What cannot be used now is found before anything is retired.
        signer.keys.read_file()
        if not await connection.fetchval(_SETTLED, version):
            raise KeysInUse(f"Version {version} seals for less than {SETTLED}; other signers may not know it yet.")
        await _nothing_older(signer, connection)
        ended = await _end(signer, connection, version, at_once=at_once)
        await connection.execute(_STILL)
        if any(await _older(signer, connection, "sealed")):
            raise KeysInUse("Something was sealed with an older version just now; repeat `custody keys rotate`.")
        retired = [row["version"] for row in await connection.fetch(_RETIRE, version)]
        for one in retired:
            await tell(connection, ask, "key.version_retired", "master_key", str(one), **ended)
        rows = await signer.keys.register_in(connection)
    gone = {row["version"] for row in rows if row["retired_at"] is not None} & signer.sealer.keyring.versions.keys()
    if gone:
        # After the commit: cut off before this, the line stays in the file, and the next call takes it out.
        master_key.remove(signer.keys.path, gone)
        signer.keys.read_file()
    return Done({"version": version, "retired": sorted({*retired, *gone}), **ended})


async def _nothing_older(signer: Signer, connection: Any) -> None:
    for kind in KINDS:
        if count := sum(await _older(signer, connection, kind.table)):
            raise KeysInUse(f"{count} {kind.what} still use an older version; run `custody keys rotate` first.")


async def _end(signer: Signer, connection: Any, version: int, *, at_once: bool) -> dict[str, int]:
    """What nobody can make anew: refused while there is any, or ended; how much that was."""
    ended = {}
    for table, what in ((end.table, end.what) for end in ENDS if end.table is not None):
        if count := sum(await _older(signer, connection, table)):
            if not at_once:
                raise KeysInUse(f"There are {count} {what}, of an older version. {_AT_ONCE}")
            # The table is one of the registry's.
            await connection.execute(f"DELETE FROM {table} WHERE key_version_of(mac, 1) <> $1", version)  # noqa: S608
            ended[table] = count
    if count := await connection.fetchval(_COUNT_SESSIONS, version):
        if not at_once:
            raise KeysInUse(f"{count} sessions may hold a refresh token of an older version. {_AT_ONCE}")
        await connection.execute(_END_SESSIONS, version)
        ended["sessions"] = count
    return ended


_AT_ONCE = "Wait until they end, or end them with `custody keys rotate --retire --at-once`."


async def _older(signer: Signer, connection: Any, table: str) -> list[int]:
    newest = signer.sealer.key_version
    return [count for version, count in (await walk.versions(connection, table)).items() if version != newest]


async def _status(signer: Signer) -> dict[str, Any]:
    await signer.keys.refresh()
    async with signer.pool.acquire() as connection:
        rows = await connection.fetch("SELECT version, added_at, begun_at, retired_at FROM key_versions ORDER BY 1")
        tables = [*((kind.table, kind.what) for kind in KINDS), *((e.table, e.what) for e in ENDS if e.table)]
        uses = {what: await walk.versions(connection, table) for table, what in tables}
        sessions = await connection.fetchval(_COUNT_SESSIONS, signer.sealer.key_version)
    here = signer.sealer.keyring.versions
    return {
        "file": str(signer.keys.path), "sealing": signer.sealer.key_version, "oldSessions": sessions,
        "versions": [
            {
                "version": row["version"], "here": row["version"] in here, "addedAt": clock.iso(row["added_at"]),
                "begunAt": clock.iso(row["begun_at"]) if row["begun_at"] else None,
                "retiredAt": clock.iso(row["retired_at"]) if row["retired_at"] else None,
                "uses": {what: found[row["version"]] for what, found in uses.items() if row["version"] in found},
            }
            for row in rows
        ],
    }  # fmt: skip
