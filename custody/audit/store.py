"""Queries of audit rows, leaves and checkpoints."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from custody.audit import leaf
from custody.audit.filters import Wanted
from custody.audit.tree import Place
from custody.kit.db import Connection

# Metadata is not indexed, so that acting stays cheap: so many of the newest rows that the other filters leave are read.
MOST_READ = 100_000
# How far behind a page rows are counted.
COUNTED_BEHIND = 1_000
_COLUMNS = ", ".join(f"a.{name}" for name in leaf.COLUMNS)
# A tenant made anew under an id must not see rows of the one before it: those of a tenant begin with its own making.
_BEGAN = (
    "SELECT seq FROM audit WHERE tenant_id = $1 AND action = 'tenant.created' AND resource_id = $1 "
    "ORDER BY seq DESC LIMIT 1"
)
_BEGAN_INDEX = "SELECT log_index FROM audit_leaves WHERE tenant_id = $1 AND seq = $2"
_LOG = (
    f"SELECT l.log_index, {_COLUMNS} FROM audit_leaves l JOIN audit a ON a.tenant_id = l.tenant_id AND a.seq = l.seq "
    "WHERE l.tenant_id = $1 AND l.log_index >= $2 AND l.log_index < $3"
)


class Sealed(msgspec.Struct, frozen=True):
    """A row with its place in the log."""

    index: int
    row: leaf.Row


class Stored(msgspec.Struct, frozen=True):
    """A checkpoint as it is kept."""

    size: int
    root: bytes
    note: str
    created_at: Any


class TooWide(Exception):
    """The metadata filters were tried on as many rows as we read, and the page is not full."""


async def first_seq(connection: Connection, tenant: str) -> int:
    """Where the rows of this tenant begin, if there was another under its id."""
    return await connection.fetchval(_BEGAN, tenant) or 0


async def first_index(connection: Connection, tenant: str) -> int | None:
    """The same in the log, or None while that row waits to be sealed."""
    seq = await connection.fetchval(_BEGAN, tenant)
    return 0 if seq is None else await connection.fetchval(_BEGAN_INDEX, tenant, seq)


async def page(
    connection: Connection, tenant: str, wanted: Wanted, offset: int, limit: int, *, below: int | None = None
) -> list[leaf.Row]:
    """Rows, newest first; `below` a seq. Raises TooWide."""
    found = await _visible(connection, tenant, wanted)
    if below is not None:
        found.add("a.seq < {}", below)
    plain = list(found.values)
    rows = await connection.fetch(
        f"SELECT {_COLUMNS} FROM {found.rows(wanted)} ORDER BY a.seq DESC LIMIT {limit:d} OFFSET {offset:d}",
        *found.values,
    )
    if wanted.paths and len(rows) < limit:
        read = await connection.fetchval(f"SELECT count(*) FROM ({found.base(MOST_READ + 1)}) c", *plain)
        if read > MOST_READ:
            raise TooWide
    return [leaf.of_record(row) for row in rows]


async def count(connection: Connection, tenant: str, wanted: Wanted, most: int) -> int:
    """How many rows there are, counting no further than `most`."""
    found = await _visible(connection, tenant, wanted)
    return await connection.fetchval(  # type: ignore[no-any-return]
        f"SELECT count(*) FROM (SELECT FROM {found.rows(wanted)} ORDER BY a.seq DESC LIMIT {most:d}) c", *found.values
    )


async def log(
    connection: Connection, tenant: str, wanted: Wanted, begin: int, end: int, limit: int
) -> Sequence[Sealed]:
    """Sealed rows from one place of the log to before another, in its order. Raises TooWide."""
    found = _Statement(tenant, begin, end)
    found.where(wanted)
    plain = list(found.values)
    inner = f"{_LOG}{found.text} ORDER BY l.log_index"
    if wanted.paths:
        inner = f"SELECT * FROM ({inner} LIMIT {MOST_READ}) a WHERE true{found.says(wanted)} ORDER BY log_index"
    rows = await connection.fetch(f"{inner} LIMIT {limit:d}", *found.values)
    if wanted.paths and len(rows) < limit:
        read = await connection.fetchval(f"SELECT count(*) FROM ({_LOG}{found.text} LIMIT {MOST_READ + 1}) c", *plain)
        if read > MOST_READ:
            raise TooWide
    return [Sealed(row["log_index"], leaf.of_record(row)) for row in rows]


async def newest_checkpoint(connection: Connection, tenant: str) -> Stored | None:
    """The last one, or None for a log without a sealed row."""
    found = await checkpoints(connection, tenant, 0, 1, 0)
    return found[0] if found else None


async def checkpoints(connection: Connection, tenant: str, above: int, limit: int, offset: int) -> list[Stored]:
    """Those of more than `above` rows, newest first."""
    rows = await connection.fetch(
        "SELECT size, root, note, created_at FROM audit_checkpoints WHERE tenant_id = $1 AND size > $2 "
        "ORDER BY size DESC LIMIT $3 OFFSET $4",
        tenant, above, limit, offset,
    )  # fmt: skip
    return [Stored(**row) for row in rows]


async def count_checkpoints(connection: Connection, tenant: str, above: int) -> int:
    """How many of them there are."""
    return await connection.fetchval(  # type: ignore[no-any-return]
        "SELECT count(*) FROM audit_checkpoints WHERE tenant_id = $1 AND size > $2", tenant, above
    )


async def newest_seq(connection: Connection, tenant: str) -> int:
    """The newest row's number."""
    return await connection.fetchval("SELECT max(seq) FROM audit WHERE tenant_id = $1", tenant) or 0


