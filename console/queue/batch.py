"""Items that may be decided at once, and their totals. Pure."""

from collections.abc import Sequence
from typing import Final

from console.queue.queue import Item
from words.orders.parties import gift, token_of
from words.orders.phrases import is_unlimited
from words.shapes import Effect
from words.texts.amounts import coins, tokens, whole
from words.texts.chains import native_coin

_ONE_BY_ONE: Final = "Decide them one by one."
# The kinds of effect that are summed.
_SAID: Final = {"transfer": "In all {}", "approval": "{} in total for others to spend", "fee": "Total fees at most {}"}


def refusal(items: Sequence[Item]) -> str:
    """Why these cannot be approved at once, in a sentence; empty if they can.

    At once goes only what is the same thing several times: on one chain, the same to the same, only the amounts
    differ. Reading one then means having read all of them.
    """
    effects = [effect for item in items for effect in item.approval.effects]
    if any(effect.kind not in ("transfer", "fee") or effect.nft or is_unlimited(effect) for effect in effects):
        return f"Only payments can be approved together, and one of these is not a payment. {_ONE_BY_ONE}"
    if any(len(_recipients(item)) > 1 for item in items):
        return f"One of these pays several destinations at once. {_ONE_BY_ONE}"
    if any(not item.approval.effects for item in items):
        return f"The effects of some of these are unknown. {_ONE_BY_ONE}"
    if len({item.approval.chain_id for item in items}) > 1:
        return f"These are on different chains. {_ONE_BY_ONE}"
    if len({_destination(item) for item in items}) > 1:
        return f"These differ in destination, amount or asset. {_ONE_BY_ONE}"
    return ""


def left_out(number: int) -> str:
    """Explain that those among several that need votes are left out."""
    if number == 1:
        return "One of these needs votes and is left out: vote on it by itself, with a."
    return f"{number:,} of these need votes and are left out: vote on each by itself, with a."


def totals(items: Sequence[Item]) -> list[str]:
    """Sum what leaves in all, for each asset of each chain; allowances and fees apart, for they are no payments."""
    sums: dict[tuple[str, str | None, int | None], int] = {}
    boundless = unread = 0
    for item in items:
        for effect in item.approval.effects:
            boundless += is_unlimited(effect)
            if effect.kind in _SAID and not is_unlimited(effect):
                place, amount = (effect.kind, effect.asset, item.approval.chain_id), whole(effect.amount)
                sums[place] = sums.get(place, 0) + (amount or 0)
                unread += amount is None
    order = sorted(sums.items(), key=lambda one: one[0][0] == "fee")
    lines = [_total(kind, asset, chain, amount) for (kind, asset, chain), amount in order]
    lines += [f"UNLIMITED: {boundless:,} of these have no maximum amount."] if boundless else []
    return lines + ([f"Not in these sums: {unread:,} whose amount is unknown."] if unread else [])


def _total(kind: str, asset: str | None, chain: int | None, amount: int) -> str:
    coin = native_coin(asset, chain)
    what = coins(str(amount), coin) if coin else f"{tokens(str(amount), None)} token {token_of(asset) or asset}"
    return _SAID[kind].format(what)


def _destination(item: Item) -> tuple[object, ...]:
    one = item.approval
    moved = {(effect.kind, effect.asset, _fold_case(effect.to)) for effect in one.effects if not _own_fee(effect)}
    return (one.kind, _fold_case(one.to_address), frozenset(moved))


def _recipients(item: Item) -> set[str | None]:
    return {_fold_case(effect.to) for effect in item.approval.effects if not _own_fee(effect)}


def _own_fee(effect: Effect) -> bool:
    return effect.kind == "fee" and not gift(effect)


def _fold_case(address: str | None) -> str | None:
    return address.lower() if address and address[:2].lower() == "0x" else address
