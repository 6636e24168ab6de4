"""`python -m signer.verify`: opens every sealed value and checks every MAC of a database, and shows none of them.

For a database that was just restored, or any other. It reads, with the signer's role and the master key file, and
writes nothing. The exit status is 0 when everything holds, 1 when something does not, 2 when it could not be looked at.
"""

import asyncio
import sys
import time
from collections import Counter
from typing import Any

import msgspec

from custody.kit import db, logs
from signer import harden, master_key, settings
from signer.heads import Heads
from signer.rotation import walk
from signer.rotation.keys import Keys
from signer.rotation.registry import KINDS, Maced, Sealed
from signer.sealing import KeyVersionMissing, Sealer
from signer.settings import Settings

DATABASE_SECONDS = 10.0
_SAY_SECONDS = 5.0
_SCOPE = "SELECT set_config('custody.tenant', $1, true)"
_POLICY_VERSIONS = "SELECT id, incarnation::text, policy_version FROM agents WHERE tenant_id = $1 AND id = ANY ($2)"

# Every tenant has judging rules or a key, and mostly both.
_TENANTS = (
    "SELECT place[1] AS id FROM sealed_places('tenant_config', NULL, NULL, NULL) "
    "UNION SELECT place[1] FROM sealed_places('tenant_keys', NULL, NULL, NULL)"
)
# What is not there opens no worse than what is: so it is looked for by what it belongs to.
_ABSENT = (
    ("wallets without their keys",
     "SELECT count(*) FROM agents a WHERE tenant_id = $1 AND (SELECT count(*) FROM sealed s WHERE s.tenant_id = $1 "
     "AND s.owner_kind = 'agent' AND s.owner = a.id AND s.purpose IN ('evm', 'solana')) < 2"),
    ("agents whose rules have no seal",
     "SELECT count(*) FROM agents a WHERE tenant_id = $1 AND NOT EXISTS "
     "(SELECT FROM policy_heads h WHERE h.tenant_id = $1 AND h.agent_id = a.id)"),
    ("secrets without their value",
     "SELECT count(*) FROM secrets o WHERE tenant_id = $1 AND deleted_at IS NULL AND NOT EXISTS "
     "(SELECT FROM sealed s WHERE s.tenant_id = $1 AND s.owner_kind = 'secret' AND s.owner = o.id::text)"),
)  # fmt: skip


class Report(msgspec.Struct, frozen=True):
    """What was found; a line for each kind of thing."""

    held: dict[str, int]
    broken: dict[str, int]
    older_than_seen: int
    absent: dict[str, int]

    @property
    def well(self) -> bool:
        """Whether everything held. What is merely older is the operator's to judge."""
        return not self.broken and not self.absent


async def verify(given: Settings) -> Report:
    """Look at everything."""
    pool = await db.open_pool_when_there(given.database_url, size=2, seconds=DATABASE_SECONDS)
    try:
        # Never a new key: a database that holds nothing sealed has nothing to verify.
        sealer = Sealer(master_key.load(given.master_key_file, anything_sealed=True)[0])
        await Keys(pool, given.master_key_file, sealer).begin()
        held: Counter[str] = Counter()
        broken: Counter[str] = Counter()
        async with pool.acquire() as connection:
            for kind in KINDS:
                await _verify(connection, sealer, kind, held, broken)
        return Report(dict(held), dict(broken), await _older(pool, given), await _absent(pool))
    finally:
        await db.close_pool(pool)


async def _verify(
    connection: Any, sealer: Sealer, kind: Sealed | Maced, held: Counter[str], broken: Counter[str]
) -> None:
    after: list[str] | None = None
    told = time.monotonic()
    while True:
        walked = await walk.check(connection, sealer, kind, after)
        held[kind.what] += walked.done
        if walked.broken:
            broken[kind.what] += walked.broken
        if time.monotonic() - told > _SAY_SECONDS:
            told = time.monotonic()
            print(f"  {held[kind.what]} {kind.what} so far", file=sys.stderr, flush=True)
        if (after := walked.after) is None:
            return


async def _absent(pool: db.Pool) -> dict[str, int]:
    """What should be there and is not."""
    absent: Counter[str] = Counter()
    for row in await pool.fetch(_TENANTS):
        async with pool.acquire() as connection, connection.transaction(readonly=True):
            await connection.execute(_SCOPE, row["id"])
            for what, count in _ABSENT:
                absent[what] += await connection.fetchval(count, row["id"])
    return dict(+absent)


async def _older(pool: db.Pool, given: Settings) -> int:
    """How many sets of rules are older than the signer of this state folder has seen."""
    older = 0
    for tenant, agents in Heads(given.home / "signer" / "heads.log").seen_on_disk().items():
        async with pool.acquire() as connection, connection.transaction(readonly=True):
            await connection.execute(_SCOPE, tenant)
            for row in await connection.fetch(_POLICY_VERSIONS, tenant, sorted({agent for agent, _ in agents})):
                older += row["policy_version"] < agents.get((row["id"], row["incarnation"]), 1)
    return older


def told(report: Report) -> list[str]:
    """The report for people."""
    lines = []
    for what, count in report.held.items():
        bad = report.broken.get(what, 0)
        if count or bad:
            lines.append(f"{'WRONG' if bad else 'ok   '}  {what}: {count} hold{f', {bad} do not' if bad else ''}")
    lines += [f"WRONG  {count} {what}" for what, count in report.absent.items()]
    if report.older_than_seen:
        lines.append(
            f"note   the rules of {report.older_than_seen} agents are older than this signer has seen: it refuses "
            "them until `custody restore --accept`"
        )
    end = "Everything opens and holds, and every wallet's address matches."
    return [*lines, end if report.well else "NOT everything holds; the log above names the rows."]


def main() -> None:
    """The command."""
    logs.set_up()
    harden.harden()
    try:
        report = asyncio.run(verify(settings.read()))
    except (ValueError, master_key.MasterKeyProblem) as problem:
        print(f"custody: {problem}", file=sys.stderr)
        sys.exit(2)
    except KeyVersionMissing:
        print("custody: the master key file lacks a version that something is sealed with", file=sys.stderr)
        sys.exit(2)
    except db.DatabaseAway as problem:
        print(f"custody: the database is not reachable: {type(problem).__name__}", file=sys.stderr)
        sys.exit(2)
    print("\n".join(told(report)))
    sys.exit(0 if report.well else 1)


if __name__ == "__main__":
    main()
