"""The outcome of an order, in words. Pure."""

from typing import Final

from words.orders.parties import IN
from words.shapes import Transaction
from words.texts.amounts import quote
from words.texts.lines import Line, Tone
from words.texts.moments import clock, moment
from words.texts.plain import clip

STATES: Final[dict[str, tuple[str, Tone | None]]] = {
    "pending_approval": ("waiting", "warn"),
    "rejected": ("refused", "quiet"),
    "signed": ("signed", None),
    "broadcast": ("sent", None),
    "confirmed": ("confirmed", "good"),
    "failed": ("failed", "bad"),
}
# Why an order was not signed, where it was no rule that said no.
_REJECTED: Final[dict[str, tuple[str, str]]] = {
    "denied": ("denied", "denied by a person: it was not signed"),
    "approval_expired": ("expired", "expired: not decided in time, so it was not signed"),
    "withdrawn": ("withdrawn", "withdrawn by its agent: it was not signed"),
}
_MORE: Final = {
    "pending_approval": "waits for a person",
    "signed": "signed; not reported as broadcast yet",
    "broadcast": "broadcast, not yet confirmed by the chain",
    "confirmed": "confirmed by the chain",
    "failed": "failed on the chain",
    "rejected": "refused by a rule: it was not signed",
}


def state(status: str, detail: str | None = None) -> tuple[str, Tone | None]:
    """A status in a word, with its tone; `detail` is what the API adds to it."""
    word, tone = STATES.get(status, (clip(status, 40), "warn"))
    return (_REJECTED[detail][0] if status == "rejected" and detail in _REJECTED else word), tone


def outcome_lines(transaction: Transaction) -> list[Line]:
    """Its status, what the chain knows it by, and when it came so far."""
    word, tone = state(transaction.status, transaction.status_detail)
    more, detail = _MORE.get(transaction.status, word), transaction.status_detail
    if transaction.status == "rejected":
        more = _REJECTED.get(detail or "", ("", more))[1]
    said = [Line(f"It {'was ' if transaction.status in _WAS else ''}{more}.", tone)]
    if detail is not None and detail not in ("", *_REJECTED):
        said.append(Line(f"{IN}because: {clip(detail, 300)}", tone))
    if transaction.reason:
        said.append(Line(f"{IN}because: {quote(transaction.reason, 300)}", tone))
    if transaction.tx_hash:
        said += [Line("hash on the chain"), Line(IN + clip(transaction.tx_hash, 128))]
    if transaction.settled_by:
        said += [Line("taken by whom it pays in"), Line(IN + clip(transaction.settled_by, 128))]
    if transaction.replaces_tx_id:
        said += [Line("replaces the transaction"), Line(IN + clip(transaction.replaces_tx_id, 128))]
    times = (
        ("signed", transaction.signed_at),
        ("sent", transaction.broadcast_at),
        ("confirmed", transaction.confirmed_at),
    )
    return said + [Line(f"{name:<13}{clock(moment(at))}") for name, at in times if at]


_WAS: Final = frozenset({"signed", "broadcast", "confirmed", "rejected"})
