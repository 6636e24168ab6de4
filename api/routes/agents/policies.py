"""An agent's policies."""

from api.areas.agents.policies import PolicyVoteBody, PolicyVotes, PolicyVotesTaken, replace, vote
from api.areas.policies import store
from api.areas.policies.store import PolicyUnreadable, PolicyVersion
from api.http.bodies import MAX_POLICIES_BODY
from api.http.endpoint import Routes
from api.http.who import agent_token, asking, tenant_read
from custody.kit.answer_kinds import Deferred
from custody.kit.answers import Answered
from custody.kit.callers import AgentCaller, TenantCaller
from custody.kit.refs import AgentRef
from custody.policies.kinds import PolicyRule
from custody.ports import Ports
from custody.protocol.signer.order_refusals import AgentAbsent
from custody.protocol.signer.policies import ReplacePolicies, VotePolicies

routes = Routes("/agents", tag="Policies")


@routes.get("/<agent>/policies", who=tenant_read | agent_token, fails=(AgentAbsent, PolicyUnreadable))
async def list_policies(ports: Ports, agent: AgentRef) -> list[PolicyRule]:
    """List an agent's policy rules in the order in which they are evaluated."""
    return await store.all_of(ports.pool, agent)


@routes.put("/<agent>/policies", who=asking(ReplacePolicies), max_body=MAX_POLICIES_BODY)
async def replace_policies(
    ports: Ports, caller: TenantCaller | AgentCaller, agent: AgentRef, body: list[PolicyRule]
) -> Answered[list[PolicyRule]]:
    """Replace an agent's whole set of policy rules.

    With an agent token or an app client, the new set may only tighten the old one. While an approval-quorum rule is
    enabled, that holds for everybody; only a person with a recent second factor adds or changes such a rule.
    """
    return await replace(ports, caller, agent, body)


@routes.get("/<agent>/policies/votes", who=tenant_read, fails=(AgentAbsent,))
async def get_policy_votes(ports: Ports, agent: AgentRef) -> PolicyVersion:
    """Get the version of an agent's rules, which a vote for a looser set names."""
    return await store.version_of(ports.pool, agent)


@routes.post("/<agent>/policies/votes", who=asking(VotePolicies), max_body=MAX_POLICIES_BODY)
async def vote_for_policies(
    ports: Ports, caller: TenantCaller, agent: AgentRef, body: PolicyVoteBody
) -> Answered[PolicyVotes | Deferred[PolicyVotesTaken]]:
    """Vote for a set of rules that loosens one with an approval-quorum rule; the last vote that is needed replaces it.

    Every voter sends the same set, each rule with its `id`, and a vote over its hash (docs/signers.md).
    """
    return await vote(ports, caller, agent, body)
