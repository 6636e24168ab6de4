"""One effect of an order in a few words, for a list; addresses are shortened there. Pure."""

from typing import Final

from words.orders.order import Known, Order
from words.orders.parties import brief, token_of
from words.orders.phrases import (
    beside,
    document,
    is_unlimited,
    lowers,
    nft_number,
    raises,
    takes_back,
    with_own,
    writes_data,
)
from words.shapes import Effect
from words.texts.amounts import human, quote, short_amount, told_decimals, whole
from words.texts.chains import native_coin
from words.texts.plain import clip

# Whether a call adds to an approval, or lowers it: yes, no, not known.
_MORE: Final = {True: " more", False: "", None: " or more"}
_OWN: Final = {"revoke on": "Takes back who may spend from", "close": "Closes"}
_LESS: Final = {True: "Lowers", False: "Takes back", None: "Lowers or takes back"}


def label(effect: Effect, order: Order, known: Known) -> str:
    """Describe an effect on one line."""
    if (done := with_own(effect, order)) is not None:
        return f"{_OWN[done[0]]} token account {brief(done[1])}"
    whom = brief(effect.spender or effect.to)
    match effect.kind:
        case "transfer" if writes_data(effect, order):
            return "Writes data into the chain"
        case "transfer":
            return f"Sends {_brief_amount(effect, order, known)} to {whom}"
        case "approval" if is_unlimited(effect):
            return f"UNLIMITED approval of {_brief_asset(effect)} for {whom}"
        case "approval" if whole(effect.amount) == 0:
            return _brief_end(effect, order, known)
        case "approval":
            return f"Approval of {_brief_amount(effect, order, known)} for {whom}"
        case "fee":
            return f"Pays a fee of {_brief_amount(effect, order, known)}"
        case "unread" | "opaque":
            return _brief_unread(effect, order, whom)
        case kind:
            return f"Calls {whom}" if kind == "call" else f"Unknown effect {quote(kind, 24)} for {whom}"


def _brief_unread(effect: Effect, order: Order, whom: str) -> str:
    """Bytes that the service could not decode."""
    if order.kind == "bitcoin":
        return "Pays together with others"
    if effect.unknown:
        return f"Unknown typed data: {quote(effect.label or '', 24)}"
    if (what := beside(effect)) is not None:
        return what
    label = document(effect)
    return f"Cannot be decoded: document {quote(label, 24)}" if label else f"Cannot be decoded: call of {whom}"


def _brief_end(effect: Effect, order: Order, known: Known) -> str:
    """An approval of 0: some calls that have none set it to that, another only lowers it."""
    approval = f"approval of {_brief_asset(effect)} for {brief(effect.spender or effect.to)}"
    if takes_back(effect, order, known):
        return f"{_LESS[lowers(order, known)]} {approval}"
    added = raises(order, known)
    if added:
        return f"Adds nothing to {approval}"
    nothing = "" if added is False else ", or adds nothing"
    set_to = f"Sets {approval} to 0" if lowers(order, known) is False else f"Lowers {approval}, or sets it to 0"
    return set_to + nothing


def _brief_amount(effect: Effect, order: Order, known: Known) -> str:
    amount = whole(effect.amount)
    coin = native_coin(effect.asset, order.chain_id)
    if amount is None:
        return "an amount that is not a number"
    if coin:
        # Whichever is shorter: two wei are two wei, not nothing and sixteen zeros.
        amounts = (human(amount, coin.decimals), coin.symbol), (f"{amount:,}", coin.smallest)
        return min((f"{short_amount(shown)} {unit}" for shown, unit in amounts), key=len)
    if number := nft_number(effect):
        return f"NFT {clip(number, 12)} of {_brief_asset(effect)}"
    decimals = told_decimals(known.tokens.get(effect.asset or ""))
    raw = f"{short_amount(f'{amount:,}')} raw units"
    shown = raw if decimals is None else short_amount(human(amount, decimals))
    more = _MORE[raises(order, known)] if effect.kind == "approval" else ""
    return f"{shown}{more} of {_brief_asset(effect)}"


def _brief_asset(effect: Effect) -> str:
    token = token_of(effect.asset)
    return f"token {brief(token)}" if token else "something not named"
