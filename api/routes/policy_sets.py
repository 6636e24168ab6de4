"""Policy sets: rules that many agents share."""

from api.areas.policies import set_store as store
from api.areas.policies.set_store import PolicySetBody
from api.areas.policies.store import PolicyUnreadable
from api.http.bodies import MAX_POLICIES_BODY
from api.http.endpoint import Routes
from api.http.who import asking, tenant_read
from custody.kit.answers import Answered
from custody.kit.callers import TenantCaller
from custody.kit.paging import Listed, Page
from custody.policies.rules import check_size
from custody.ports import Ports
from custody.protocol.signer.policy_sets import (
    CreatePolicySet,
    DeletedPolicySet,
    DeletePolicySet,
    PolicySet,
    ReplacePolicySet,
)
from custody.protocol.signer.refusals import PolicySetAbsent

routes = Routes("/policy-sets", tag="Policy sets")


@routes.post("", who=asking(CreatePolicySet), status=201, max_body=MAX_POLICIES_BODY)
async def create_policy_set(ports: Ports, caller: TenantCaller, body: PolicySetBody) -> Answered[PolicySet]:
    """Create a policy set. It binds the agents whose own rules name it by a rule `policy-set`."""
    check_size(body.policies)
    return await ports.workers.ask(CreatePolicySet(body.name, body.policies), caller)


@routes.get("", who=tenant_read, fails=(PolicyUnreadable,))
async def list_policy_sets(ports: Ports, caller: TenantCaller, query: Page) -> Listed[PolicySet]:
    """List the tenant's policy sets, newest first."""
    return await store.all_of(ports.pool, caller.tenant, query)


@routes.get("/<policy_set_id>", who=tenant_read, fails=(PolicySetAbsent, PolicyUnreadable))
async def get_policy_set(ports: Ports, caller: TenantCaller, policy_set_id: str) -> PolicySet:
    """Get one policy set."""
    return await store.one_of(ports.pool, caller.tenant, policy_set_id)


@routes.put("/<policy_set_id>", who=asking(ReplacePolicySet), max_body=MAX_POLICIES_BODY)
async def replace_policy_set(
    ports: Ports, caller: TenantCaller, policy_set_id: str, body: PolicySetBody
) -> Answered[PolicySet]:
    """Replace a policy set's name and all of its rules, for all agents that name it at once.

    The set `tenant` binds every agent of the tenant; it is made by its first replacement. With an app client, the new
    rules may only tighten the old ones.
    """
    check_size(body.policies)
    return await ports.workers.ask(ReplacePolicySet(policy_set_id, body.name, body.policies), caller)


@routes.delete("/<policy_set_id>", who=asking(DeletePolicySet))
async def delete_policy_set(ports: Ports, caller: TenantCaller, policy_set_id: str) -> Answered[DeletedPolicySet]:
    """Delete a policy set that no agent names, with what its agents spent together."""
    return await ports.workers.ask(DeletePolicySet(policy_set_id), caller)
