"""The source of a rule: the tenant, or the agent's own token or an app client, which may tighten and so add rules.

An approver who reads "on the approved list" must not be shown a list that nobody of the tenant wrote. So a rule stays
the tenant's only where every entry in it was the tenant's: unchanged, or an approved list that only lost addresses.
Stored, the type of another's rule ends in `@agent`; the seal of the set covers the type.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from custody.policies.rules import ParsedRule

_BY_AGENT: Final = "@agent"


def stored_type(rule: ParsedRule) -> str:
    """The type as the database holds it."""
    return rule.type + _BY_AGENT if rule.by_agent else rule.type


def split_type(stored: str) -> tuple[str, bool]:
    """The type by itself, and whether the agent's own token set the rule."""
    return stored.removesuffix(_BY_AGENT), stored.endswith(_BY_AGENT)


def both_types(names: Sequence[str]) -> list[str]:
    """These types as the database may hold them."""
    return [*names, *(name + _BY_AGENT for name in names)]


def set_by_agent(old: Sequence[ParsedRule], new: Sequence[ParsedRule]) -> tuple[ParsedRule, ...]:
    """The rules that an agent or an app client sets, each marked so unless the tenant's rules hold all of it."""
    theirs = [rule for rule in old if not rule.by_agent]
    return tuple(msgspec.structs.replace(rule, by_agent=not any(_holds(one, rule) for one in theirs)) for rule in new)


def _holds(old: ParsedRule, new: ParsedRule) -> bool:
    if not new.tightens(old) or (new.enabled and not old.enabled):
        return False
    if old.config == new.config:
        return True
    return old.terms.holds(new.terms)
