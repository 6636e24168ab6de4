"""The approval quorums of a set of rules: who may vote by which key, and the set once the operator broke them."""

from collections.abc import Sequence, Set
from typing import Final

import msgspec

from custody.policies.kinds.approval_quorum import ApprovalQuorum, ApprovalQuorumRule
from custody.policies.rules import ParsedRule

TYPE: Final = str(ApprovalQuorumRule.__struct_config__.tag)


def enabled_quorums(rules: Sequence[ParsedRule]) -> tuple[ApprovalQuorum, ...]:
    """The terms of the enabled ones."""
    return tuple(rule.terms for rule in rules if rule.enabled and isinstance(rule.terms, ApprovalQuorum))


def standing(rules: Sequence[ParsedRule], votes: Set[tuple[str, str]]) -> tuple[int, int]:
    """Count the votes and those needed, by the enabled quorum that lacks the most."""
    quorums = enabled_quorums(rules)
    counts = [(len(quorum.voters(votes)), quorum.threshold) for quorum in quorums]
    return max(counts, key=lambda count: count[1] - count[0], default=(0, 0))


def is_pinned(quorums: Sequence[ApprovalQuorum], user: str, fingerprint: str) -> bool:
    """Say whether some quorum counts votes of this person by this key."""
    return any(fingerprint in quorum.approvers.get(user, frozenset()) for quorum in quorums)


def without_quorums(rules: Sequence[ParsedRule]) -> tuple[ParsedRule, ...]:
    """The set with its approval quorums disabled."""
    return tuple(msgspec.structs.replace(rule, enabled=rule.enabled and rule.type != TYPE) for rule in rules)


def new_quorums(old: Sequence[ParsedRule], new: Sequence[ParsedRule]) -> list[ParsedRule]:
    """The quorums of a new set that the old one does not have just so."""
    known = {(rule.config, rule.enabled) for rule in old if rule.type == TYPE}
    return [rule for rule in new if rule.type == TYPE and (rule.config, rule.enabled) not in known]
