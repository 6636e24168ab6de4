"""`AcceptRestore`: the operator restored an older backup, and says so. Promise P7.

Without it this signer goes on refusing what is older than it has seen; that is how a database that somebody put back
behind its back is noticed. What is given up is told in the operator's log.
"""

from custody.protocol.signer.operation import AcceptRestore, RestoreAccepted
from custody.worker.acts import operating, tell
from custody.worker.call import Call
from custody.worker.proven import ProvenPlatform
from signer import audit_log
from signer.context import Signer
from signer.rollback_journal import SETS, VERSIONS, Sealed

_SCOPE = "SELECT set_config('custody.tenant', $1, true)"
# As many as an audit row can name and a person can read.
_TOLD = 50


async def accept(signer: Signer, message: AcceptRestore, call: Call[ProvenPlatform]) -> RestoreAccepted:
    """From now on the rules and signers that the database has are the newest ones; which agents' were newer before."""
    call.caller.need_unscoped()
    older = {of: await _older(signer, of) for of in SETS}
    named = sorted({f"{tenant}/{agent}" for found in older.values() for tenant, agent, _ in found})
    async with operating(signer, call) as connection:
        await tell(
            connection, call, "key.restore_accepted", "database", "custody", agents=len(named), named=named[:_TOLD]
        )
    # After the commit: what is given up is on record first.
    # What was changed meanwhile is newer than what was looked at, and stays so.
    for of, found in older.items():
        now = signer.policies.heads.by_tenant(of)
        signer.policies.heads.accept(
            {
                (tenant, agent, incarnation): version
                for (tenant, agent, incarnation), (version, seen) in found.items()
                if now[tenant][agent, incarnation] == seen
            },
            of=of,
        )
    orders = signer.acknowledged.accept()
    logs, refused = await audit_log.accept_restored(signer)
    # Stopped for what no acceptance cures.
    stopped = [name for name in sorted(signer.audit_log.stopped) if name not in refused]
    return RestoreAccepted(len(named), named[:_TOLD], logs[:_TOLD], refused[:_TOLD], stopped[:_TOLD], orders)


async def _older(signer: Signer, of: Sealed) -> dict[tuple[str, str, str], tuple[int, int]]:
    """Every agent or policy set that is older than this signer has seen: the version it has now, and the one seen."""
    found: dict[tuple[str, str, str], tuple[int, int]] = {}
    for tenant, agents in signer.policies.heads.by_tenant(of).items():
        async with signer.pool.acquire() as connection, connection.transaction():
            await connection.execute(_SCOPE, tenant)
            for row in await connection.fetch(VERSIONS[of], tenant, sorted({agent for agent, _ in agents})):
                seen = agents.get((row["id"], row["incarnation"]), 0)
                if row["version"] < seen:
                    found[(tenant, row["id"], row["incarnation"])] = (row["version"], seen)
    return found
