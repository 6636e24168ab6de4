"""Queries of audit rows, leaves and checkpoints."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from api.areas.audit.filters import Wanted
from custody.audit import columns, leaf
from custody.audit.tree import Place
from custody.kit.db import Connection
from custody.kit.paging import AROUND, MAX_PAGE_BYTES, Bound, Total

# Metadata is not indexed, so that acting stays cheap: so many of the newest rows that the other filters leave are read.
MOST_READ = 100_000
# How long a row is in an answer.
_OF_A_PAGE = f"{columns.SHOWN_SIZE} + {AROUND}"
# Of one file: half of what answers of one tenant may hold. It goes on at its cursor, as a page does.
MAX_BYTES = 8 * 1024 * 1024
# A tenant made again under an id must not see rows of the one before it: those of a tenant begin with its own making.
# Materialized, or it could be planned as a walk back over all rows until one fits.
_BEGAN = (
    "WITH made AS MATERIALIZED (SELECT seq FROM audit WHERE tenant_id = $1 AND action = 'tenant.created' "
    "AND resource_id = $1) SELECT max(seq) FROM made"
)
# One statement, for a row is sealed in between.
_ALL = (
    "SELECT (SELECT COALESCE(max(log_index) + 1, 0) FROM audit_leaves WHERE tenant_id = $1)"
    " + (SELECT count(*) FROM audit_unsealed WHERE tenant_id = $1) AS rows,"
    " (SELECT min(seq) FROM audit WHERE tenant_id = $1) AS first"
)
_BEGAN_INDEX = "SELECT log_index FROM audit_leaves WHERE tenant_id = $1 AND seq = $2"
_LOG = (
    "SELECT l.log_index, l.hash, a.* FROM audit_leaves l JOIN audit a ON a.tenant_id = l.tenant_id AND a.seq = l.seq "
    "WHERE l.tenant_id = $1 AND l.log_index >= $2 AND l.log_index < $3"
)
# Every combination of what has few values, one step of the index for each.
_KINDS = """
WITH RECURSIVE k AS (
  (SELECT action, actor_type, resource_type FROM audit WHERE tenant_id = $1
    ORDER BY action, actor_type, resource_type LIMIT 1)
  UNION ALL
  SELECT n.* FROM k, LATERAL (
    SELECT a.action, a.actor_type, a.resource_type FROM audit a
     WHERE a.tenant_id = $1 AND (a.action, a.actor_type, a.resource_type) > (k.action, k.actor_type, k.resource_type)
     ORDER BY a.action, a.actor_type, a.resource_type LIMIT 1) n
)
SELECT * FROM k
 WHERE ($2::text IS NULL OR action = $2) AND ($3::text IS NULL OR starts_with(action, $3))
   AND ($4::text IS NULL OR actor_type = $4) AND ($5::text IS NULL OR resource_type = $5)
"""
_SPANNED = "SELECT COALESCE(max(position) + 1, 0) * 512 FROM audit_spans WHERE tenant_id = $1"
# Between which numbers the rows of a time are: by spans, and one by one where no span is full yet.
# $4 is asked for before: behind row-level security a bound that is a query itself is not looked up in an index.
_BETWEEN = """
WITH late AS MATERIALIZED (
  SELECT a.seq FROM audit a
   WHERE a.tenant_id = $1 AND a.seq = ANY (ARRAY(
           SELECT seq FROM audit_leaves WHERE tenant_id = $1 AND log_index >= $4
           UNION ALL SELECT seq FROM audit_unsealed WHERE tenant_id = $1))
     AND ($2::timestamptz IS NULL OR a.created_at >= $2) AND ($3::timestamptz IS NULL OR a.created_at <= $3)
)
SELECT min(low) AS low, max(high) AS high FROM (
  SELECT min(first_seq) AS low, max(last_seq) AS high FROM audit_spans
   WHERE tenant_id = $1 AND ($2::timestamptz IS NULL OR newest >= $2) AND ($3::timestamptz IS NULL OR oldest <= $3)
  UNION ALL SELECT min(seq), max(seq) FROM late) b
