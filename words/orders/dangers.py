"""Dangers to see before approving, one line each. Pure."""

from collections.abc import Sequence
from typing import Final

from words.orders.message_in_words import is_bare, is_message, message_dangers
from words.orders.order import Known, Order
from words.orders.parties import as_far
from words.orders.phrases import is_unlimited
from words.orders.psbt_in_words import psbt_in_words
from words.orders.words import never_paid
from words.texts.lines import Line

# Each of these lines begins with it, and no other does: the rest is indented or begins with a word.
_SIGN: Final = "! "
# The kinds of effect that are said in words of their own; any other is said by its name.
_KINDS: Final = frozenset({"transfer", "approval", "fee", "call"})


def warns(lines: Sequence[Line]) -> bool:
    """Tell whether a danger is among the lines that somebody reads before deciding."""
    return any(said.tone == "bad" or said.text.startswith(_SIGN) for said in lines)


def is_unreadable(order: Order) -> bool:
    """Tell whether the order may do what nobody could decode."""
    if is_message(order):
        return is_bare(order)
    if not order.effects:
        return order.kind != "typed_data"
    # In Bitcoin an unread effect says that others pay too, and hides nothing.
    told = _KINDS | {"unread", "opaque"} if order.kind == "bitcoin" else _KINDS
    return any(effect.unknown or effect.kind not in told for effect in order.effects)


def dangers(order: Order, known: Known) -> list[Line]:
    """The gravest first; empty for a payment to somebody who was paid before."""
    if is_message(order):
        return [*message_dangers(order, known), *([Line(f"! {known.doubt}", "warn")] if known.doubt else [])]
    said = []
    if any(is_unlimited(effect) for effect in order.effects):
        said.append(Line("! UNLIMITED: the spender can take the whole balance, now and later.", "bad"))
    if any(effect.unknown for effect in order.effects):
        said.append(Line("! Typed data of an unknown kind: read all of it.", "bad"))
    elif order.kind == "bitcoin" and any(effect.unread for effect in order.effects):
        said.append(Line("! Others pay in this transaction: it is complete only once they have signed too.", "warn"))
    elif any(effect.unread for effect in order.effects):
        said.append(Line("! Not fully decoded: it may do more than is shown here.", "bad"))
    said += [one for one in psbt_in_words(order, known) if one.tone == "bad"]
    if never_paid(order, known):
        said.append(
            Line(
                "! First time: this agent has never before paid this destination or let it spend, as this order "
                f"does{as_far(known)}.",
                "warn",
            )
        )
    elif known.past is None:
        said.append(Line("! Earlier payments to this destination are not known yet.", "warn"))
    if known.doubt:
        said.append(Line(f"! {known.doubt}", "warn"))
    return said
