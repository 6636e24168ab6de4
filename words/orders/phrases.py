"""One effect of an order in words: a sentence, and below it the addresses it speaks of, each on its own line. Pure."""

import re
from typing import Final

from words.orders.order import Known, Order
from words.orders.parties import IN, alike, gift, parties, same, spelling, token_of, was_paid
from words.shapes import Effect
from words.texts.amounts import UNLIMITED, amount_of, coins, quote, self_called, tokens, told_decimals, whole
from words.texts.chains import chain_name, native_coin
from words.texts.lines import Line, Tone
from words.texts.plain import clip

_NFT: Final = re.compile(r"token ([0-9]{1,78})\Z")
# The calls that an NFT contract understands as well, with a number in place of the amount: `approve`, `transferFrom`.
_APPROVING: Final = ("0x095ea7b3",)
_MOVING: Final = ("0x23b872dd",)
# Calls that change an allowance by an amount, where the others set it: `increaseAllowance`, `decreaseAllowance`.
_RAISING: Final = ("0x39509351",)
_LOWERING: Final = ("0xa457c2d7",)
# Two that hold others.
_HOLDING: Final = ("0xac9650d8", "0x5ae401dc")
_MORE: Final = {True: " more than it may already", None: ", or that much more than it may already,", False: ""}
_EVERY_NFT: Final = "every token"
_RENT: Final = ("rent", "rent at most")
_FEES: Final = {None: "Network fee", "at most": "Network fee", "network fee": "Network fee"} | dict.fromkeys(
    _RENT, "Rent"
)
# On Solana, with an account of the wallet's own.
_OWN: Final = {
    "revoke on": "Ends what a delegate may spend from the agent's token account",
    "close": "Closes the agent's token account; its lamports, wrapped SOL included, come to its wallet",
}

# What is unread of a call that is read for the rest, by the place that the service names.
_BESIDE: Final = {
    "behind the arguments": "behind the arguments of a call cannot be decoded",
    "in the padding of the arguments": "The arguments of a call hold more than they should, which cannot be decoded",
    "coins beside a call that takes none": "Coins go along with a call that takes none",
    "the witness beside a transfer": "Words beside a transfer, its witness, cannot be decoded",
    "whom an order pays besides": "Parts of what the agent gives go to somebody else, and nobody can tell how much",
    "the refund of gas": "Coins or tokens are refunded for gas, and nobody can tell how many",
}
# What is unread of a call of which nothing is read, in the same words.
_WHOLE: Final = "all of the call"

_OTHERS_PAY: Final = (
    "Others pay in this transaction too, and nobody can tell which payments are whose: all of them count as this "
    "agent's. Only its own inputs are signed; the others complete it, or never do."
)


def rank(effect: Effect, order: Order, known: Known) -> int:
    """Its place in the order of danger, the gravest first."""
    if effect.kind == "approval":
        return 0 if is_unlimited(effect) else 5 if takes_back(effect, order, known) else 2
    if effect.kind == "fee":
        return 3 if gift(effect) else 6
    if effect.kind == "transfer":
        return 3 if is_unlimited(effect) or was_paid(effect, known) is False else 4
    return 1


def phrase(effect: Effect, order: Order, known: Known) -> list[Line]:
    """The sentence and its lines."""
    if (done := with_own(effect, order)) is not None:
        return [Line(f"{_OWN[done[0]]}:"), Line(IN + spelling(done[1]), address=True)]
    match effect.kind:
        case "transfer":
            return _transfer(effect, order, known)
        case "approval":
            return _approval(effect, order, known)
        case "fee":
            return _fee(effect, order, known)
        case "unread" | "opaque":
            return _unread(effect, order, known)
        case "call":
            return [Line("Calls a contract:", "warn"), *parties(effect.to, order, known)]
        case kind:
            much = "UNLIMITED: " if is_unlimited(effect) else ""
            said = Line(f"{much}Does something that is not known here ({quote(kind, 24)}):", "bad")
            return [said, *_amount_lines(effect, order, known), *parties(effect.to or effect.spender, order, known)]


def beside(effect: Effect) -> str | None:
    """Name the unread part of a call that was read for the rest; None for anything else."""
    said = _BESIDE.get(effect.label or "")
    return said if said is None or effect.size is None else f"{effect.size:,} bytes {said}"


def document(effect: Effect) -> str | None:
    """Return the title that an unread document gives itself; None for a call."""
    return None if effect.label == _WHOLE else effect.label


def with_own(effect: Effect, order: Order) -> tuple[str, str] | None:
    """Describe what is done with a token account of the wallet's own on Solana, and name the account."""
    done, _, account = (effect.label or "").rpartition(" ")
    return (done, account) if order.kind == "solana" and done in _OWN else None


