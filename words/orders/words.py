"""The effects of an order, in words a person can decide by. Pure.

Line from the effects, which the service decoded from the very bytes it will sign, never from what the agent claims.
What is dangerous comes first. An address is never shortened here and stands on a line of its own, so that no line
break can fall into it; what others have named themselves stands in quotation marks.
"""

from typing import Final

from words.orders.document import unread
from words.orders.message_in_words import is_message, message_in_words, message_title, site_of
from words.orders.one_line import label
from words.orders.order import Known, Order
from words.orders.parties import brief, parties, same, token_of, was_paid
from words.orders.phrases import phrase, rank
from words.orders.psbt_in_words import network_of, psbt_in_words
from words.orders.solana_message import instructions
from words.orders.validity import validity
from words.texts.amounts import coins, quote, whole
from words.texts.chains import CHAINS, chain_name, chain_of, native_coin
from words.texts.lines import Line, Tone
from words.texts.moments import clock, moment

__all__ = ["Line", "Tone", "essentials", "summary"]

_MEMO: Final = 200


def essentials(order: Order, known: Known) -> list[Line]:
    """Describe what must be read before deciding: what, how much, to whom, on which chain; dangers first.

    Who asks comes after it: an agent's name is its own words, and may be long.
    """
    said = [Line(known.frozen, "bad")] if known.frozen else []
    if is_message(order):
        return [*said, *message_in_words(order, known), *_chain(order, known), Line(_asks(order)), *_expiry(order)]
    said += [*_document(order, known), *validity(order, known)]
    effects = sorted(order.effects, key=lambda effect: rank(effect, order, known))
    several = sum(effect.kind != "fee" for effect in effects)
    if several > 1:
        said.append(Line(f"It does {several} things:"))
    for effect in effects:
        said += phrase(effect, order, known)
    said += [*_besides(order, known), *_chain(order, known), *_declaration(order, known)]
    return [*said, Line(_asks(order)), *_expiry(order)]


def summary(order: Order, known: Known) -> str:
    """The same in one short line, for a list: the gravest effect, and how many more there are."""
    if is_message(order):
        return message_title(order)
    effects = sorted(order.effects, key=lambda effect: rank(effect, order, known))
    if not effects:
        what = "Signs a document" if order.kind == "typed_data" else "Effect unknown"
        return f"{what} for {brief(order.to_address)}" if order.to_address else what
    more = sum(effect.kind != "fee" for effect in effects[1:])
    return label(effects[0], order, known) + (f", and {more} more" if more else "")


def _asks(order: Order) -> str:
    name = f"{quote(order.agent_name)} ({order.agent_id})" if order.agent_name else order.agent_id
    return f"Agent {name} asks for this."


def _document(order: Order, known: Known) -> list[Line]:
    """Describe a signed document or message; say so if nothing is known of its effects."""
    if order.kind != "typed_data":
        return [] if order.effects else [Line("The effects of this order are unknown.", "bad")]
    label = _primary_type(known.data) or next((effect.label for effect in order.effects if effect.label), None)
    named = f", {quote(label)}" if label else ""
    said = [Line(f"Signs a document{named}: anyone who holds the signature may use it, now or later.", "warn")]
    if not order.effects:
        said.append(Line("No known effect of it moves value.", "warn"))
    if lacking := unread(known.data):
        said.append(lacking)
    return said


def _primary_type(data: object) -> str | None:
    found = data.get("primaryType") if isinstance(data, dict) else None
    return found if isinstance(found, str) else None


def _besides(order: Order, known: Known) -> list[Line]:
    """Describe bytes that are no effect: a message's memos, which anybody may read for ever, and a PSBT's coins."""
    if order.kind == "bitcoin":
        return psbt_in_words(order, known)
    found = (instructions(known.data) if order.kind == "solana" else None) or []
    said = [Line(f"Also: a memo: {quote(one.memo, _MEMO)}") for one in found if one.memo is not None]
    unknown = sum(not one.known for one in found)
    if unknown:
        said.append(Line(f"Also: unknown instructions: {unknown}. See the details.", "warn"))
    return said


def _chain(order: Order, known: Known) -> list[Line]:
    if order.kind == "bitcoin":
        named = order.caip2 or (known.transaction.caip2 if known.transaction else None)
        if named and network_of(order, known) is None:
            return [Line("On a network of Bitcoin that is not known here.", "warn")]
        return [Line(f"On {chain_of(order.kind, None, named)}.")]
    if is_message(order):
        named = chain_of(order.kind, order.chain_id, order.caip2) if order.chain_id is not None else order.caip2
        if named and site_of(order) is None:
            return [Line(f"The agent says that it is for {named}; such a signature is good on every chain.")]
        return [Line(f"It is for {named}, by its own word." if named else "It is for no one chain.")]
    if order.chain_id is None:
        if order.kind == "evm":
            # Only one that is tried out, with no chain typed in.
            return [Line("On the service's own chain.")]
        where = "The document names no chain" if order.kind == "typed_data" else "No chain is named"
        return [Line(f"{where}: the permission may be valid on any chain.", "warn")]
    if order.kind == "typed_data":
        # The agent wrote the number, and a contract may not heed it. Those of Solana are none for a document.
        chain = CHAINS.get(order.chain_id)
        name = chain_name(order.chain_id) if chain and chain.coin.smallest == "wei" else f"chain {order.chain_id}"
        return [Line(f"The document says that it is for {name}.")]
    if order.chain_id not in CHAINS:
        return [Line(f"On {chain_name(order.chain_id)}, which is not known here.", "warn")]
    return [Line(f"On {chain_name(order.chain_id)}.")]


def _declaration(order: Order, known: Known) -> list[Line]:
    """State the destination and amount of the order, as far as the effects have not said them."""
    said: list[Line] = []
    places = [effect.to for effect in order.effects] + [token_of(effect.asset) for effect in order.effects]
    if order.to_address and not any(same(order.to_address, place) for place in places):
        what = "The document is for the contract" if order.kind == "typed_data" else "The order goes to"
        said += [Line(what), *parties(order.to_address, order, known)]
    if order.value is None:
        return said
    natives = [effect for effect in order.effects if effect.kind == "transfer" and native_coin(effect.asset, None)]
    amounts = [whole(effect.amount) for effect in natives]
    if whole(order.value) != sum(amount or 0 for amount in amounts):
        coin = native_coin("solana:native" if order.kind == "solana" else "evm:native", order.chain_id)
        shown = coins(order.value, coin) if coin and order.kind != "bitcoin" else quote(order.value)
        said.append(Line(f"It claims to send {shown}, which is not what it does.", "bad"))
    return said


def _expiry(order: Order) -> list[Line]:
    expires, released = moment(order.expires_at), moment(order.release_at)
    said = [Line(f"It is signed by itself {clock(released)} unless somebody denies it.", "warn")] if released else []
    return [*said, Line(f"This request expires {clock(expires)}.")] if expires else said


def never_paid(order: Order, known: Known) -> bool:
    """Tell whether it is known that nothing of what this order pays or empowers was paid or empowered before."""
    return any(was_paid(effect, known) is False for effect in order.effects)
