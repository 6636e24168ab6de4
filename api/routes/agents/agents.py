"""Agents, their tokens, and batches of them. Spec 1/4.1."""

from typing import Any

from api.http.endpoint import Routes
from api.http.who import agent_token, app_client, tenant_key, tenant_read, tenant_write
from custody.agents import create as stories
from custody.agents import store, tokens
from custody.agents.balance import AgentBalance, ChainQuery
from custody.agents.balance import balance as native_balance
from custody.agents.types import (
    Agent,
    AgentAbsent,
    AgentTaken,
    AgentToken,
    BatchBody,
    BatchResult,
    Deleted,
    NewAgentBody,
    PoliciesByAdmins,
    Revoked,
    TokenBody,
)
from custody.chains.rpc import RpcUnavailable
from custody.identity.roles import BUILDERS
from custody.kit.callers import TenantCaller
from custody.kit.paging import Page
from custody.kit.refs import AgentRef
from custody.ports import Ports

routes = Routes("/agents", tag="Agents")


@routes.post("", who=tenant_write(roles=BUILDERS), returns={201: Agent}, fails=(AgentTaken,))
async def create(ports: Ports, caller: TenantCaller, body: NewAgentBody) -> Any:
    """Create an agent with an EVM and a Solana wallet."""
    return await stories.create(ports, caller, body)


@routes.get("", who=tenant_read, returns={200: list[Agent]})
async def list_all(ports: Ports, caller: TenantCaller, query: Page) -> Any:
    """List the tenant's agents, newest first."""
    return await store.all_of(ports.pool, caller.tenant, query)


@routes.post("/batch", who=tenant_write(roles=BUILDERS), returns={200: BatchResult}, fails=(PoliciesByAdmins,))
async def create_batch(ports: Ports, caller: TenantCaller, body: BatchBody) -> Any:
    """Create up to 100 agents.

    Each is checked by itself: what could not be made is named in `errors`. `applyPolicies` goes to every new agent; of
    people only an owner or admin sends it.
    """
    return await stories.create_many(ports, caller, body)


@routes.get("/<agent>", who=tenant_read | agent_token, returns={200: Agent}, fails=(AgentAbsent,))
async def get(ports: Ports, agent: AgentRef) -> Any:
    """Get one agent."""
    return await store.get(ports.pool, agent)


@routes.delete("/<agent>", who=tenant_key | app_client, returns={200: Deleted}, fails=(AgentAbsent,))
async def delete(ports: Ports, caller: TenantCaller, agent: AgentRef) -> Any:
    """Delete an agent for ever, with its keys, policies, transactions and approvals."""
    return await tokens.delete(ports, caller, agent)


@routes.post(
    "/<agent>/token",
    who=tenant_write(roles=BUILDERS),
    returns={200: AgentToken},
    fails=(AgentAbsent,),
    private=True,
    shows_secret=True,
)
async def mint_token(ports: Ports, caller: TenantCaller, agent: AgentRef, body: TokenBody) -> Any:
    """Mint a token for an agent; it is shown once."""
    return await tokens.mint(ports, caller, agent, body)


@routes.delete("/<agent>/tokens", who=tenant_write(), returns={200: Revoked}, fails=(AgentAbsent,))
async def revoke_tokens(ports: Ports, caller: TenantCaller, agent: AgentRef) -> Any:
    """Revoke every token of an agent."""
    return await tokens.revoke(ports, caller, agent)


@routes.get(
    "/<agent>/balance", who=tenant_read | agent_token, returns={200: AgentBalance}, fails=(AgentAbsent, RpcUnavailable)
)
async def balance(ports: Ports, agent: AgentRef, query: ChainQuery) -> Any:
    """Get the native balance of an agent's wallet on one chain."""
    return await native_balance(ports, agent, query)
