"""Freezing an agent or the whole tenant. Decisions 10."""

from typing import Any

from api.http.endpoint import Routes
from api.http.who import admin_mfa, tenant_decide
from custody.agents.types import AgentAbsent
from custody.kit.callers import SessionCaller, TenantCaller
from custody.kit.refs import AgentRef
from custody.ports import Ports
from custody.tenants import freeze as stories
from custody.tenants.types import FreezeBody, FrozenAgent, FrozenTenant

routes = Routes("", tag="Freeze")


@routes.post(
    "/agents/<agent>/freeze", who=tenant_decide(), returns={200: FrozenAgent}, fails=(AgentAbsent,), unsigned=True
)
async def freeze_agent(ports: Ports, caller: TenantCaller, agent: AgentRef, body: FreezeBody) -> Any:
    """Freeze an agent: once this is answered it signs nothing and no secret is used for it.

    What is frozen already keeps its first time and reason. It needs no signature, wherever the deployment wants one.
    """
    return await stories.freeze_agent(ports, caller, agent, body)


@routes.post("/agents/<agent>/unfreeze", who=admin_mfa("approvals"), returns={200: FrozenAgent}, fails=(AgentAbsent,))
async def unfreeze_agent(ports: Ports, caller: SessionCaller, agent: AgentRef) -> Any:
    """Let an agent sign again."""
    return await stories.unfreeze_agent(ports, caller, agent)


@routes.post("/tenants/<tenant_id>/freeze", who=tenant_decide(), returns={200: FrozenTenant}, unsigned=True)
async def freeze_tenant(ports: Ports, caller: TenantCaller, tenant_id: str, body: FreezeBody) -> Any:
    """Freeze the tenant: once this is answered none of its agents signs anything.

    What is frozen already keeps its first time and reason. It needs no signature, wherever the deployment wants one.
    """
    return await stories.freeze_tenant(ports, caller, body)


@routes.post("/tenants/<tenant_id>/unfreeze", who=admin_mfa("approvals"), returns={200: FrozenTenant})
async def unfreeze_tenant(ports: Ports, caller: SessionCaller, tenant_id: str) -> Any:
    """Let the tenant's agents sign again; those that are frozen themselves stay so."""
    return await stories.unfreeze_tenant(ports, caller)
