"""The votes on an item as people see them. What counts when it is signed, the signer says: it reads the evidence."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from custody.approvals.types import Votes
from custody.kit import clock
from custody.policies.kinds.approval_quorum import ApprovalQuorum, ApprovalQuorumConfig
from custody.policies.types import decode_results
from custody.protocol.signer.outcomes import VoteGiven

_rules = msgspec.json.Decoder(list[tuple[str, str]]).decode
_given = msgspec.json.Decoder(list[tuple[str, str, datetime]]).decode
_config = msgspec.json.Decoder(ApprovalQuorumConfig).decode


def votes_of(row: Mapping[str, Any]) -> Votes | None:
    """The votes of a row with `quorums`, `votes`, `policy_results` and `shown_status`; None where none are asked."""
    given = _given(row["votes"]) if row["votes"] else []
    if row["shown_status"] != "pending":
        by = [VoteGiven(user, clock.iso(at)) for user, _, at in given]
        return Votes(len(by), len(by), by, []) if by else None
    quorums = _asking(row)
    if not quorums:
        return None
    cast = frozenset((user, key) for user, key, _ in given)
    voted = {user for quorum in quorums for user in quorum.voters(cast)}
    # The one that lacks the most, as the signer tells a voter.
    have, need = max(
        ((len(quorum.voters(cast)), quorum.threshold) for quorum in quorums), key=lambda count: count[1] - count[0]
    )
    named = dict.fromkeys(user for quorum in quorums for user in quorum.approvers)
    by = [VoteGiven(user, clock.iso(at)) for user, _, at in given if user in voted]
    return Votes(have, need, by, [user for user in named if user not in voted])


def _asking(row: Mapping[str, Any]) -> list[ApprovalQuorum]:
    """The quorums that the order must meet: without those that it passed when it was queued."""
    if not row["quorums"]:
        return []
    passed = {result.policy_id for result in decode_results(row["policy_results"]) if result.passed}
    return [_config(config).terms() for rule_id, config in _rules(row["quorums"]) if rule_id not in passed]
