"""Going through everything that is sealed, a batch at a time, in the order of the primary keys.

Nothing is locked that somebody else holds, and nothing is written over what somebody else wrote meanwhile: a row that
is held or has changed is left, and found again by the next walk.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import msgspec

from custody.kit.db import Pool
from custody.kit.errors import Invalid
from custody.kit.logs import logger
from custody.protocol.common import Resealed
from custody.worker.registry import Maced, Row, Sealed
from custody.worker.sealing import Sealer, Tampered
from custody.worker.state import Worker

log = logger(__name__)
BATCH = 200
_SCOPE = "SELECT set_config('custody.tenant', $1, true)"
_PLACES = "SELECT place FROM sealed_places($1, $2, $3, $4)"
_VERSIONS = "SELECT version, count FROM sealed_versions($1)"
Place = list[str]
Kinds = tuple[Sealed | Maced, ...]


class NothingToGoOnWith(Invalid):
    """No table of this name to continue with."""


class Walked(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a batch; `after` is where the next one begins, None when the table ended."""

    seen: int
    done: int
    broken: int
    after: Place | None


async def versions(connection: Any, table: str) -> dict[int, int]:
    """Count the living rows of a table that each version made."""
    return {row["version"]: row["count"] for row in await connection.fetch(_VERSIONS, table)}


async def reseal(pool: Pool, sealer: Sealer, kind: Sealed | Maced, after: Place | None) -> Walked:
    """Make the next batch again that another version than the newest made, in one transaction."""
    done = broken = 0
    async with pool.acquire() as connection:
        places = await _places(connection, kind, sealer.key_version, after)
        async with connection.transaction():
            for part in _of_one_tenant(kind, places):
                rows = await _read(connection, kind, part)
                anew, bad = _made_anew(sealer, kind, rows)
                broken += bad
                if anew:
                    done += await _write(connection, kind, anew)
    return Walked(seen=len(places), done=done, broken=broken, after=places[-1] if len(places) == BATCH else None)


async def check(connection: Any, sealer: Sealer, kind: Sealed | Maced, after: Place | None) -> Walked:
    """Open or check the next batch, whatever version made it; nothing is written."""
    broken = seen = 0
    places = await _places(connection, kind, None, after)
    async with connection.transaction():
        for part in _of_one_tenant(kind, places):
            rows = await _read(connection, kind, part)
            seen += len(rows)
            broken += sum(not _holds(sealer, kind, row) for row in rows)
    return Walked(seen=seen, done=seen - broken, broken=broken, after=places[-1] if len(places) == BATCH else None)


async def step(worker: Worker, kinds: Kinds, table: str | None, after: Place | None) -> Resealed:
    """Make the next batch of a table again; `table` and `after` of the answer are what the next call names."""
    kind = next((kind for kind in kinds if kind.table == table), None) if table is not None else kinds[0]
    if kind is None:
        raise NothingToGoOnWith
    walked = await reseal(worker.pool, worker.sealer, kind, after)
    following = kinds[kinds.index(kind) + 1 :]
    coming = kind.table if walked.after else following[0].table if following else None
    return Resealed(coming, walked.after, walked.done, walked.broken)


async def _places(connection: Any, kind: Sealed | Maced, version: int | None, after: Place | None) -> list[Place]:
    return [row["place"] for row in await connection.fetch(_PLACES, kind.table, version, after, BATCH)]


def _of_one_tenant(kind: Sealed | Maced, places: list[Place]) -> list[list[Place]]:
    if not kind.scoped:
        return [places] if places else []
    return [list(part) for _, part in groupby(places, key=lambda place: place[0])]


async def _read(connection: Any, kind: Sealed | Maced, places: Sequence[Place]) -> list[Any]:
    if kind.scoped:
        await connection.execute(_SCOPE, places[0][0])
    found = await connection.fetch(_read_of(kind), *zip(*places, strict=True))
    return list(found)


def _made_anew(sealer: Sealer, kind: Sealed | Maced, rows: Sequence[Row]) -> tuple[list[tuple[Row, bytes]], int]:
    anew = []
    for row in rows:
        try:
            anew.append((row, kind.anew(sealer, row)))
        except Tampered:
            _complain(kind, row)
    return anew, len(rows) - len(anew)


async def _write(connection: Any, kind: Sealed | Maced, anew: Sequence[tuple[Row, bytes]]) -> int:
    keys = [[_text(row[name]) for row, _ in anew] for name, _ in kind.keys]
    old, new = [row[kind.made] for row, _ in anew], [made for _, made in anew]
    said: str = await connection.execute(_write_of(kind), *keys, old, new)
    return int(said.rpartition(" ")[2])


def _holds(sealer: Sealer, kind: Sealed | Maced, row: Row) -> bool:
    try:
        kind.check(sealer, row)
    except Tampered:
        _complain(kind, row)
        return False
    return True


def _complain(kind: Sealed | Maced, row: Row) -> None:
    # Keys of rows are ids and hashes; an identity's is an address of a person, so only its kind is told.
    where = "/".join(_text(row[name]) for name, _ in kind.keys if name != "subject")
    log.error("a stored value fails its integrity check", extra={"table": kind.table, "row": where})


def _read_of(kind: Sealed | Maced) -> str:
    columns = ", ".join(filter(None, (*(f"t.{name}" for name, _ in kind.keys), f"t.{kind.made}", kind.columns)))
    # Names of the registry's alone, here and below.
    return (
        f"SELECT {columns} FROM unnest({_arrays(kind)}) AS p ({_names(kind)}) "  # noqa: S608
        f"JOIN {kind.table} t ON {_equal(kind, 'p')} {kind.joins}"
    )


def _write_of(kind: Sealed | Maced) -> str:
    # Locked rows are skipped, not waited for, so no two transactions ever wait for each other.
    count, version = len(kind.keys), ", key_version = key_version_of(h.new, 2)" if isinstance(kind, Sealed) else ""
    names, made = _names(kind), kind.made
    return (
        f"WITH n AS (SELECT * FROM unnest({_arrays(kind)}, ${count + 1}::bytea[], ${count + 2}::bytea[]) "  # noqa: S608
        f"AS n ({names}, old, new)), h AS (SELECT n.* FROM n JOIN {kind.table} t ON {_equal(kind, 'n')} "
        f"AND t.{made} = n.old FOR UPDATE OF t SKIP LOCKED) "
        f"UPDATE {kind.table} t SET {made} = h.new{version} FROM h WHERE {_equal(kind, 'h')}"
    )


def _arrays(kind: Sealed | Maced) -> str:
    return ", ".join(f"${number}::text[]" for number in range(1, len(kind.keys) + 1))


def _names(kind: Sealed | Maced) -> str:
    return ", ".join(name for name, _ in kind.keys)


def _equal(kind: Sealed | Maced, other: str) -> str:
    return " AND ".join(f"t.{name} = {other}.{name}::{type_}" for name, type_ in kind.keys)


def _text(value: Any) -> str:
    return f"\\x{value.hex()}" if isinstance(value, bytes) else str(value)
