"""Replace an agent's policies; the signer judges, seals and stores them."""

from typing import Annotated

import msgspec

from custody.kit.answer_kinds import Deferred
from custody.kit.answers import Answered
from custody.kit.callers import AgentCaller, TenantCaller
from custody.kit.described import described
from custody.kit.refs import AgentRef
from custody.policies.kinds import PolicyRule
from custody.policies.rules import check_size
from custody.ports import Ports
from custody.protocol.signer.orders import Vote
from custody.protocol.signer.outcomes import VoteGiven
from custody.protocol.signer.policies import PoliciesVoted, ReplacePolicies, VotePolicies


async def replace(
    ports: Ports, caller: TenantCaller | AgentCaller, ref: AgentRef, rules: list[PolicyRule]
) -> Answered[list[PolicyRule]]:
    """Replace the whole set under its next version."""
    check_size(rules)
    return await ports.workers.ask(ReplacePolicies(ref.agent, rules), caller)


class PolicyVoteBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A set of rules, and a vote for it."""

    policies: Annotated[list[PolicyRule], described("The whole set, each rule with its `id`.")]
    vote: Annotated[Vote, described("Your vote over this set (docs/signers.md).")]


class PolicyVotes(msgspec.Struct, frozen=True):
    """The set is in force."""

    policies: Annotated[list[PolicyRule], described("The rules as they are now.")]
    have: Annotated[int, described("Number of votes.")]
    need: Annotated[int, described("Number of votes needed.")]
    by: Annotated[list[VoteGiven], described("Voters, in the order of their votes.")]


class PolicyVotesTaken(msgspec.Struct, frozen=True):
    """The vote was taken; the set is not in force yet."""

    have: Annotated[int, described("Number of votes for this set, this one included.")]
    need: Annotated[int, described("Number of votes needed.")]
    by: Annotated[list[VoteGiven], described("Voters, in the order of their votes.")]


async def vote(
    ports: Ports, caller: TenantCaller, ref: AgentRef, body: PolicyVoteBody
) -> Answered[PolicyVotes | Deferred[PolicyVotesTaken]]:
    """Vote for a looser set."""
    check_size(body.policies)
    answered = await ports.workers.ask(VotePolicies(ref.agent, body.policies, body.vote), caller)
    return answered.to(_answer)


def _answer(voted: PoliciesVoted) -> PolicyVotes | Deferred[PolicyVotesTaken]:
    if voted.policies is not None:
        return PolicyVotes(voted.policies, voted.have, voted.need, voted.by)
    return Deferred(
        PolicyVotesTaken(voted.have, voted.need, voted.by),
        "Your vote was taken. The set needs more votes to replace the old one.",
    )
