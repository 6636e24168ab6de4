"""A page of a list: what was asked for, and what came out."""

from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from custody.kit.described import described
from custody.kit.shapes import Offset

# Rows behind a page are counted so far: a list of a million costs no more than one of a thousand. docs/api.md.
COUNTED_BEYOND: Final = 1_000

# A page ends before the row that would make its answer longer than this, but has at least one row.
MAX_PAGE_BYTES: Final = 4 * 1024 * 1024
# What a row takes beside its long values: its short ones, and the names of all.
AROUND: Final = 1_024
# The length of a whole row as JSON: for rows that are short, because Postgres writes each to know it.
AS_JSON: Final = "octet_length(to_json(q)::text)"

TOTAL_COUNT: Final = "X-Total-Count"
# The header that names the next page of a list without cursors: a page may hold fewer rows than were asked for.
NEXT_OFFSET: Final = "X-Next-Offset"
# The header that says that it is one, and the field beside the data of a list.
TOTAL_IS_ESTIMATE: Final = "X-Total-Is-Estimate"
TotalIsEstimate = Annotated[
    bool,
    Meta(
        description="There, and true, where more rows follow than are counted: `X-Total-Count` is then the least there "
        "are."
    ),
]


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """Lists for which the documents give no query: default and maximum 1,000."""

    limit: Annotated[int, Meta(ge=1, le=1000), described("Maximum number of items.")] = 1000
    offset: Annotated[Offset, described("Number of items to skip.")] = 0


class Total(msgspec.Struct, frozen=True):
    """The number of rows in a list; an estimate is the least there are."""

    rows: int
    is_estimate: bool = False


def total_headers(total: Total) -> dict[str, str]:
    """The headers that say so."""
    return {TOTAL_COUNT: str(total.rows)} | ({TOTAL_IS_ESTIMATE: "true"} if total.is_estimate else {})


def fitting(rows: str, order: str, size: str = AS_JSON, *, most: int | None = None) -> str:
    """The query of those of the rows, in their order, that fit into MAX_PAGE_BYTES; the first one in any case.

    `size` is what a row `q` takes in an answer, by what Postgres knows before a long value is read or decoded. Of
    `found` rows only `most` are given, so that one more can be asked for to know whether there is one.
    """
    limited = "" if most is None else f"nth <= {most:d} AND "
    sized = f"SELECT q.*, {size} AS size FROM ({rows}) q"  # noqa: S608 - texts of stores
    so_far = "sum(size) OVER w AS so_far, row_number() OVER w AS nth, count(*) OVER () AS found"
    placed = f"SELECT q.*, {so_far} FROM ({sized}) q WINDOW w AS (ORDER BY {order})"  # noqa: S608
    return f"SELECT * FROM ({placed}) q WHERE {limited}(so_far <= {MAX_PAGE_BYTES} OR nth = 1) ORDER BY nth"  # noqa: S608


def offset_headers(offset: int, shown: int, total: int) -> dict[str, str]:
    """The header that says where the next page begins; nothing on the last one. Rows behind it are always counted."""
    return {NEXT_OFFSET: str(offset + shown)} if total > offset + shown else {}


class Bound(msgspec.Struct, frozen=True):
    """The bound to which the rows of a list are counted for one page."""

    most: int

    def query(self, rows_of: str) -> str:
        """The query that counts the rows of a `FROM` clause, and never more of them than tell that there are more."""
        return f"SELECT count(*) FROM (SELECT {rows_of} LIMIT {self.most + 1:d}) c"  # noqa: S608 - texts of stores

    def total(self, counted: int) -> Total:
        """Read the total from the counted rows."""
        return Total(min(counted, self.most), counted > self.most)


def reach(offset: int, limit: int) -> Bound:
    """The bound for a page."""
    return Bound(offset + limit + COUNTED_BEYOND)


class Listed[T](msgspec.Struct, frozen=True):
    """One page of rows, and how many there are in all; where the next begins, of a list that takes cursors."""

    rows: list[T]
    total: int
    next_cursor: str | UnsetType | None = UNSET
    total_is_estimate: bool = False

    @property
    def page_of(self) -> tuple[int, int]:
        """Return the number of rows here, and of all rows."""
        return len(self.rows), self.total


def cut[T](rows: Sequence[T], page: Page) -> Listed[T]:
    """A page of a list that has a bound of its own, and was read whole."""
    return Listed(list(rows[page.offset : page.offset + page.limit]), len(rows))


def page_of[T](rows: Sequence[T], total: Total, next_cursor: str | UnsetType | None = UNSET) -> Listed[T]:
    """A page with its total."""
    return Listed(list(rows), total.rows, next_cursor, total.is_estimate)