"""


class Sealed(msgspec.Struct, frozen=True):
    """A row with its place in the log, and its leaf as it is kept."""

    index: int
    hash: bytes
    read: leaf.Read


class Part(msgspec.Struct, frozen=True):
    """A part of the rows: at most `limit`, and what fits into a page or a file; behind some, or with a lower seq."""

    offset: int
    limit: int
    below: int | None = None
    of_page: bool = False


class Rows[T](msgspec.Struct, frozen=True):
    """Rows that were found; `more` says that not all of them are here."""

    rows: list[T]
    more: bool


class Counted(msgspec.Struct, frozen=True):
    """A count of rows, whether that is all, and whether of the whole log instead of what is below."""

    rows: int
    exact: bool
    everything: bool = False


class Stored(msgspec.Struct, frozen=True):
    """A checkpoint as it is kept."""

    size: int
    root: bytes
    note: str
    created_at: Any


class TooWide(Exception):
    """The metadata filters were tried on as many rows as we read, and the page is not full."""


async def first_seq(connection: Connection, tenant: str) -> int:
    """Find where the rows of this tenant begin, if there was another under its id."""
    return await connection.fetchval(_BEGAN, tenant) or 0


async def first_index(connection: Connection, tenant: str) -> int | None:
    """The same in the log, or None while that row waits to be sealed."""
    seq = await connection.fetchval(_BEGAN, tenant)
    return 0 if seq is None else await connection.fetchval(_BEGAN_INDEX, tenant, seq)


async def page(connection: Connection, tenant: str, wanted: Wanted, part: Part) -> Rows[leaf.Read]:
    """The rows of a part, newest first. Raises TooWide."""
    found, offset, limit = await _visible(connection, tenant, wanted), part.offset, part.limit
    if part.below is not None:
        found.add("a.seq < {}", part.below)
    plain = list(found.values)
    begin = f"SELECT a.* FROM {found.rows(wanted, offset + limit + 1)} ORDER BY a.seq DESC LIMIT {limit + 1:d}"
    bounded = _page_sql(f"{begin} OFFSET {offset:d}", "a.seq DESC", limit, of_page=part.of_page)
    rows = await connection.fetch(bounded, *found.values)
    if wanted.paths and _count(rows) < limit:
        read = await connection.fetchval(f"SELECT count(*) FROM ({found.newest(MOST_READ + 1)}) c", *plain)
        if read > MOST_READ:
            raise TooWide
    return Rows([leaf.of_record(row) for row in rows], _count(rows) > len(rows))


async def count(connection: Connection, tenant: str, wanted: Wanted, most: int, *, below: int | None = None) -> Counted:
    """Count the rows, no further than `most`; all rows of a tenant are known without counting."""
    if wanted.everything and (known := await _count_all(connection, tenant)) is not None:
        return Counted(known, exact=True, everything=True)
    found = await _visible(connection, tenant, wanted)
    if below is not None:
        found.add("a.seq < {}", below)
    plain = list(found.values)
    counted = await connection.fetchval(
        f"SELECT count(*) FROM (SELECT FROM {found.rows(wanted, most + 1)} LIMIT {most + 1:d}) c", *found.values
    )
    exact = counted <= most
    if exact and wanted.paths:
        read = await connection.fetchval(f"SELECT count(*) FROM ({found.newest(MOST_READ + 1)}) c", *plain)
        exact = read <= MOST_READ
    return Counted(min(counted, most), exact=exact)


async def _count_all(connection: Connection, tenant: str) -> int | None:
    """All rows under this id: those in the log, which has no gaps, and those to be sealed.

    None where some are of an earlier tenant with the same id.
    """
    row = await connection.fetchrow(_ALL, tenant)
    return row["rows"] if await first_seq(connection, tenant) <= (row["first"] or 0) else None


async def log(connection: Connection, tenant: str, wanted: Wanted, begin: int, end: int, limit: int) -> Rows[Sealed]:
    """Sealed rows from one place of the log to before another, in its order; bounded as a page is. Raises TooWide."""
    found = _Statement(tenant, begin, end)
    await found.where(connection, tenant, wanted)
    found.of_kind(wanted)
    plain = list(found.values)
    inner = f"{_LOG}{found.text} ORDER BY l.log_index"
    if wanted.paths:
        inner = f"SELECT * FROM ({inner} LIMIT {MOST_READ}) a WHERE true{found.says(wanted)} ORDER BY log_index"
    rows = await connection.fetch(
        _page_sql(f"{inner} LIMIT {limit + 1:d}", "a.log_index", limit, "a.log_index, a.hash, "), *found.values
    )
    if wanted.paths and _count(rows) < limit:
        read = await connection.fetchval(f"SELECT count(*) FROM ({_LOG}{found.text} LIMIT {MOST_READ + 1}) c", *plain)
        if read > MOST_READ:
            raise TooWide
    sealed = [Sealed(row["log_index"], row["hash"], leaf.of_record(row)) for row in rows]
    return Rows(sealed, _count(rows) > len(rows))


async def newest_checkpoint(connection: Connection, tenant: str) -> Stored | None:
    """The last one, or None for a log without a sealed row."""
    found = await checkpoints(connection, tenant, 0, 1, 0)
    return found[0] if found else None


async def checkpoints(connection: Connection, tenant: str, above: int, limit: int, offset: int) -> list[Stored]:
    """Those of more than `above` rows, newest first."""
    rows = await connection.fetch(
        "SELECT size, root, note, created_at FROM audit_checkpoints WHERE tenant_id = $1 AND size > $2 "
        "ORDER BY size DESC LIMIT $3 OFFSET $4",
        tenant,
        above,
        limit,
        offset,
    )
    return [Stored(**row) for row in rows]


async def count_checkpoints(connection: Connection, tenant: str, above: int, bound: Bound) -> Total:
    """Count them."""
    counted = bound.query("FROM audit_checkpoints WHERE tenant_id = $1 AND size > $2")
    return bound.total(await connection.fetchval(counted, tenant, above))


async def newest_seq(connection: Connection, tenant: str) -> int:
    """The newest row's number."""
    return await connection.fetchval("SELECT max(seq) FROM audit WHERE tenant_id = $1", tenant) or 0


