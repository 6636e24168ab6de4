"""The other side of an effect: addresses in full, names for them here, and earlier payments. Pure."""

from collections.abc import Iterator
from typing import Final

from words.orders.addresses import checksum_address
from words.orders.order import Known, Order
from words.shapes import Effect, Transaction
from words.texts.amounts import whole
from words.texts.lines import Line
from words.texts.plain import clip, short

# An order that got so far has moved something, or was able to.
SIGNED: Final = frozenset({"signed", "broadcast", "confirmed"})
_LONGEST_ADDRESS: Final = 128
IN: Final = "  "
_ALIKE: Final = {"transfer": ("transfer", "fee"), "fee": ("transfer", "fee"), "approval": ("approval",)}


def parties(address: str | None, order: Order, known: Known, *, never: str = "") -> list[Line]:
    """An address in full, who that is, and what was never done with it before, if that is to be said."""
    if not address:
        return [Line(f"{IN}an unnamed address", "bad")]
    said = [Line(IN + spelling(address), address=True)]
    if any(same(address, effect.from_) for effect in order.effects):
        said.append(Line(f"{IN}this is the agent's own wallet"))
    elif name := known.names.get(_key(address)):
        said.append(Line(IN + name))
    elif known.names_known:
        whose = " of the tenant" if _key(address) in known.self_listed else ""
        said.append(Line(f"{IN}unknown: not an agent here, not on an approved list{whose}", "warn"))
    if _key(address) in known.self_listed:
        said.append(Line(f"{IN}on a list that the tenant did not set: unverified", "warn"))
    if never:
        said.append(Line(f"{IN}{never} before{as_far(known)}", "warn"))
    return said


def _key(address: str) -> str:
    return address.lower() if address[:2].lower() == "0x" else address


def as_far(known: Known) -> str:
    """Limit a statement that something never happened to the orders that were looked through."""
    return "" if known.past_complete else f", judging by the last {known.looked_through} {known.searched}"


def was_paid(effect: Effect, known: Known) -> bool | None:
    """Tell whether the agent has done the like with the same party before; None where that is not known.

    Having sent it nothing, taken something back, or let it spend where it is paid now, does not count: an attacker who
    wants to look familiar would begin with such orders.
    """
    party = effect.spender or effect.to
    if known.past is None or party is None or (effect.kind == "fee" and not gift(effect)):
        return None
    return any(True for _ in alike(effect, known))


def alike(effect: Effect, known: Known) -> Iterator[tuple[Transaction, Effect]]:
    """Find earlier effects of the same kind with the same party."""
    kinds = _ALIKE.get(effect.kind)
    for earlier in known.past or []:
        for one in earlier.effects if earlier.status in SIGNED else ():
            party = effect.spender or effect.to
            if not (same(party, one.to) or same(party, one.spender)):
                continue
            if kinds is None or (one.kind in kinds and (one.unlimited or (whole(one.amount) or 0) > 0)):
                yield earlier, one


def meets(earlier: Transaction, party: str) -> bool:
    """Tell whether an earlier order paid, empowered or called a party."""
    return any(same(party, effect.to) or same(party, effect.spender) for effect in earlier.effects)


def same(one: str | None, other: str | None) -> bool:
    """Compare two spellings of an address: the case of an EVM one is only its checksum."""
    if one is None or other is None:
        return False
    return one == other or (one[:2].lower() == "0x" and one.lower() == other.lower())


def token_of(asset: str | None) -> str | None:
    """The contract or mint of a token's asset; None for a chain's own coin."""
    kind, _, rest = (asset or "").partition(":")
    token = rest.partition(":")[2] if kind == "evm" else rest if kind == "solana" else ""
    return token if token and asset != "solana:native" else None


def brief(address: str | None) -> str:
    """An address for a list."""
    return short(checksum_address(address)) if address else "an unnamed address"


def spelling(address: str) -> str:
    """An address in full, with its checksum: other tools show it so, and one compares by eye."""
    return clip(checksum_address(address), _LONGEST_ADDRESS)


def gift(effect: Effect) -> bool:
    """Tell whether a fee goes to somebody else than its payer."""
    return effect.to is not None and not same(effect.to, effect.from_)
