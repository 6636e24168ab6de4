"""A tenant's log on a deployment without scheduler: sealed when a test says so, changed behind the signer's back."""

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import asyncpg

from custody.audit import verify
from tests.fixtures.callers import Agent, Tenant, new_tenant
from tests.fixtures.deployments import owner_of
from tests.fixtures.people import Person, member
from tests.fixtures.postgres import Database
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import greet

TABLES = ("audit", "audit_leaves", "audit_nodes", "audit_spans", "audit_checkpoints", "audit_unsealed")
# A row that no one may write any more, of tenant $1.
ODD_ROW = (
    "INSERT INTO audit (tenant_id, written_by, actor_type, actor_id, action, resource_type, resource_id, metadata,"
    " user_agent, created_at) SELECT $1, 'custody_proxy', 'agent', 'a', 'proxy.request', 'upstream', '{name}',"
    " {metadata}, {agent}, {time} FROM generate_series(1, {rows})"
)


class Log:
    """One tenant with some acts behind it."""

    def __init__(self, service: Service, acts: int) -> None:
        self.service, self.tenant = service, new_tenant(service)
        self.owner: Person = member(service, self.tenant, "owner", mfa=True)
        self.agent: Agent = self.tenant.agent()
        self.act(acts)
        self.seal()
        self.keys = verify.checkpoint_keys(self.jwks)

    def close(self) -> None:
        """Let go of the connections."""
        self.owner.close()
        self.tenant.close()

    def act(self, times: int = 1) -> None:
        """Leave so many more rows."""
        for _ in range(times):
            assert self.agent.sign().status_code == 200

    def seal(self) -> dict[str, Any]:
        """Seal as the scheduler asks for it every second."""
        return seal(self.service)

    @property
    def jwks(self) -> bytes:
        """The service's public keys."""
        return self.owner.get("/.well-known/jwks.json").content

    @property
    def note(self) -> str:
        """The newest checkpoint."""
        return self.owner.ok("GET", "/audit/checkpoints?limit=1")[0]["checkpoint"]

    def export(self, **query: Any) -> bytes:
        """An NDJSON export."""
        answer = self.owner.get("/audit/export", params=query)
        assert answer.status_code == 200, answer.text
        return answer.content

    def problem(self, content: bytes, earlier: str | None = None) -> str | None:
        """Why an export is not what was sealed, or None."""
        try:
            verify.verify(content, self.keys, earlier)
        except (verify.Wrong, verify.Unprovable) as problem:
            return str(problem)
        return None


def seal(service: Service) -> dict[str, Any]:
    """Everything that waits gets its place."""
    with greet(service, "scheduler") as wire:
        while True:
            outcome = wire.ask("SealCheckpoint")
            assert outcome["type"] == "Done", outcome
            if not outcome["data"]["sealed"]:
                return outcome["data"]


async def behind_its_back(log: Log, *statements: str) -> None:
    """Change the log's tables as the owner of the database; `$1` is the tenant."""
    async with owner_of(log.service.database) as owner, owner.transaction():
        await owner.execute("SET LOCAL session_replication_role = replica")
        for statement in statements:
            await owner.execute(statement.replace("$1", f"'{log.tenant.id}'"))


async def as_before_there_were_bounds(database: Database, tenant: Tenant, *statements: str) -> None:
    """The same while audit rows have no bounds; what it leaves stays, as rows that the owner wrote by hand would."""
    async with owner_of(database) as owner, owner.transaction():
        bounds = await owner.fetch(
            "SELECT conname, pg_get_constraintdef(oid) AS said FROM pg_constraint"
            " WHERE conname IN ('audit_times', 'audit_words', 'audit_metadata')"
        )
        for bound in bounds:
            await owner.execute(f"ALTER TABLE audit DROP CONSTRAINT {bound['conname']}")
        for statement in statements:
            await owner.execute(statement.replace("$1", f"'{tenant.id}'"))
        for bound in bounds:
            await owner.execute(f"ALTER TABLE audit ADD CONSTRAINT {bound['conname']} {bound['said']} NOT VALID")


class Copy:
    """A copy of the database's rows of one log, to be put back later."""

    def __init__(self, rows: dict[str, list[asyncpg.Record]]) -> None:
        self._rows = rows

    @classmethod
    async def of(cls, log: Log) -> "Copy":
        """As it is now."""
        async with owner_of(log.service.database) as owner:
            found = {t: await owner.fetch(f"SELECT * FROM {t} WHERE tenant_id = $1", log.tenant.id) for t in TABLES}
        return cls(found)

    async def put_back(self, log: Log) -> None:
        """The log is what it was, as after a restore."""
        async with owner_of(log.service.database) as owner, owner.transaction():
            await owner.execute("SET LOCAL session_replication_role = replica")
            for table, rows in self._rows.items():
                await owner.execute(f"DELETE FROM {table} WHERE tenant_id = $1", log.tenant.id)
                if rows:
                    names = list(rows[0].keys())
                    places = ", ".join(f"${number}" for number in range(1, len(names) + 1))
                    await owner.executemany(
                        f"INSERT INTO {table} ({', '.join(names)}) OVERRIDING SYSTEM VALUE VALUES ({places})",
                        [tuple(row) for row in rows],
                    )


def verify_export(folder: Path, content: bytes, jwks: bytes | None, *more: str) -> tuple[int, str]:
    """`custody audit verify` in a process of its own: its exit status and what it says."""
    (folder / "export.ndjson").write_bytes(content)
    words = [str(folder / "export.ndjson")]
    if jwks is not None:
        (folder / "jwks.json").write_bytes(jwks)
        words += ["--jwks", str(folder / "jwks.json")]
    return command("audit", "verify", *words, *more)


def command(*words: str, home: Path | None = None) -> tuple[int, str]:
    """A sub-command of `custody`, where `home` is named that of a deployment."""
    environment = os.environ | ({"SERVICE_HOME": str(home)} if home else {})
    ended = subprocess.run(
        [sys.executable, "-P", "-m", "ops", *words],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env=environment,
    )
    return ended.returncode, ended.stdout + ended.stderr


def lines(content: bytes) -> list[bytes]:
    """The lines of an export."""
    return content.splitlines(keepends=True)


def join_lines(parts: Iterable[bytes]) -> bytes:
    """An export of these lines."""
    return b"".join(parts)
