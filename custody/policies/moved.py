"""The sums that an order moves, per asset, as limits and thresholds count them."""

from collections.abc import Mapping

from custody.chains.evm.family import EVM_NATIVE, coin_of
from custody.chains.solana.family import SOLANA_NATIVE
from custody.chains.types import UNLIMITED, Effect, Subject
from custody.policies.assets import BITCOIN
from custody.policies.parts import SOLANA_RENT


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


def names_of(effect: Effect, chain_id: int | None) -> tuple[str, ...]:
    """Every asset that an effect counts towards: its own, and the part of it that a rule may limit alone."""
    asset = effect.asset
    if asset is None:
        return ()
    if asset == EVM_NATIVE and chain_id is not None:
        return asset, coin_of(chain_id)
    return (asset, SOLANA_RENT) if asset == SOLANA_NATIVE and deposit(effect) else (asset,)


def moved(subject: Subject) -> dict[str, int]:
    """Sum the amounts of an order per asset: transfers, finite approvals and deposits, but no fee of a network.

    What is limitless is left out, because no sum would say anything; such an effect is never covered. Bitcoin
    counts its fee, since a PSBT's outflow is only known with it.
    """
    totals: dict[str, int] = {}
    for effect in subject.effects:
        asset = effect.asset
        burnt = effect.kind == "fee" and asset != BITCOIN and not deposit(effect)
        if burnt or limitless(effect):
            continue
        if effect.amount < 0:
            # A negative amount would give budget back; only a broken decoder makes one.
            raise ValueError("an effect has a negative amount")
        if effect.amount:
            for name in names_of(effect, subject.chain_id):
                totals[name] = totals.get(name, 0) + effect.amount
    return totals


def charged(totals: dict[str, int], floor: Mapping[str, int]) -> dict[str, int]:
    """Count the spend once signed: per asset the larger of this order and the slot it takes over."""
    if not floor:
        return totals
    charges = {asset: amount for asset, amount in floor.items() if amount}
    for asset, amount in totals.items():
        charges[asset] = max(amount, charges.get(asset, 0))
    return charges