def is_unlimited(effect: Effect) -> bool:
    """Tell whether no amount bounds it."""
    return effect.unlimited or (whole(effect.amount) or 0) >= UNLIMITED


def takes_back(effect: Effect, order: Order, known: Known) -> bool:
    """Tell if an approval only lowers: with ordinary tokens 0 does, yet an NFT contract gives its number 0 away."""
    ends = whole(effect.amount) == 0 and not effect.unlimited and raises(order, known) is False
    return ends and not _may_be_nft(effect, order, known, _APPROVING)


def raises(order: Order, known: Known) -> bool | None:
    """Tell whether an approval adds to what may be spent already; None where that is not known."""
    return _is_call(_RAISING, order, known)


def lowers(order: Order, known: Known) -> bool | None:
    """Tell whether an approval of 0 takes off an amount that is not said, perhaps a small one; None if not known."""
    return _is_call(_LOWERING, order, known)


def writes_data(effect: Effect, order: Order) -> bool:
    """Tell whether it is an output of a Bitcoin transaction that pays nobody."""
    return order.kind == "bitcoin" and effect.kind == "transfer" and effect.to is None and whole(effect.amount) == 0


def nft_number(effect: Effect) -> str | None:
    """The number of the NFT that is sent; None for what is counted."""
    found = _NFT.match(effect.label) if effect.kind == "transfer" and effect.label else None
    return found[1] if found else None


def _transfer(effect: Effect, order: Order, known: Known) -> list[Line]:
    tone: Tone | None = "bad" if is_unlimited(effect) else None
    if writes_data(effect, order):
        return [Line("Writes data into the chain, where anyone can read it.")]
    to = parties(effect.to, order, known, never=_never(effect, known, "never paid"))
    to += _most_before(effect, order, known, "paid before")
    coin = native_coin(effect.asset, order.chain_id)
    boundless = "UNLIMITED: " if tone else ""
    if coin and order.kind == "solana" and effect.label == "wrap":
        return [Line(f"Wraps {coins(effect.amount, coin)}, which stay the agent's own as a token."), *to]
    if coin:
        return [Line(f"Sends {boundless}{coins(effect.amount, coin)} to", tone), *to]
    of = _token(effect, order, known)
    if known.data and not nft_number(effect) and _may_be_nft(effect, order, known, _MOVING):
        of.append(_were_it_an_nft(effect, "send"))
    return [Line(f"Sends {boundless}{_how_much(effect, known)} of", tone), *of, Line("to"), *to]


def _approval(effect: Effect, order: Order, known: Known) -> list[Line]:
    of = [Line("of"), *_token(effect, order, known)]
    if takes_back(effect, order, known):
        return [_taken_back(order, known), *parties(effect.spender, order, known), *of]
    who = parties(effect.spender, order, known, never=_never(effect, known, "never allowed to spend"))
    if is_unlimited(effect):
        much = "move EVERY NFT, UNLIMITED," if effect.label == _EVERY_NFT else "spend UNLIMITED amounts"
        return [Line(f"Lets this address {much} on the agent's behalf, now and later:", "bad"), *who, *of]
    who += _most_before(effect, order, known, "allowed to spend before")
    if _may_be_nft(effect, order, known, _APPROVING):
        of.append(_were_it_an_nft(effect, "give away"))
    if whole(effect.amount) == 0:
        return [_set_to_nothing(order, known), *who, *of]
    much = _how_much(effect, known) + _MORE[raises(order, known)]
    return [Line(f"Lets this address spend {much} on the agent's behalf, now and later:", "warn"), *who, *of]


def _set_to_nothing(order: Order, known: Known) -> Line:
    spends = "what this address may spend on the agent's behalf"
    added = raises(order, known)
    if added:
        return Line(f"Adds nothing to {spends}:", "warn")
    nothing = "" if added is False else ", or adds nothing"
    if lowers(order, known) is False:
        return Line(f"Sets {spends} to 0{nothing}:", "warn")
    return Line(f"Lowers {spends}, or sets it to 0{nothing}:", "warn")


def _taken_back(order: Order, known: Known) -> Line:
    lower = lowers(order, known)
    if lower:
        return Line("Lowers what this address may spend on the agent's behalf, perhaps by very little:")
    if lower is None:
        return Line("Lowers or takes back what this address may spend on the agent's behalf:")
    return Line("Takes back what this address may spend on the agent's behalf:", "good")


