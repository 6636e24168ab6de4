"""`RotateIdentity`: identity's rows made again under its next key, and the end of what nobody can make again.

Which versions there are is the signer's to say; it derives identity's key from each. docs/recovery.md.
"""

from custody.kit.errors import Conflict
from custody.protocol.common import Resealed
from custody.protocol.identity.credentials import EndedForRotation, RotateIdentity
from custody.worker import walk
from custody.worker.acts import operating, tell
from custody.worker.call import Call
from custody.worker.proven import ProvenPlatform
from custody.worker.registry import ENDS, IS_SETTLED, OLD_SESSIONS, SETTLED
from identity.context import Identity
from identity.rotation.registry import KINDS

_END_SESSIONS = f"UPDATE sessions SET revoked_at = service_now() WHERE id IN (SELECT s.id {OLD_SESSIONS})"  # noqa: S608


class NotSettled(Conflict):
    """The newest version of the key is too new."""


async def rotate(
    identity: Identity, message: RotateIdentity, call: Call[ProvenPlatform]
) -> Resealed | EndedForRotation:
    """One act: step or end."""
    call.caller.need_unscoped()
    # The signer may have begun a version a moment ago.
    await identity.keys.refresh()
    if message.act == "step":
        return await walk.step(identity, KINDS, message.table, message.after)
    return await _end(identity, call)


async def _end(identity: Identity, call: Call[ProvenPlatform]) -> EndedForRotation:
    """End what an older version of the key is needed for and nobody can make again; how much that was."""
    version = identity.sealer.key_version
    ended: dict[str, int] = {}
    async with operating(identity, call) as connection:
        if not await connection.fetchval(IS_SETTLED, version):
            raise NotSettled(f"Version {version} seals for less than {SETTLED}; wait, then call this again.")
        for table in (end.table for end in ENDS if end.table is not None):
            # The table is one of the registry's.
            old = f"DELETE FROM {table} WHERE key_version_of(mac, 1) <> $1"  # noqa: S608
            if count := _count(await connection.execute(old, version)):
                ended[table] = count
        if count := _count(await connection.execute(_END_SESSIONS, version)):
            ended["sessions"] = count
        if ended:
            await tell(connection, call, "session.ended_for_rotation", "master_key", str(version), **ended)
    return EndedForRotation(version, ended)


def _count(said: str) -> int:
    return int(said.rpartition(" ")[2])
