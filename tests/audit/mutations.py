"""Everything somebody with the database's owner's rights may do to sealed rows, and whether the export shows it."""

import random
from collections.abc import Callable

import msgspec

from tests.audit.sealed import Copy, Log, behind_its_back

COLUMNS = (
    "written_by",
    "actor_type",
    "actor_id",
    "action",
    "resource_type",
    "resource_id",
    "metadata",
    "ip_address",
    "user_agent",
    "request_id",
    "created_at",
    "seq",
)
_AT = "tenant_id = $1 AND seq = (SELECT seq FROM audit_leaves WHERE tenant_id = $1 AND log_index = {})"


class Mutation(msgspec.Struct, frozen=True):
    """A mutation: its description in words, and the statements that make it."""

    kind: str
    said: str
    statements: tuple[str, ...]


def change(chance: random.Random, size: int) -> Mutation:
    """One column of one row."""
    column, place = chance.choice(COLUMNS), chance.randrange(size)
    new = {
        "actor_type": "CASE actor_type WHEN 'user' THEN 'agent' ELSE 'user' END",
        "created_at": f"created_at + interval '{chance.randrange(1, 10**9)} microseconds'",
        "metadata": "replace(metadata, '{', '{ ')",
        "ip_address": "CASE WHEN ip_address IS NULL THEN '' END",
        "seq": "seq + 1000000000",
    }.get(column, f"COALESCE({column}, '') || 'x'")
    statements = [f"UPDATE audit SET {column} = {new} WHERE {_AT.format(place)}"]
    if column == "seq":
        statements = [
            _copy_of(place, "seq + 1000000000"),
            f"DELETE FROM audit WHERE {_AT.format(place)}",
            f"UPDATE audit_leaves SET seq = seq + 1000000000 WHERE tenant_id = $1 AND log_index = {place}",
        ]
    return Mutation("change", f"{column} of row {place}", tuple(statements))


def delete(chance: random.Random, size: int) -> Mutation:
    """One row, with or without its leaf."""
    place = chance.randrange(size)
    statements = [f"DELETE FROM audit WHERE {_AT.format(place)}"]
    if chance.random() < 0.5:
        # The later ones close the gap.
        statements += [
            f"DELETE FROM audit_leaves WHERE tenant_id = $1 AND log_index = {place}",
            *_move(place, -1),
        ]
    return Mutation("delete", f"row {place}", tuple(statements))


def insert(chance: random.Random, size: int) -> Mutation:
    """A copy of a row under another number, with a leaf of its own between the others."""
    source, place = chance.randrange(size), chance.randrange(size)
    leaf = (
        f"INSERT INTO audit_leaves SELECT tenant_id, {place}, seq + 1000000000, hash FROM audit_leaves "
        f"WHERE tenant_id = $1 AND log_index = {source if source < place else source + 1}"
    )
    return Mutation(
        "insert", f"a row like {source} at {place}", (_copy_of(source, "seq + 1000000000"), *_move(place - 1, 1), leaf)
    )


def swap(chance: random.Random, size: int) -> Mutation:
    """Two rows change places, with their leaves or without."""
    one, other = sorted(chance.sample(range(size), 2))
    columns = "seq, hash" if chance.random() < 0.5 else "seq"
    names = columns.split(", ")
    park = f"UPDATE audit_leaves SET seq = -seq WHERE tenant_id = $1 AND log_index IN ({one}, {other})"
    taken = ", ".join(f"{name} = b.{name}" if name != "seq" else "seq = -b.seq" for name in names)
    # Both halves read what was there before.
    exchange = (
        f"WITH b AS MATERIALIZED (SELECT {one + other} - log_index AS log_index, seq, hash FROM audit_leaves "
        f"WHERE tenant_id = $1 AND log_index IN ({one}, {other})) UPDATE audit_leaves l SET {taken} FROM b "
        "WHERE l.tenant_id = $1 AND l.log_index = b.log_index"
    )
    return Mutation("swap", f"rows {one} and {other}", (park, exchange))


def truncate(chance: random.Random, size: int) -> Mutation:
    """The last rows, and sometimes every checkpoint that knew of them."""
    keep = chance.randrange(1, size)
    statements = [
        f"DELETE FROM audit WHERE tenant_id = $1 AND seq IN (SELECT seq FROM audit_leaves WHERE tenant_id = $1 "
        f"AND log_index >= {keep})",
    ]
    if chance.random() < 0.5:
        statements += [
            f"DELETE FROM audit_leaves WHERE tenant_id = $1 AND log_index >= {keep}",
            f"DELETE FROM audit_nodes WHERE tenant_id = $1 AND (position + 1) << level > {keep}",
        ]
    return Mutation("truncate", f"after {keep} rows", tuple(statements))


KINDS: tuple[Callable[[random.Random, int], Mutation], ...] = (change, delete, insert, swap, truncate)


async def finding_on(log: Log, copy: Copy, mutation: Mutation) -> str | None:
    """Return the finding of `verify` in the export of the changed log, or None; the log is put back."""
    await behind_its_back(log, *mutation.statements)
    try:
        answer = log.owner.get("/audit/export")
        if answer.status_code == 409:
            return answer.json()["data"]["code"]
        assert answer.status_code == 200, answer.text
        return log.problem(answer.content)
    finally:
        await copy.put_back(log)


def _copy_of(place: int, seq: str) -> str:
    columns = (
        "written_by, actor_type, actor_id, action, resource_type, resource_id, metadata, ip_address, user_agent, "
        "request_id, created_at"
    )
    return (
        f"INSERT INTO audit (tenant_id, seq, {columns}) OVERRIDING SYSTEM VALUE SELECT tenant_id, {seq}, {columns} "
        f"FROM audit WHERE {_AT.format(place)}"
    )


def _move(behind: int, by: int) -> tuple[str, str]:
    """All leaves behind one move; in two steps, for no two may have one place in between."""
    far = 1_000_000
    return (
        f"UPDATE audit_leaves SET log_index = log_index + {far} WHERE tenant_id = $1 AND log_index > {behind}",
        f"UPDATE audit_leaves SET log_index = log_index - {far - by} WHERE tenant_id = $1 AND log_index >= {far}",
    )
