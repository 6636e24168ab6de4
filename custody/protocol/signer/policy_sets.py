"""Policy sets: rules that many agents share, and limits over all of them."""

from typing import Annotated

import msgspec

from custody.kit.described import Instant, described
from custody.kit.errors import QuotaExceeded
from custody.kit.shapes import DisplayName, PolicySetId
from custody.policies.kinds import PolicyRule
from custody.policies.types import InvalidPolicy
from custody.protocol.command import TENANT, Command, command, refuses
from custody.protocol.signer import order_refusals, refusals


class PolicySet(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A policy set of the tenant."""

    id: Annotated[str, described("The set's id; `tenant` is the set of every agent.")]
    name: Annotated[str, described("The set's name.")]
    version: Annotated[int, described("Counts up with every change of the rules.")]
    policies: Annotated[list[PolicyRule], described("The rules, in the order in which they are evaluated.")]
    agents: Annotated[int, described("Number of agents that name it; of the set of every agent always 0.")]
    created_at: Annotated[Instant, described("Time of creation.")]
    updated_at: Annotated[Instant, described("Time of the last change.")]


class DeletedPolicySet(msgspec.Struct, frozen=True):
    """The deleted resource."""

    deleted: Annotated[str, described("The id of what was deleted.")]


@command("signer", proofs=TENANT, mfa="tenantAdmin", audit=("policy_set.created",))
@refuses(InvalidPolicy, QuotaExceeded, refusals.PoliciesMoving)
class CreatePolicySet(Command[PolicySet], frozen=True):
    """Make a policy set, sealed by the signer; it binds the agents whose rules name it."""

    name: DisplayName
    policies: list[PolicyRule]


@command("signer", proofs=TENANT, mfa="tenantAdmin", audit=("policy_set.created", "policy_set.replaced"))
@refuses(InvalidPolicy, QuotaExceeded, refusals.PoliciesMoving, refusals.PolicyLoosened, refusals.PolicySetAbsent)
@refuses(order_refusals.PolicyTampered)
class ReplacePolicySet(Command[PolicySet], frozen=True):
    """Replace a set's name and all of its rules; the set of every agent is made if there is none. An app client may
    only tighten it.
    """

    policy_set: PolicySetId
    name: DisplayName
    policies: list[PolicyRule]


@command("signer", proofs=TENANT, mfa="tenantAdmin", audit=("policy_set.deleted",))
@refuses(refusals.PoliciesMoving, refusals.PolicySetAbsent, refusals.PolicySetNamed, refusals.PolicySetStays)
class DeletePolicySet(Command[DeletedPolicySet], frozen=True):
    """Delete a set that no agent names, with its sums."""

    policy_set: PolicySetId
