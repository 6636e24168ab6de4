"""What became of an order, in words. Pure."""

from typing import Final

from console.moments import clock, moment
from console.parties import IN
from console.plain import clipped
from console.said import Said, Tone
from console.shapes import Transaction

STATES: Final[dict[str, tuple[str, Tone | None]]] = {
    "pending_approval": ("waiting", "warn"), "rejected": ("refused", "quiet"), "signed": ("signed", None),
    "broadcast": ("sent", None), "confirmed": ("confirmed", "good"), "failed": ("failed", "bad"),
}  # fmt: skip
_MORE: Final = {
    "pending_approval": "waits for a person",
    "signed": "signed; nobody has said yet that it was sent", "broadcast": "sent, and not yet confirmed by the chain",
    "confirmed": "confirmed by the chain", "failed": "failed: it did not happen on the chain",
    "rejected": "refused: it was not signed",
}  # fmt: skip


def state(status: str) -> tuple[str, Tone | None]:
    """A status in a word, with its tone."""
    return STATES.get(status, (clipped(status, 40), "warn"))


def became(transaction: Transaction) -> list[Said]:
    """Its status, what the chain knows it by, and when it came so far."""
    word, tone = state(transaction.status)
    said = [Said(f"It {'was ' if transaction.status in _WAS else ''}{_MORE.get(transaction.status, word)}.", tone)]
    if transaction.status_detail:
        said.append(Said(f"{IN}because: {clipped(transaction.status_detail, 300)}", tone))
    if transaction.tx_hash:
        said += [Said("hash on the chain"), Said(IN + clipped(transaction.tx_hash, 128))]
    if transaction.replaces_tx_id:
        said += [Said("takes the place of the transaction"), Said(IN + clipped(transaction.replaces_tx_id, 128))]
    times = (
        ("signed", transaction.signed_at), ("sent", transaction.broadcast_at), ("confirmed", transaction.confirmed_at),
    )  # fmt: skip
    return said + [Said(f"{name:<13}{clock(moment(at))}") for name, at in times if at]


_WAS: Final = frozenset({"signed", "broadcast", "confirmed", "rejected"})