def _fee(effect: Effect, order: Order, known: Known) -> list[Line]:
    most = "at most " if effect.label and effect.label.endswith("at most") else ""
    coin = native_coin(effect.asset, order.chain_id)
    amount = coins(effect.amount, coin) if coin else _how_much(effect, known)
    name = _FEES.get(effect.label, "Fee")
    if not gift(effect):
        return [Line(f"{name} {most}{amount}.", "quiet")]
    what = "for another address, which may withdraw it" if effect.label in _RENT else "as a gift to another address"
    return [Line(f"{name} {most}{amount} {what}:", "warn"), *parties(effect.to, order, known)]


def _unread(effect: Effect, order: Order, known: Known) -> list[Line]:
    if order.kind == "bitcoin":
        return [Line(_OTHERS_PAY, "warn")]
    if (what := beside(effect)) is not None:
        heeds = Line(f"{what}: the contract may take them for anything.", "bad")
        return [heeds, *parties(effect.to, order, known)]
    said = [Line("Cannot be decoded: it may move anything the agent has.", "bad")]
    if effect.unknown:
        said = [Line("Typed data of an unknown kind: it may move or hand over anything.", "bad")]
    label = document(effect)
    if label:
        said.append(Line(f"{IN}a document that calls itself {quote(label)}"))
    where = "It is for the contract" if label or order.kind == "typed_data" else "It calls"
    if effect.to is None:
        return [*said, Line(f"{IN}it names no contract", "warn")]
    if order.kind == "typed_data" and not same(effect.to, order.to_address):
        where = "It names"
    return [*said, Line(where), *parties(effect.to, order, known, never=_never(effect, known, "never called"))]


def _never(effect: Effect, known: Known, what: str) -> str:
    return what if was_paid(effect, known) is False else ""


def _were_it_an_nft(effect: Effect, does: str) -> Line:
    return Line(f"{IN}were it an NFT contract, this would {does} its number {clip(effect.amount, 78)}", "warn")


def _may_be_nft(effect: Effect, order: Order, known: Known, calls: tuple[str, ...]) -> bool:
    """Tell if the call could be about one NFT: it reads the same, and an NFT contract tells no decimals or 0.

    Those from before ERC-721 was final do tell 0; a token of which only whole pieces exist cannot be told from them.
    """
    could = _is_call(calls, order, known) is not False
    return could and told_decimals(known.tokens.get(effect.asset or "")) in (None, 0)


def _is_call(calls: tuple[str, ...], order: Order, known: Known) -> bool | None:
    """Tell whether the order is one of these calls; None where its data is not known, or may hold one."""
    if order.kind != "evm":
        return False
    if not isinstance(known.data, str):
        return None
    data = known.data.lower()
    if data.startswith(_HOLDING):
        return None if any(call[2:] in data for call in calls) else False
    return data.startswith(calls)


def _most_before(effect: Effect, order: Order, known: Known, what: str) -> list[Line]:
    """The most that the same party had of the same before, so that a first small payment speaks for no large one."""
    if not effect.asset or nft_number(effect) or not was_paid(effect, known):
        return []
    same_asset = [
        one for earlier, one in alike(effect, known) if one.asset == effect.asset and earlier.chain_id == order.chain_id
    ]
    if not same_asset:
        return [Line(f"{IN}{what}, but never in this coin or token", "warn")]
    if any(is_unlimited(one) for one in same_asset):
        return [Line(f"{IN}{what}, without limit")]
    most = str(max(whole(one.amount) or 0 for one in same_asset))
    return [
        Line(f"{IN}{what}, at most {amount_of(most, effect.asset, order.chain_id, known.tokens.get(effect.asset))}")
    ]


def _how_much(effect: Effect, known: Known) -> str:
    """An amount of what is no chain's own coin."""
    if number := nft_number(effect):
        count = whole(effect.amount)
        return f"NFT number {number} ({'amount unknown' if count is None else f'{count:,} of it'})"
    return tokens(effect.amount, known.tokens.get(effect.asset or ""))


def _token(effect: Effect, order: Order, known: Known) -> list[Line]:
    token = token_of(effect.asset)
    if token is None:
        return [Line(f"{IN}an unnamed asset", "bad")]
    said = [Line(f"{IN}token {spelling(token)}", address=True)]
    if effect.asset and effect.asset.startswith("evm:"):
        chain = effect.asset.split(":")[1]
        if chain != str(order.chain_id):
            said.append(Line(f"{IN}on another chain: {chain_name(whole(chain))}", "bad"))
    if own := self_called(known.tokens.get(effect.asset or "")):
        said.append(Line(IN + own))
    return said


def _amount_lines(effect: Effect, order: Order, known: Known) -> list[Line]:
    coin = native_coin(effect.asset, order.chain_id)
    return [Line(IN + (coins(effect.amount, coin) if coin else _how_much(effect, known)))]
