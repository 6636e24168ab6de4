"""Earlier orders of an agent with the same destination. Pure."""

from typing import Final

from words.orders.order import Known, Order
from words.orders.parties import SIGNED, same, token_of
from words.orders.phrases import is_unlimited, nft_number
from words.shapes import Effect, Transaction
from words.texts.amounts import amount_of, quote, whole
from words.texts.lines import Line
from words.texts.moments import clock, moment
from words.texts.plain import clip

_SHOWN: Final = 5
# How far an earlier order came, and with it whether what it says has happened, can happen, or never did.
_CAME_TO: Final = {
    "confirmed": ("confirmed", "did"),
    "broadcast": ("sent, not yet confirmed", "does"),
    "signed": ("signed", "does"),
    "pending_approval": ("waits for a person", "would do"),
    "rejected": ("was refused", "would have done"),
    "failed": ("failed", "would have done"),
}
# A verb in each of these forms.
_FORMS: Final = {
    "send": {"did": "sent", "does": "sends", "would do": "would send", "would have done": "would have sent"},
    "let": {"did": "let", "does": "lets", "would do": "would let", "would have done": "would have let"},
    "call": {"did": "called", "does": "calls", "would do": "would call", "would have done": "would have called"},
    "do": {"did": "did", "does": "does", "would do": "would do", "would have done": "would have done"},
}


def before(order: Order, known: Known) -> list[Line]:
    """The last few orders to the same destination, and whether it was ever paid."""
    if order.to_address is None and order.kind != "bitcoin":
        return [Line("It names no destination.", "warn")]
    if known.past is None:
        return [Line("The history with this destination is unknown.", "warn")]
    said: list[Line] = []
    if not any(earlier.status in SIGNED and _moves(earlier) for earlier in known.past):
        looked = "" if known.past_complete else " in the orders searched, which are not all"
        said.append(Line(f"Never paid before{looked}.", "warn"))
    said += [Line(_line(earlier, order, known)) for earlier in known.past[:_SHOWN]]
    if (more := len(known.past) - _SHOWN) > 0:
        said.append(Line(f"and {more:,} more", "quiet"))
    return said


def _moves(earlier: Transaction) -> bool:
    """Tell whether it did more than send nothing or take something back."""
    return not earlier.effects or any(
        one.unlimited or (whole(one.amount) or 0) > 0 for one in earlier.effects if one.kind != "fee"
    )


def _line(earlier: Transaction, order: Order, known: Known) -> str:
    parties = [effect.spender or effect.to for effect in order.effects]
    met = [one for one in earlier.effects if any(same(one.spender or one.to, party) for party in parties)]
    came_to, form = _CAME_TO.get(earlier.status, (clip(earlier.status, 40), "would do"))
    did = [_did(effect, earlier, known) for effect in met[:3]] or [("call", "it")]
    return f"{clock(moment(earlier.created_at))}  {came_to}: " + ", ".join(
        f"{_FORMS[verb][form]} {it}" for verb, it in did
    )


def _did(effect: Effect, earlier: Transaction, known: Known) -> tuple[str, str]:
    match effect.kind:
        case "approval" if is_unlimited(effect):
            return "let", "it spend UNLIMITED amounts"
        case "transfer" | "approval" if effect.asset:
            number = nft_number(effect)
            amount = amount_of(effect.amount, effect.asset, earlier.chain_id, known.tokens.get(effect.asset))
            of = " of a token" if token_of(effect.asset) else ""
            shown = f"NFT number {number}" if number else amount + of
            return ("send", f"it {shown}") if effect.kind == "transfer" else ("let", f"it spend {shown}")
        case "fee":
            # A fee has met an address only if it was paid to it.
            what = "rent" if (effect.label or "").startswith("rent") else "a fee"
            return "send", f"it {amount_of(effect.amount, effect.asset or '', earlier.chain_id, None)} as {what}"
        case "unread" | "opaque":
            return "do", "undecoded data"
        case "call":
            return "call", "it"
        case kind:
            return "do", f"something that is not known here ({quote(kind, 24)})"
