"""The lines of an NDJSON export, as they are written and as they are read again: byte for byte the same. Pure."""

from typing import Literal

import msgspec

from custody.audit.leaf import Row


class RowLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row and its place in the log."""

    type: Literal["row"] = "row"
    index: int
    row: Row


class RawRowLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row with a column outside its bounds. `unreadable` names them; `hash` is the leaf as the log has it.

    The leaf is that of the row shown, unless the row was sealed before there were bounds: then the log holds its place,
    and this line cannot show what it said.
    """

    type: Literal["raw_row"] = "raw_row"
    index: int
    hash: str
    unreadable: list[str]
    row: Row


class LastLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The newest checkpoint, and the hashes that lead from the rows, and from an earlier checkpoint, to it.

    `begin`: where in the log the rows begin. `filtered`: rows between those shown were not asked for. `next`: the
    cursor behind the last row, if there are more.
    """

    type: Literal["checkpoint"] = "checkpoint"
    checkpoint: str
    begin: int
    filtered: bool
    next: str | None
    proof: list[str]
    since: int | None
    consistency: list[str]


def encode_line(line: RowLine | RawRowLine | LastLine) -> bytes:
    """The line with its end."""
    return msgspec.json.encode(line) + b"\n"


def read[T: (RowLine, RawRowLine, LastLine)](line: bytes, shape: type[T]) -> T | None:
    """The line, or None for what `encode_line` would not write: one meaning has one spelling, so no key comes twice."""
    try:
        found = msgspec.json.decode(line, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return found if msgspec.json.encode(found) == line else None
