"""An agent's policies. Spec 1/4.1, 2.4."""

from typing import Any

from api.http.endpoint import Routes
from api.http.who import agent_token, tenant_read, tenant_write
from custody.agents.policies import replace as replace_policies
from custody.agents.types import AgentAbsent
from custody.kit.callers import AgentCaller, TenantCaller
from custody.kit.refs import AgentRef
from custody.policies import store
from custody.policies.types import InvalidPolicy, PolicyRule
from custody.ports import Ports

routes = Routes("/agents", tag="Policies")


@routes.get("/<agent>/policies", who=tenant_read | agent_token, returns={200: list[PolicyRule]}, fails=(AgentAbsent,))
async def list_all(ports: Ports, agent: AgentRef) -> Any:
    """List an agent's policy rules in the order in which they are judged."""
    return await store.all_of(ports.pool, agent)


@routes.put(
    "/<agent>/policies",
    who=tenant_write() | agent_token,
    returns={200: list[PolicyRule]},
    fails=(AgentAbsent, InvalidPolicy),
)
async def replace(ports: Ports, caller: TenantCaller | AgentCaller, agent: AgentRef, body: list[PolicyRule]) -> Any:
    """Replace an agent's whole set of policy rules.

    With an agent's own token the new set may only tighten the old one.
    """
    return await replace_policies(ports, caller, agent, body)
