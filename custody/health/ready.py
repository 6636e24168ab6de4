"""What `/ready` looks at: each part with its own answer, so that an operator sees which one is missing."""

import asyncio
from typing import Annotated, Any, Literal

import asyncpg
import msgspec

from custody.database import texts
from custody.health import store
from custody.kit import clock
from custody.kit.answers import NotReady
from custody.kit.callers import Origin
from custody.kit.described import described
from custody.kit.errors import CustodyError
from custody.kit.schema_version import newest
from custody.ports import Ports
from custody.protocol.command import WorkerName
from custody.protocol.common import PublicKeys, Status

_SECONDS = 2.0
_ORIGIN = Origin("ready")
_WORKERS: tuple[WorkerName, ...] = ("signer", "identity")


class Ready(msgspec.Struct, frozen=True):
    """`ready` or `not_ready`, and the result of every check."""

    status: Annotated[Literal["ready", "not_ready"], described("Whether everything needed for signing is available.")]
    checks: Annotated[dict[str, Any], described("The result of every check by name.")]


async def ready(ports: Ports) -> Ready | NotReady[Ready]:
    """Ready when all is there, and not once this process was told to stop."""
    if ports.leaving.is_set():
        stopping = Ready("not_ready", {"stopping": {"ok": False}})
        return NotReady(stopping, "This process is shutting down.", retry_after=1)
    (database, schema), (signer, room), (identity, room_too) = await asyncio.gather(
        _database(ports), _worker(ports, "signer"), _worker(ports, "identity")
    )
    room = room and room_too
    checks: dict[str, Any] = {
        # While its disk is full every order is refused, for nothing is signed that cannot be written down.
        "database": {"ok": database and room} | ({} if room else {"full": True}),
        "schema": {"ok": schema},
        "signer": {"ok": signer},
        "identity": {"ok": identity},
        # Import sessions are rows of the same database, never this process' memory.
        "importSessionStore": {"ok": database, "source": "database"},
        "jobs": await _jobs(ports) if schema else {},
    }
    good = all(check.get("ok", True) for name, check in checks.items() if name != "jobs")
    if not good:
        return NotReady(Ready("not_ready", checks), "The service is not ready.", retry_after=1)
    return Ready("ready", checks)


async def _database(ports: Ports) -> tuple[bool, bool]:
    try:
        async with asyncio.timeout(_SECONDS):
            return True, await store.schema_version(ports.pool) == (newest(), texts.current())
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
        return False, False


async def _jobs(ports: Ports) -> dict[str, dict[str, str | None]]:
    """When each job last ended well: told, never judged, for what matters less than signing must not stop it."""
    try:
        async with asyncio.timeout(_SECONDS):
            ended = await store.jobs(ports.pool)
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
        return {}
    return {name: {"lastSuccessAt": clock.iso(at) if at else None} for name, at in ended.items()}


async def _worker(ports: Ports, name: WorkerName) -> tuple[bool, bool]:
    """Whether it answers, and whether it finds room to write; of a silent one nothing bad is said of the room."""
    try:
        async with asyncio.timeout(_SECONDS):
            health = await ports.workers.only(name).tell(Status(), _ORIGIN)
    except (CustodyError, TimeoutError):
        return False, True
    return True, health.room


async def public_keys(ports: Ports) -> list[dict[str, str]]:
    """The public keys of tokens and statements, from the two workers that have the private ones."""
    found = [await ports.workers.only(name).tell(PublicKeys(), _ORIGIN) for name in _WORKERS]
    return [key for one in found for key in one.keys]
