"""Policy templates: rules to start with."""

from api.areas.policies.store import PolicyUnreadable
from api.areas.templates import policies as use_cases
from api.areas.templates.policies import OneOfTwo, TemplateAbsent, TemplateMisfit
from api.areas.templates.types import AgentTemplateBody, FillBody, FilledTemplate, SetTemplateBody
from api.http.bodies import MAX_POLICIES_BODY
from api.http.endpoint import Routes
from api.http.who import asking, narrower, tenant_read, tenant_write
from custody.identity.theme import PolicyTemplate
from custody.kit.answers import Answered
from custody.kit.callers import TenantCaller
from custody.kit.refs import AgentRef
from custody.policies.kinds import PolicyRule
from custody.policies.types import InvalidPolicy
from custody.ports import Ports
from custody.protocol.signer.order_refusals import AgentAbsent
from custody.protocol.signer.policies import ReplacePolicies
from custody.protocol.signer.policy_sets import PolicySet, ReplacePolicySet
from custody.protocol.signer.refusals import PolicySetAbsent

routes = Routes("/policy-templates", tag="Policies")
of_agents = Routes("/agents", tag="Policies")
of_sets = Routes("/policy-sets", tag="Policy sets")


@routes.get("", who=tenant_read)
async def list_policy_templates(ports: Ports, caller: TenantCaller) -> list[PolicyTemplate]:
    """List the templates that can be applied: the tenant's own (`policyTemplates`), then those of this service."""
    return await use_cases.every(ports, caller.tenant)


@routes.post(
    "/preview",
    who=tenant_read,
    max_body=MAX_POLICIES_BODY,
    fails=(AgentAbsent, InvalidPolicy, OneOfTwo, PolicySetAbsent, PolicyUnreadable, TemplateAbsent, TemplateMisfit),
)
async def preview_policy_template(ports: Ports, caller: TenantCaller, body: FillBody) -> FilledTemplate:
    """Fill in a template and say what becomes looser than the rules of an agent or a policy set; nothing is changed.

    Without `agentId` and `policySetId` it is compared with no rules at all.
    """
    return await use_cases.compare(ports, caller.tenant, body)


@of_agents.put(
    "/<agent>/policies/template",
    who=narrower(tenant_write(), than=ReplacePolicies),
    max_body=MAX_POLICIES_BODY,
    fails=(TemplateAbsent, TemplateMisfit),
)
async def apply_policy_template(
    ports: Ports, caller: TenantCaller, agent: AgentRef, body: AgentTemplateBody
) -> Answered[list[PolicyRule]]:
    """Replace an agent's whole set of policy rules by those of a template, checked like any rules.

    Votes, second factors and who may loosen are as for `PUT /agents/{agentId}/policies`.
    """
    return await use_cases.apply(ports, caller, agent, body)


@of_sets.put(
    "/<policy_set_id>/template",
    who=asking(ReplacePolicySet),
    max_body=MAX_POLICIES_BODY,
    fails=(TemplateAbsent, TemplateMisfit),
)
async def apply_policy_template_to_set(
    ports: Ports, caller: TenantCaller, policy_set_id: str, body: SetTemplateBody
) -> Answered[PolicySet]:
    """Replace all rules of a policy set by those of a template, for all agents that name it at once."""
    return await use_cases.apply_to_set(ports, caller, policy_set_id, body)
