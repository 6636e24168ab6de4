"""The one query of transaction tracking: what is due on a chain, claimed so that several schedulers share it."""

from typing import Any

import msgspec

from custody.kit.db import Pool
from custody.transactions.backoff import LOOK_FOR_UNSENT, LOOKS_PER_AGE, TRACK
from scheduler.tx_tracking.types import Followed, Member

_CLAIM = "SELECT * FROM claim_following($1, $2, $3, $4, $5, $6)"
_members = msgspec.json.Decoder(tuple[Member, ...]).decode


async def claim(pool: Pool, chain_id: int, limit: int) -> list[Followed]:
    """Claim what is due, in the order of its nonces; nobody else gets it before its next look."""
    rows = await pool.fetch(_CLAIM, chain_id, limit, TRACK.first, TRACK.longest, LOOKS_PER_AGE, LOOK_FOR_UNSENT)
    return sorted((_from_row(row) for row in rows), key=lambda followed: followed.nonce)


def _from_row(row: Any) -> Followed:
    return Followed(
        tenant=row["tenant_id"],
        id=str(row["id"]),
        kind=row["kind"],
        status=row["status"],
        address=row["address"],
        nonce=row["nonce"] or 0,
        hash=row["tx_hash"],
        raw=row["signed_bytes"],
        age_seconds=row["age_seconds"],
        slot=_members(row["slot"]) if row["slot"] else (),
    )
