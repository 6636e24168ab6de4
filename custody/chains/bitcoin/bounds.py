"""The most that a transaction may pay, and what nodes relay, as an operator may set it."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

MAX_MONEY: Final = 21 * 10**14
# Of all scripts with data of a transaction, their opcodes included.
MAX_OP_RETURN: Final = 100_000


class Bounds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The most that a transaction may pay in fees: satoshis, satoshis a vbyte, and percent of what it pays; and what
    nodes relay, as Bitcoin Core 30 does by default.

    The share counts only where the payments come to more than `share_above`: small ones cost much in proportion. What
    is relayed is in satoshis for 1,000 vbytes, as nodes are told it, for the floor is a fraction of a satoshi a vbyte.
    """

    absolute: Annotated[int, Meta(ge=0, le=MAX_MONEY)] = 100_000
    per_vbyte: Annotated[int, Meta(ge=1, le=MAX_MONEY)] = 500
    share_percent: Annotated[int, Meta(ge=0, le=100)] = 5
    share_above: Annotated[int, Meta(ge=0, le=MAX_MONEY)] = 100_000
    relay_per_kvbyte: Annotated[int, Meta(ge=0, le=10**9)] = 100
    dust_per_kvbyte: Annotated[int, Meta(ge=0, le=10**9)] = 3_000
    op_return_bytes: Annotated[int, Meta(ge=0, le=MAX_OP_RETURN)] = MAX_OP_RETURN
    op_return_outputs: Annotated[int, Meta(ge=0, le=100)] = 100
