"""The sums that an order moves, per asset, as limits and thresholds count them."""

from collections.abc import Mapping
from typing import Final

from custody.chains import families
from custody.chains.types import UNLIMITED, Effect, Subject
from custody.chains.units import USD

# Of an order of whose assets none has a price.
NO_WORTH: Final[Mapping[str, int]] = {}


def limitless(effect: Effect) -> bool:
    """Say whether no amount can judge this effect: an NFT, or an approval of 2^128 or more."""
    # A huge transfer is no exception: it is a sum like any other and must fail its limit.
    return effect.nft or (effect.kind == "approval" and (effect.unlimited or effect.amount >= UNLIMITED))


def gift(effect: Effect) -> bool:
    """Say whether this is a fee paid for somebody else, as the rent of an account that its owner may cash in."""
    return effect.kind == "fee" and effect.to is not None and effect.to != effect.from_


def deposit(effect: Effect) -> bool:
    """Say whether this is a fee that lies in an account from then on: rent, our own account's too.

    That closing an account brings it back is in no byte of the order, and gives no limit back.
    """
    return effect.kind == "fee" and effect.to is not None


def counts(effect: Effect) -> bool:
    """Say whether an effect counts as moved, as every one does but a network's fee; of some families that does too."""
    family = families.of_asset(effect.asset)
    return effect.kind != "fee" or deposit(effect) or (family is not None and family.counts_fee)


def names_of(effect: Effect, chain_id: int | None) -> tuple[str, ...]:
    """Every asset that an effect counts towards: its own, and the part of it that a rule may limit alone."""
    asset = effect.asset
    if asset is None:
        return ()
    family = families.of_asset(asset)
    part = family.part(asset, chain_id, deposit=deposit(effect)) if family is not None else None
    return (asset,) if part is None else (asset, part)


def priced_name(effect: Effect, chain_id: int | None) -> str | None:
    """The name under which what an effect moves has a price: a coin by its chain, rent as the coin that it is."""
    family = families.of_asset(effect.asset)
    coin = None if family is None or effect.asset is None else family.part(effect.asset, chain_id, deposit=False)
    return coin or effect.asset


def lacks_price(effect: Effect, subject: Subject, worth: Mapping[str, int]) -> bool:
    """Say whether an effect moves something of which nobody can say what it is worth."""
    if not counts(effect) or effect.revokes or effect.kind == "unread" or not effect.amount:
        return False
    return limitless(effect) or priced_name(effect, subject.chain_id) not in worth


def priced_moves(subject: Subject) -> dict[str, int]:
    """Sum the amounts of an order by the name under which each has a price."""
    totals: dict[str, int] = {}
    for effect in subject.effects:
        name = priced_name(effect, subject.chain_id)
        if name is not None and counts(effect) and not limitless(effect):
            totals[name] = totals.get(name, 0) + effect.amount
    return totals


def moves(subject: Subject, worth: Mapping[str, int] = NO_WORTH) -> dict[str, int]:
    """Sum the amounts of an order per asset: transfers, finite approvals and deposits, but no fee of a network.

    What is limitless is left out, because no sum would say anything; such an effect is never covered. Of some families
    the fee counts too, as Bitcoin's. `worth` is what each of them comes to in millionths of a dollar.
    """
    totals: dict[str, int] = {}
    for effect in subject.effects:
        if not counts(effect) or limitless(effect):
            continue
        if effect.amount < 0:
            # A negative amount would give budget back; only a broken decoder makes one.
            raise ValueError("an effect has a negative amount")
        if effect.amount:
            for name in names_of(effect, subject.chain_id):
                totals[name] = totals.get(name, 0) + effect.amount
    dollars = sum(worth.values())
    return totals | {USD: dollars} if dollars else totals


def charge(totals: dict[str, int], floor: Mapping[str, int]) -> dict[str, int]:
    """Count the spend once signed: per asset the larger of this order and the slot it takes over."""
    if not floor:
        return totals
    charges = {asset: amount for asset, amount in floor.items() if amount}
    for asset, amount in totals.items():
        charges[asset] = max(amount, charges.get(asset, 0))
    return charges
