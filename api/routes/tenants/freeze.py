"""Freezing an agent or the whole tenant."""

from api.http.endpoint import Routes
from api.http.who import asking
from custody.kit.answers import Answered
from custody.kit.callers import SessionCaller, TenantCaller
from custody.kit.refs import AgentRef
from custody.ports import Ports
from custody.protocol.signer.agents import (
    FreezeAgent,
    FreezeTenant,
    FrozenAgent,
    FrozenTenant,
    UnfreezeAgent,
    UnfreezeTenant,
)
from custody.tenants.types import FreezeBody

routes = Routes("", tag="Freeze")


@routes.post("/agents/<agent>/freeze", who=asking(FreezeAgent), unsigned=True)
async def freeze_agent(ports: Ports, caller: TenantCaller, agent: AgentRef, body: FreezeBody) -> Answered[FrozenAgent]:
    """Freeze an agent: after this response it signs nothing and no secret is used for it.

    Freezing again keeps the first time and reason. It never requires a request signature.
    """
    return await ports.workers.ask(FreezeAgent(agent.agent, body.reason), caller)


@routes.post("/agents/<agent>/unfreeze", who=asking(UnfreezeAgent))
async def unfreeze_agent(ports: Ports, caller: SessionCaller, agent: AgentRef) -> Answered[FrozenAgent]:
    """Unfreeze an agent."""
    return await ports.workers.ask(UnfreezeAgent(agent.agent), caller)


@routes.post("/tenants/<tenant_id>/freeze", who=asking(FreezeTenant), unsigned=True)
async def freeze_tenant(ports: Ports, caller: TenantCaller, tenant_id: str, body: FreezeBody) -> Answered[FrozenTenant]:
    """Freeze the tenant: after this response none of its agents signs anything.

    Freezing again keeps the first time and reason. It never requires a request signature.
    """
    return await ports.workers.ask(FreezeTenant(body.reason), caller)


@routes.post("/tenants/<tenant_id>/unfreeze", who=asking(UnfreezeTenant))
async def unfreeze_tenant(ports: Ports, caller: SessionCaller, tenant_id: str) -> Answered[FrozenTenant]:
    """Unfreeze the tenant; agents that are frozen themselves stay frozen.

    While the operator has frozen the tenant this is 409 `frozen_by_operator`: only the operator ends that freeze.
    """
    return await ports.workers.ask(UnfreezeTenant(), caller)