async def waits(connection: Connection, tenant: str, seq: int) -> bool:
    """Say whether a row up to this one is not sealed yet."""
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
                tenant,
                positions,
            )
        else:
            rows = await connection.fetch(
                "SELECT position, hash FROM audit_nodes WHERE tenant_id = $1 AND level = $2 AND position = ANY ($3)",
                tenant,
                level,
                positions,
            )
        found |= {(level, row["position"]): row["hash"] for row in rows}
    return found


def _page_sql(rows: str, order: str, limit: int, more: str = "", *, of_page: bool = False) -> str:
    """The first of these rows as they are read, at most `limit` and what fits, but one if there is any."""
    size, most_bytes = (_OF_A_PAGE, MAX_PAGE_BYTES) if of_page else (columns.SIZE, MAX_BYTES)
    return (
        f"SELECT a.found, {more}{columns.READ} FROM (SELECT a.*, {size} AS size, count(*) OVER () AS found,"
        f" row_number() OVER w AS place, sum({size}) OVER w AS upto"
        f" FROM ({rows}) a WINDOW w AS (ORDER BY {order})) a WHERE a.place <= {limit:d}"
        f" AND (a.upto <= {most_bytes:d} OR a.place = 1) ORDER BY a.place"
    )


def _count(rows: Sequence[Any]) -> int:
    return rows[0]["found"] if rows else 0


