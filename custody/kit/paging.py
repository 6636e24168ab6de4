"""A page of a list: what was asked for, and what came out."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from custody.kit.described import described

# Some functions of the database count in 32 bits.
Offset = Annotated[int, Meta(ge=0, le=2**31 - 1)]


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """Lists for which the documents give no query: default and maximum 1,000."""

    limit: Annotated[int, Meta(ge=1, le=1000), described("How many at most.")] = 1000
    offset: Annotated[Offset, described("How many to skip.")] = 0


class Listed[T](msgspec.Struct, frozen=True):
    """One page of rows, and how many there are in all; where the next begins, of a list that takes cursors."""

    rows: list[T]
    total: int
    next_cursor: str | UnsetType | None = UNSET
