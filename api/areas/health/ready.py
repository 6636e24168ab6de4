"""The probes of `/ready`: each part with its own answer, so that an operator sees which one is missing."""

import asyncio
from typing import Annotated, Any, Literal

import asyncpg
import msgspec

from api.areas.health import store
from custody.database import texts
from custody.kit import clock
from custody.kit.answer_kinds import NotReady
from custody.kit.callers import Origin
from custody.kit.deadlines import in_time
from custody.kit.described import described
from custody.kit.errors import CustodyError
from custody.kit.schema_version import newest
from custody.ports import Ports
from custody.protocol.command import WorkerName
from custody.protocol.common import Health, PublicKeys, Status

_SECONDS = 2.0
_ORIGIN = Origin("ready")
_WORKERS: tuple[WorkerName, ...] = ("signer", "identity")


class Ready(msgspec.Struct, frozen=True):
    """`ready` or `not_ready`, and the result of every check."""

    status: Annotated[
        Literal["ready", "not_ready"], described("`ready` if everything needed for signing is available.")
    ]
    checks: Annotated[dict[str, Any], described("The result of every check by name.")]


async def ready(ports: Ports) -> Ready | NotReady[Ready]:
    """Ready when all is there, and not once this process was told to stop."""
    if ports.leaving.is_set():
        stopping = Ready("not_ready", {"stopping": {"ok": False}})
        return NotReady(stopping, "This process is shutting down.", retry_after=1)
    (database, schema), signer, identity = await asyncio.gather(
        _database(ports), _worker(ports, "signer"), _worker(ports, "identity")
    )
    # Of a worker that does not answer nothing else is said.
    room = all(worker.room for worker in (signer, identity) if worker is not None)
    checks: dict[str, Any] = {
        # While its disk is full every order is refused, for nothing is signed that cannot be written down.
        "database": {"ok": database and room} | ({} if room else {"full": True}),
        "schema": {"ok": schema},
        # Nothing is answered as done while the database waits for a replica.
        "commits": {"ok": signer is None or signer.commits},
        # Nor is anything signed on a database that went back.
        "history": {"ok": signer is None or signer.history},
        "signer": {"ok": signer is not None},
        "identity": {"ok": identity is not None},
        # Import sessions are rows of the same database, never this process' memory.
        "importSessionStore": {"ok": database, "source": "database"},
        "jobs": await _jobs(ports) if schema else {},
    }
    if signer is not None and signer.prices is not None:
        # Without them a limit in dollars asks a person, and everything else goes on.
        checks["prices"] = {"old": signer.prices.old, "issuedAt": _moment(signer.prices.issued_at)}
    good = all(check.get("ok", True) for name, check in checks.items() if name != "jobs")
    if not good:
        return NotReady(Ready("not_ready", checks), "The service is not ready.", retry_after=1)
    return Ready("ready", checks)


async def _database(ports: Ports) -> tuple[bool, bool]:
    try:
        return True, await in_time(store.schema_version(ports.pool), _SECONDS) == (newest(), texts.current())
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
        return False, False


async def _jobs(ports: Ports) -> dict[str, dict[str, str | None]]:
    """Report when each job last ended well, and never judge: a job matters less than signing and must not stop it."""
    try:
        ended = await in_time(store.jobs(ports.pool), _SECONDS)
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
        return {}
    return {name: {"lastSuccessAt": clock.iso(at) if at else None} for name, at in ended.items()}


def _moment(seconds: int | None) -> str | None:
    return None if seconds is None else clock.iso(clock.of_unix(seconds))


async def _worker(ports: Ports, name: WorkerName) -> Health | None:
    try:
        return await in_time(ports.workers.only(name).tell(Status(), _ORIGIN), _SECONDS)
    except (CustodyError, TimeoutError):
        return None


async def public_keys(ports: Ports) -> list[dict[str, str]]:
    """The public keys of tokens and statements, from the two workers that have the private ones."""
    found = [await ports.workers.only(name).tell(PublicKeys(), _ORIGIN) for name in _WORKERS]
    return [key for one in found for key in one.keys]
