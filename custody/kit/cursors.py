"""The place where a walk through a list goes on: that of the last row that was given, as a text that callers pass back.

A cursor holds a place and nothing secret, so it needs no signature: who changes one stands somewhere else in the same
list, which is theirs to read anyway. It is bound to the tenant, the list and the filters, because with others the place
would mean nothing. Rows are ordered by what never changes of them, newest first, so rows that are added
meanwhile are before the place: none comes twice, and none that was there when the walk began is left out. Pure.
"""

import base64
import hashlib
import struct
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from custody.kit.errors import Invalid
from custody.kit.paging import Total

# Version, list, rows before the place, rows in all (and whether that is an estimate), then the last row: its time or
# number, and its id.
_FORM: Final = struct.Struct(">B15sIIq16s")
_VERSION: Final = 1
# The form's size is a multiple of three, so nothing is padded and each cursor has one spelling.
LENGTH: Final = _FORM.size // 3 * 4
_MOST: Final = 2**32 - 1
# The highest bit of the total says that it is an estimate.
_ESTIMATE: Final = 2**31
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# The year 9999 in microseconds: later ones no reader can hold, and no number of a row is as high.
_TOO_FAR: Final = (datetime(9999, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
# What says how much is shown of which page, and in which form, and not which rows there are.
_NO_FILTERS: Final = frozenset({"cursor", "limit", "offset", "page", "include", "format"})

# The header that names the next cursor, too: of a file there is no other place for it.
NEXT_CURSOR: Final = "X-Next-Cursor"

Cursor = Annotated[
    str,
    Meta(
        min_length=LENGTH,
        max_length=LENGTH,
        pattern=r"^[A-Za-z0-9_-]+\Z",
        description="`nextCursor` of the page before, sent with the same filters: the next page of the same walk. "
        "Rows that are added meanwhile do not shift it.",
        extra={"must": "be nextCursor of the page before, unchanged"},
    ),
]
NextCursor = Annotated[
    str | None,
    Meta(description="The `cursor` of the next page; null on the last one."),
]


class BadCursor(Invalid):
    """cursor is not one that this service gave; send nextCursor of the page before, or leave cursor out to begin."""


class OtherCursor(Invalid):
    """cursor belongs to another list or to other filters; repeat the filters it was given for, or leave cursor out."""


class CursorAndPage(Invalid):
    """cursor already says where the page begins; leave offset and page out."""


class Walk(msgspec.Struct, frozen=True):
    """One list of one tenant, through the filters of one request."""

    name: bytes


class Place(msgspec.Struct, frozen=True):
    """Behind which row a page begins: `number` is its own, or its time in microseconds."""

    number: int
    id: uuid.UUID = uuid.UUID(int=0)
    # Rows of the walk that come before, and rows there were in all when it began.
    before: int = 0
    total: Total = Total(0)

    @property
    def at(self) -> datetime:
        """The number as a time."""
        return _EPOCH + timedelta(microseconds=self.number)

    def total_at(self, rows: int, *, more: bool) -> Total:
        """The total of the walk on its next page, which has so many rows.

        Nothing is counted again: an estimate grows with the rows that were given, and the last page ends it.
        """
        seen = self.before + rows
        if not self.total.is_estimate:
            return self.total
        return Total(max(self.total.rows, seen + 1), is_estimate=True) if more else Total(seen)


def walk(tenant: str, path: tuple[str, ...], query: msgspec.Struct) -> Walk:
    """The walk that a request begins or goes on with; `path` says which list."""
    filters = {name: value for name, value in msgspec.structs.asdict(query).items() if name not in _NO_FILTERS}
    content = msgspec.json.encode([tenant, path, filters], order="deterministic")
    return Walk(hashlib.sha256(content).digest()[:15])


def onwards(of: Walk, column: str, rows: Sequence[Any], *, more: bool, before: int, total: Total) -> str | None:
    """The cursor behind a page of rows whose time is in a column, or None where there are no more."""
    if not more or not rows:
        return None
    last = rows[-1]
    number = (last[column] - _EPOCH) // timedelta(microseconds=1)
    return write(of, Place(number, last["id"], before + len(rows), total))


def write(of: Walk, place: Place) -> str:
    """The cursor of a place."""
    before, total = min(place.before, _MOST), min(place.total.rows, _ESTIMATE - 1)
    total |= _ESTIMATE if place.total.is_estimate else 0
    return _text(_FORM.pack(_VERSION, of.name, before, total, place.number, place.id.bytes))


def begin(of: Walk, query: Any) -> Place | None:
    """Find where the requested page begins, if a cursor says so. Raises BadCursor, OtherCursor, CursorAndPage."""
    if query.cursor is None:
        return None
    if getattr(query, "offset", 0) or getattr(query, "page", 1) != 1:
        raise CursorAndPage(fields=["cursor"])
    return read(of, query.cursor)


def read(of: Walk, cursor: str) -> Place:
    """The place that a cursor names in this walk. Raises BadCursor, OtherCursor."""
    try:
        content = base64.b64decode(cursor, altchars=b"-_", validate=True)
        version, name, before, total, number, row_id = _FORM.unpack(content)
    except (ValueError, struct.error):
        raise BadCursor(fields=["cursor"]) from None
    if version != _VERSION or not 0 <= number < _TOO_FAR or _text(content) != cursor:
        raise BadCursor(fields=["cursor"])
    if name != of.name:
        raise OtherCursor(fields=["cursor"])
    counted = Total(total & ~_ESTIMATE, is_estimate=total >= _ESTIMATE)
    return Place(number, uuid.UUID(bytes=row_id), before, counted)


def _text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode()
