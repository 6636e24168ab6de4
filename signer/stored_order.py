"""A stored order as its events tell of it."""

from typing import Any

import msgspec

from custody.webhooks.events import clip

_decode = msgspec.json.Decoder(list[dict[str, Any]]).decode


def show(row: Any) -> dict[str, Any]:
    """The fields of `OrderEvent`, from a row of `approval_read` or `outcome_read`."""
    effects, more = clip(_decode(row["effects"]))
    return {
        "tx_id": str(row["tx_id"]),
        "kind": row["kind"],
        "to": row["to_address"],
        "value": row["value"],
        "chain_id": row["chain_id"],
        "reference_id": row["reference_id"],
        "effects": effects,
        "more_effects": more,
    }
