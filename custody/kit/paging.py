"""A page of a list: what was asked for, and what came out. Decisions 1."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """Lists for which the documents give no query: default and maximum 1,000."""

    limit: Annotated[int, Meta(ge=1, le=1000)] = 1000
    offset: Annotated[int, Meta(ge=0, le=2**31)] = 0


class Listed(msgspec.Struct, frozen=True):
    """One page of rows, and how many there are in all."""

    rows: list[Any]
    total: int
