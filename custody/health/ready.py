"""What `/ready` looks at: each part with its own answer, so that an operator sees which one is missing. Decisions 1."""

import asyncio
from typing import Any

import asyncpg
import msgspec

from custody.kit import clock
from custody.kit.answers import Outcome
from custody.kit.callers import Origin
from custody.kit.errors import CustodyError
from custody.migrations import newest
from custody.ports import Ports
from custody.protocol.messages import Done, PublicKeys, Status

_SECONDS = 2.0
_ORIGIN = Origin("ready")


class Ready(msgspec.Struct, frozen=True):
    """`ready` or `not_ready`, and every check."""

    status: str
    checks: dict[str, Any]


async def ready(ports: Ports) -> Any:
    """200 when all is there, 503 otherwise, and as soon as this process was told to stop."""
    if ports.leaving.is_set():
        stopping = Ready("not_ready", {"stopping": {"ok": False}})
        return Outcome(503, stopping, "This process is about to stop.", {"Retry-After": "1"})
    database, schema = await _database(ports)
    checks: dict[str, Any] = {
        "database": {"ok": database}, "schema": {"ok": schema}, "signer": {"ok": await _signer(ports)},
        # Import sessions are rows of the same database, never this process' memory.
        "importSessionStore": {"ok": database, "source": "database"},
        "jobs": await _jobs(ports) if schema else {},
    }  # fmt: skip
    good = all(check.get("ok", True) for name, check in checks.items() if name != "jobs")
    return (
        Ready("ready", checks)
        if good
        else Outcome(503, Ready("not_ready", checks), "The service is not ready.", {"Retry-After": "1"})
    )


async def _database(ports: Ports) -> tuple[bool, bool]:
    try:
        async with asyncio.timeout(_SECONDS):
            return True, await ports.pool.fetchval("SELECT schema_version()") == newest()
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
        return False, False


async def _jobs(ports: Ports) -> dict[str, dict[str, str | None]]:
    """When each job last ended well: told, never judged, for what matters less than signing must not stop it."""
    try:
        async with asyncio.timeout(_SECONDS):
            rows = await ports.pool.fetch("SELECT name, last_success_at FROM jobs ORDER BY name")
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
        return {}
    return {
        row["name"]: {"lastSuccessAt": clock.iso(row["last_success_at"]) if row["last_success_at"] else None}
        for row in rows
    }


async def _signer(ports: Ports) -> bool:
    try:
        async with asyncio.timeout(_SECONDS):
            return isinstance((await ports.signer.tell(Status(), _ORIGIN)).outcome, Done)
    except (CustodyError, TimeoutError):
        return False


async def public_keys(ports: Ports) -> list[dict[str, str]]:
    """The public token keys, from the signer."""
    outcome = (await ports.signer.tell(PublicKeys(), _ORIGIN)).outcome
    assert isinstance(outcome, Done)  # noqa: S101 - the protocol says so
    keys: list[dict[str, str]] = outcome.data["keys"]
    return keys