async def _visible(connection: Connection, tenant: str, wanted: Wanted) -> "_Statement":
    """The filter, over the rows that this tenant may see."""
    # Which index serves depends on the values: a plan for any of them would read a million rows for some.
    await connection.execute("SELECT set_config('plan_cache_mode', 'force_custom_plan', true)")
    found = _Statement(tenant)
    await found.where(connection, tenant, wanted)
    found.add("a.seq >= {}", await first_seq(connection, tenant))
    given = wanted.filter
    few = (given.action, given.action_prefix, given.actor_type, given.resource_type)
    if any(value is not None for value in few):
        found.only([tuple(row) for row in await connection.fetch(_KINDS, tenant, *few)])
    return found


class _Statement:
    """Conditions over audit rows `a`, and their values."""

    def __init__(self, *values: object) -> None:
        self.values: list[object] = list(values)
        self.text = ""
        # One condition for each kind of rows that is wanted; None where all are.
        self._kinds: list[str] | None = None

    def add(self, condition: str, *values: object) -> None:
        """One more condition; `{}` stands for each value."""
        self.text += " AND " + self._place(condition, *values)

    async def where(self, connection: Connection, tenant: str, wanted: Wanted) -> None:
        """Everything but the kind and the metadata."""
        given = wanted.filter
        for column in ("actor_id", "resource_id", "request_id"):
            if (value := getattr(given, column)) is not None:
                self.add(f"a.{column} = {{}}", value)
        if wanted.since is None and wanted.until is None:
            return
        spanned = await connection.fetchval(_SPANNED, tenant)
        between = await connection.fetchrow(_BETWEEN, tenant, wanted.since, wanted.until, spanned)
        # Numbers rise nearly with the time, so few rows between these two are of another.
        self.add("a.seq >= {} AND a.seq <= {}", *(between if between["low"] is not None else (1, 0)))
        if wanted.since is not None:
            self.add("a.created_at >= {}", wanted.since)
        if wanted.until is not None:
            self.add("a.created_at <= {}", wanted.until)

    def of_kind(self, wanted: Wanted) -> None:
        """The kind as conditions like any other, for rows that are read in another order."""
        given = wanted.filter
        for column in ("action", "actor_type", "resource_type"):
            if (value := getattr(given, column)) is not None:
                self.add(f"a.{column} = {{}}", value)
        if given.action_prefix is not None:
            self.add("starts_with(a.action, {})", given.action_prefix)

    def only(self, kinds: Iterable[tuple[str, str, str]]) -> None:
        """Rows of these kinds: action, type of actor, type of resource."""
        self._kinds = [self._place("a.action = {} AND a.actor_type = {} AND a.resource_type = {}", *k) for k in kinds]

    def says(self, wanted: Wanted) -> str:
        """The conditions on the metadata."""
        return "".join(
            " AND "
            + self._place(
                "CASE WHEN strpos(a.metadata, {}) > 0 THEN audit_says(a.metadata, {}::text[], {}) ELSE false END",
                path.needle,
                list(path.segments),
                path.text,
            )
            for path in wanted.paths
        )

    def rows(self, wanted: Wanted, most: int) -> str:
        """Name the source of the newest `most`; with metadata they are looked for in as many as we read."""
        newest = self.newest(MOST_READ if wanted.paths else most)
        return f"({newest}) a WHERE true{self.says(wanted)}"

    def newest(self, most: int) -> str:
        """The newest rows without a look at their metadata."""
        newest = f"ORDER BY a.seq DESC LIMIT {most:d}"
        # Each kind is in the order of its index, and they are merged: no more rows are read than are wanted.
        kinds = ["true"] if self._kinds is None else self._kinds or ["false"]
        parts = [f"(SELECT a.* FROM audit a WHERE a.tenant_id = $1 AND {kind}{self.text} {newest})" for kind in kinds]
        return f"SELECT a.* FROM ({' UNION ALL '.join(parts)}) a {newest}"

    def _place(self, condition: str, *values: object) -> str:
        for value in values:
            self.values.append(value)
            condition = condition.replace("{}", f"${len(self.values)}", 1)
        return condition