async def waits(connection: Connection, tenant: str, seq: int) -> bool:
    """Whether a row up to this one is not sealed yet."""
    return await connection.fetchval(  # type: ignore[no-any-return]
        "SELECT EXISTS (SELECT FROM audit_unsealed WHERE tenant_id = $1 AND seq <= $2)", tenant, seq
    )


async def hashes(connection: Connection, tenant: str, places: Iterable[Place]) -> dict[Place, bytes]:
    """Leaves and kept subtrees; one that is not there is missing from the answer."""
    levels: dict[int, list[int]] = {}
    for level, position in places:
        levels.setdefault(level, []).append(position)
    found: dict[Place, bytes] = {}
    for level, positions in levels.items():
        if level == 0:
            rows = await connection.fetch(
                "SELECT log_index AS position, hash FROM audit_leaves WHERE tenant_id = $1 AND log_index = ANY ($2)",
                tenant, positions,
            )  # fmt: skip
        else:
            rows = await connection.fetch(
                "SELECT position, hash FROM audit_nodes WHERE tenant_id = $1 AND level = $2 AND position = ANY ($3)",
                tenant, level, positions,
            )  # fmt: skip
        found |= {(level, row["position"]): row["hash"] for row in rows}
    return found


async def _visible(connection: Connection, tenant: str, wanted: Wanted) -> "_Statement":
    """The filter, over the rows that this tenant may see."""
    # Which index serves depends on the values: a plan for any of them would read a million rows for some.
    await connection.execute("SELECT set_config('plan_cache_mode', 'force_custom_plan', true)")
    found = _Statement(tenant)
    found.where(wanted)
    found.add("a.seq >= {}", await first_seq(connection, tenant))
    return found


class _Statement:
    """Conditions over audit rows `a`, and their values."""

    def __init__(self, *values: object) -> None:
        self.values: list[object] = list(values)
        self.text = ""

    def add(self, condition: str, *values: object) -> None:
        """One more condition; `{}` stands for each value."""
        self.text += " AND " + self._placed(condition, *values)

    def where(self, wanted: Wanted) -> None:
        """Everything but the metadata."""
        given = wanted.filter
        for column in ("action", "actor_type", "actor_id", "resource_type", "resource_id", "request_id"):
            if (value := getattr(given, column)) is not None:
                self.add(f"a.{column} = {{}}", value)
        if (prefix := given.action_prefix) is not None:
            # Byte by byte, as the index is: from the prefix to what would come behind everything that begins with it.
            self.add("a.action ~>=~ {} AND a.action ~<~ {}", prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1))
        if wanted.since is not None:
            self.add("a.created_at >= {}", wanted.since)
        if wanted.until is not None:
            self.add("a.created_at <= {}", wanted.until)

    def says(self, wanted: Wanted) -> str:
        """The conditions on the metadata."""
        return "".join(
            " AND "
            + self._placed(
                "CASE WHEN strpos(a.metadata, {}) > 0 THEN audit_says(a.metadata, {}::text[], {}) ELSE false END",
                path.needle, list(path.segments), path.text,
            )
            for path in wanted.paths
        )  # fmt: skip

    def rows(self, wanted: Wanted) -> str:
        """What to select from; with metadata only the newest rows that the other filters leave."""
        if not wanted.paths:
            return f"audit a WHERE a.tenant_id = $1{self.text}"
        return f"({self.base(MOST_READ)}) a WHERE true{self.says(wanted)}"

    def base(self, most: int) -> str:
        """The newest rows without a look at their metadata."""
        return f"SELECT a.* FROM audit a WHERE a.tenant_id = $1{self.text} ORDER BY a.seq DESC LIMIT {most:d}"

    def _placed(self, condition: str, *values: object) -> str:
        for value in values:
            self.values.append(value)
            condition = condition.replace("{}", f"${len(self.values)}", 1)
        return condition
