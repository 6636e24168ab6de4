"""`AcceptRestore`: the operator restored an older backup, and says so. Promise P7, decisions 4.

Without it this signer goes on refusing what is older than it has seen; that is how a database that somebody put back
behind its back is noticed. What is given up is told in the operator's log.
"""

from custody.protocol.messages import AcceptRestore, Done, Outcome
from signer import audit_log
from signer.administration.acts import operating, tell
from signer.administration.platform_keys import OnlyUnscoped
from signer.context import Ask, Signer
from signer.proofs import ProvenPlatform

_SCOPE = "SELECT set_config('custody.tenant', $1, true)"
_VERSIONS = "SELECT id, incarnation::text, policy_version FROM agents WHERE tenant_id = $1 AND id = ANY ($2)"
# As many as an audit row can name and a person can read.
_TOLD = 50


async def accept(signer: Signer, message: AcceptRestore, ask: Ask[ProvenPlatform]) -> Outcome:
    """From now on the rules that the database has are the newest ones; which agents' were newer before."""
    if ask.caller.scopes is not None:
        raise OnlyUnscoped
    older = await _older(signer)
    named = [f"{tenant}/{agent}" for tenant, agent, _ in older]
    async with operating(signer, ask) as connection:
        await tell(
            connection, ask, "key.restore_accepted", "database", "custody", agents=len(older), named=named[:_TOLD]
        )
    # After the commit: what is given up is on record first.
    # Rules that were changed meanwhile are newer than what was looked at, and stay so.
    now = signer.policies.heads.by_tenant()
    signer.policies.heads.accept({
        (tenant, agent, incarnation): version
        for (tenant, agent, incarnation), (version, seen) in older.items()
        if now[tenant][agent, incarnation] == seen
    })  # fmt: skip
    logs, refused = await audit_log.accept_restored(signer)
    return Done({"agents": len(older), "named": named[:_TOLD], "logs": logs[:_TOLD], "refused": refused[:_TOLD]})


async def _older(signer: Signer) -> dict[tuple[str, str, str], tuple[int, int]]:
    """Every agent whose rules are older than this signer has seen: the version it has now, and the one seen."""
    found: dict[tuple[str, str, str], tuple[int, int]] = {}
    for tenant, agents in signer.policies.heads.by_tenant().items():
        async with signer.pool.acquire() as connection, connection.transaction():
            await connection.execute(_SCOPE, tenant)
            for row in await connection.fetch(_VERSIONS, tenant, sorted({agent for agent, _ in agents})):
                seen = agents.get((row["id"], row["incarnation"]), 1)
                if row["policy_version"] < seen:
                    found[(tenant, row["id"], row["incarnation"])] = (row["policy_version"], seen)
    return found
