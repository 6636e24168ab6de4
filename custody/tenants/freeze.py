"""Freeze an agent or the whole tenant, and let it go on. Decisions 10."""

from typing import Any

import msgspec

from custody.kit.callers import SessionCaller, TenantCaller
from custody.kit.refs import AgentRef
from custody.ports import Ports
from custody.protocol import messages
from custody.protocol.client import asked
from custody.tenants.types import FreezeBody, FrozenAgent, FrozenTenant


async def freeze_agent(ports: Ports, caller: TenantCaller, agent: AgentRef, body: FreezeBody) -> Any:
    """Once this is answered nothing of the agent is signed any more."""
    data = await asked(ports.signer, messages.Freeze(agent.agent, body.reason), caller)
    return data.replayed_or(msgspec.convert(data, FrozenAgent))


async def unfreeze_agent(ports: Ports, caller: SessionCaller, agent: AgentRef) -> Any:
    """Let the agent sign again."""
    data = await asked(ports.signer, messages.Unfreeze(agent.agent), caller)
    return data.replayed_or(msgspec.convert(data, FrozenAgent))


async def freeze_tenant(ports: Ports, caller: TenantCaller, body: FreezeBody) -> Any:
    """Once this is answered nothing of any agent of the tenant is signed any more."""
    data = await asked(ports.signer, messages.Freeze(None, body.reason), caller)
    return data.replayed_or(msgspec.convert(data, FrozenTenant))


async def unfreeze_tenant(ports: Ports, caller: SessionCaller) -> Any:
    """Let the tenant's agents sign again; those that are frozen themselves stay so."""
    data = await asked(ports.signer, messages.Unfreeze(None), caller)
    return data.replayed_or(msgspec.convert(data, FrozenTenant))
