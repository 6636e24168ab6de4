"""The commands that carry rules. They stand apart because rules need libraries that few processes have."""

from typing import Annotated

import msgspec
from msgspec import Meta

from custody.identity.roles import BUILDERS
from custody.kit.errors import Frozen, QuotaExceeded
from custody.kit.shapes import AgentId, DisplayName
from custody.policies.kinds import PolicyRule
from custody.policies.types import InvalidPolicy
from custody.protocol.command import AGENT, SESSION, TENANT, Command, command, refuses
from custody.protocol.signer import order_refusals, refusals
from custody.protocol.signer.agents import Agent
from custody.protocol.signer.orders import Vote
from custody.protocol.signer.outcomes import VoteGiven


class AgentsCreated(msgspec.Struct, frozen=True):
    """The new agents; those whose id is taken are left out."""

    created: list[Agent]


class NewAgent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One agent to create."""

    id: AgentId
    name: DisplayName
    platform_id: DisplayName | None = None


@command("signer", proofs=TENANT, mfa="tenantAdmin", roles=BUILDERS, audit=("agent.created",))
@refuses(QuotaExceeded, refusals.TooManyBatches, refusals.UnknownPolicySet)
class CreateAgents(Command[AgentsCreated], frozen=True):
    """Make up to 100 agents; those whose id is taken are left out of the answer."""

    agents: Annotated[list[NewAgent], Meta(max_length=100)]
    policies: list[PolicyRule] = []  # noqa: RUF012 - msgspec copies it


@command("signer", proofs=TENANT | AGENT, mfa="tenantAdmin", audit=("policy.replaced",))
@refuses(order_refusals.AgentAbsent, Frozen, InvalidPolicy, refusals.PoliciesMoving, refusals.PolicyLoosened)
@refuses(order_refusals.PolicyTampered, refusals.QuorumByPerson, refusals.QuorumNeeded, QuotaExceeded)
@refuses(refusals.UnknownApprover, refusals.UnknownPolicySet)
class ReplacePolicies(Command[list[PolicyRule]], frozen=True):
    """Replace an agent's whole set of rules. An agent or app client may only tighten it."""

    agent: AgentId
    policies: list[PolicyRule]


class PoliciesVoted(msgspec.Struct, frozen=True):
    """The outcome of a vote on looser policies: `policies` is the set in force, once there were enough."""

    have: int
    need: int
    by: list[VoteGiven]
    policies: list[PolicyRule] | None = None


@command("signer", proofs=SESSION, mfa="tenantAdmin", audit=("approval.voted", "policy.replaced"))
@refuses(
    order_refusals.AgentAbsent, InvalidPolicy, refusals.PoliciesMoving, order_refusals.PolicyTampered, QuotaExceeded
)
@refuses(refusals.UnknownApprover, refusals.UnknownPolicySet, refusals.VoteRefused)
class VotePolicies(Command[PoliciesVoted], frozen=True):
    """Vote for a set that loosens one with approval quorums; the last vote that is needed replaces it."""

    agent: AgentId
    policies: list[PolicyRule]
    vote: Vote
