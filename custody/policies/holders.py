"""The holder of what an order pays into another's account, as far as a list of addresses can tell."""

from collections.abc import Set as AbstractSet

import msgspec

from custody.chains.types import Effect, Subject
from custody.policies.types import MOST_OWNERS_TRIED, Facts


def with_share(facts: Facts, rules: int) -> Facts:
    """The facts for one of so many rules: what is tried for an order is bounded, however many lists there are."""
    return msgspec.structs.replace(facts, owners_tried=MOST_OWNERS_TRIED // rules) if rules > 1 else facts


def with_holders(subject: Subject, listed: AbstractSet[str], most: int) -> Subject:
    """The order with those of a list in `to` who own the accounts that it pays into, or the accounts themselves.

    Where that takes more than `most` tries an account stays unowned; a list that judges it then refuses.
    """
    if not any(effect.account for effect in subject.effects):
        return subject
    unowned = {effect.account for effect in subject.effects if effect.unowned}
    tried = listed if len(unowned) * len(listed) <= most else frozenset[str]()
    effects = tuple(_with_holder(effect, listed, tried) for effect in subject.effects)
    return msgspec.structs.replace(subject, effects=effects)


def _with_holder(effect: Effect, listed: AbstractSet[str], tried: AbstractSet[str]) -> Effect:
    account = effect.account
    if account is None or effect.to in listed:
        return effect
    holder = account.address if account.address in listed else None
    if holder is None and effect.unowned:
        holder = account.owner_among(tried)
    return effect if holder is None else msgspec.structs.replace(effect, to=holder, unowned=False)
