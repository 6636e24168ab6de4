"""`python -m signer.verify`: opens every sealed value and checks every MAC of the signer's, and shows none of them.

It reads with the signer's role and the master key file, and writes nothing but identity's key file, which it derives:
`identity.verify` looks at the rest with it.
"""

from collections import Counter

import msgspec

from custody.chains import built_in, families
from custody.kit import db, logs
from custody.worker import harden, verify
from custody.worker.sealing import Sealer
from custody.worker.verify import Held
from signer import settings
from signer.identity_key import IdentityKey
from signer.master_key import MasterKeyFile
from signer.rollback_journal import SETS, VERSIONS, Heads
from signer.rotation.keys import MasterKeys
from signer.rotation.registry import KINDS
from signer.settings import Settings

_SCOPE = "SELECT set_config('custody.tenant', $1, true)"

# Every tenant has judging rules or a key, and mostly both.
_TENANTS = (
    "SELECT place[1] AS id FROM sealed_places('tenant_config', NULL, NULL, NULL) "
    "UNION SELECT place[1] FROM sealed_places('tenant_keys', NULL, NULL, NULL)"
)
# What is not there opens no worse than what is: so it is looked for by what it belongs to.
_ABSENT = (
    (
        "wallets without their keys",
        "SELECT count(*) FROM wallets w WHERE tenant_id = $1 AND NOT EXISTS (SELECT FROM sealed s "
        "WHERE s.tenant_id = $1 AND s.owner_kind = 'agent' AND s.owner = w.agent_id "
        "AND s.purpose = CASE w.scope WHEN '' THEN w.family ELSE w.family || '-' || w.scope END)",
    ),
    (
        "agents whose rules have no seal",
        "SELECT count(*) FROM agents a WHERE tenant_id = $1 AND NOT EXISTS "
        "(SELECT FROM policy_heads h WHERE h.tenant_id = $1 AND h.agent_id = a.id)",
    ),
    (
        "agents whose signers have no seal",
        "SELECT count(*) FROM agents a WHERE tenant_id = $1 AND NOT EXISTS "
        "(SELECT FROM authority_heads h WHERE h.tenant_id = $1 AND h.agent_id = a.id) AND (authority_version > 0 "
        "OR EXISTS (SELECT FROM signers s WHERE s.tenant_id = $1 AND s.agent_id = a.id) "
        "OR EXISTS (SELECT FROM key_quorums q WHERE q.tenant_id = $1 AND q.agent_id = a.id))",
    ),
    (
        "signers without their credential",
        "SELECT count(*) FROM signers o WHERE tenant_id = $1 AND has_credential AND NOT EXISTS "
        "(SELECT FROM sealed s WHERE s.tenant_id = $1 AND s.owner_kind = 'signer' AND s.owner = o.id::text)",
    ),
    (
        "secrets without their value",
        "SELECT count(*) FROM secrets o WHERE tenant_id = $1 AND deleted_at IS NULL AND NOT EXISTS "
        "(SELECT FROM sealed s WHERE s.tenant_id = $1 AND s.owner_kind = 'secret' AND s.owner = o.id::text)",
    ),
)


class Report(msgspec.Struct, frozen=True):
    """The findings."""

    seals: Held
    older_than_seen: int
    absent: dict[str, int]

    @property
    def well(self) -> bool:
        """Say whether everything held. What is merely older is the operator's to judge."""
        return not self.seals.broken and not self.absent


async def look(given: Settings) -> Report:
    """Look at everything."""
    pool = await db.open_pool_when_there(given.worker.database_url, size=2, seconds=verify.DATABASE_SECONDS)
    try:
        # Never a new key: a database that holds nothing sealed has nothing to verify.
        master = MasterKeyFile(given.master_key_file, given.master_key_unlock)
        sealer = Sealer(master.load(anything_sealed=True)[0])
        identity = IdentityKey(given.identity_key_file)
        await MasterKeys(pool, master, sealer, identity).begin()
        seals = await verify.check(pool, sealer, KINDS)
        return Report(seals, await _older(pool, given), await _absent(pool))
    finally:
        await db.close_pool(pool)


async def _absent(pool: db.Pool) -> dict[str, int]:
    """Count what should be there and is not."""
    absent: Counter[str] = Counter()
    for row in await pool.fetch(_TENANTS):
        async with pool.acquire() as connection, connection.transaction(readonly=True):
            await connection.execute(_SCOPE, row["id"])
            for what, count in _ABSENT:
                absent[what] += await connection.fetchval(count, row["id"])
    return dict(+absent)


async def _older(pool: db.Pool, given: Settings) -> int:
    """Count the agents with rules or signers older than the signer of this state folder has seen."""
    older: set[tuple[str, str]] = set()
    heads = Heads(given.worker.home / "signer" / "heads.log")
    heads.look()
    for of in SETS:
        for tenant, agents in heads.by_tenant(of).items():
            async with pool.acquire() as connection, connection.transaction(readonly=True):
                await connection.execute(_SCOPE, tenant)
                for row in await connection.fetch(VERSIONS[of], tenant, sorted({agent for agent, _ in agents})):
                    if row["version"] < agents.get((row["id"], row["incarnation"]), 0):
                        older.add((tenant, row["id"]))
    return len(older)


def lines_of(report: Report) -> list[str]:
    """The report for people."""
    lines = [*report.seals.lines(), *(f"WRONG  {count} {what}" for what, count in report.absent.items())]
    if report.older_than_seen:
        lines.append(
            f"note   the rules or signers of {report.older_than_seen} agents are older than this signer has seen: "
            "it refuses them until `custody restore --accept`"
        )
    end = "Every sealed value opens, every MAC holds, and every wallet's address matches its key."
    return [*lines, end if report.well else "Some values do NOT verify; the log above names the rows."]


async def _look() -> tuple[list[str], bool]:
    report = await look(settings.read())
    return lines_of(report), report.well


def main() -> None:
    """The command."""
    logs.set_up()
    families.hand_in(built_in.LISTED)
    harden.harden("signer")
    verify.run(_look(), "master key")


if __name__ == "__main__":
    main()
