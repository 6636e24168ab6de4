"""Agents, their tokens, and batches of them."""

from api.areas.agents import create as use_cases
from api.areas.agents import shown, tokens
from api.areas.agents.balance import AgentBalance, ChainQuery
from api.areas.agents.balance import balance as native_balance
from api.areas.agents.batch import BatchBody, BatchResult
from api.areas.agents.create import BatchPoliciesTooLarge, BatchTooLarge
from api.areas.agents.tokens import TokenTooLong
from api.areas.agents.types import AgentChangeBody, AgentQuery, AgentTaken, NewAgentBody, TokenBody
from api.http.bodies import MAX_BATCH_BODY
from api.http.endpoint import Routes
from api.http.who import agent_token, asking, tenant_read
from custody.chains.node_shares import NodeCallsSpent
from custody.chains.rpc import RpcRefused, RpcUnavailable
from custody.kit.answers import Answered
from custody.kit.callers import TenantCaller
from custody.kit.paging import Listed
from custody.kit.refs import AgentRef
from custody.policies.types import InvalidPolicy
from custody.ports import Ports
from custody.protocol.signer.agents import (
    Agent,
    AgentToken,
    ChangeAgent,
    DeleteAgent,
    DeletedAgent,
    MintAgentToken,
    RevokeAgentTokens,
    Revoked,
)
from custody.protocol.signer.order_refusals import AgentAbsent, KeyTampered, UnknownChain
from custody.protocol.signer.policies import CreateAgents
from custody.protocol.signer.refusals import (
    AgentIdReserved,
    PoliciesByAdmins,
    QuorumByPerson,
    UnknownApprover,
)

routes = Routes("/agents", tag="Agents")


@routes.post("", who=asking(CreateAgents), status=201, fails=(AgentIdReserved, AgentTaken))
async def create_agent(ports: Ports, caller: TenantCaller, body: NewAgentBody) -> Answered[Agent]:
    """Create an agent with an EVM and a Solana wallet."""
    return await use_cases.create(ports, caller, body)


@routes.get("", who=tenant_read, fails=(KeyTampered,))
async def list_agents(ports: Ports, caller: TenantCaller, query: AgentQuery) -> Listed[Agent]:
    """List the tenant's agents, newest first."""
    return await shown.all_of(ports, caller.tenant, query)


@routes.post(
    "/batch",
    max_body=MAX_BATCH_BODY,
    who=asking(CreateAgents),
    fails=(BatchTooLarge, BatchPoliciesTooLarge, InvalidPolicy, PoliciesByAdmins, QuorumByPerson, UnknownApprover),
)
async def create_agents(ports: Ports, caller: TenantCaller, body: BatchBody) -> Answered[BatchResult]:
    """Create up to 100 agents.

    Each agent is checked by itself; `errors` lists those that could not be created. `applyPolicies` goes to every new
    agent, at most 1 MiB counted once for each; of people, only an owner or admin may send it.
    """
    return await use_cases.create_many(ports, caller, body)


@routes.get("/<agent>", who=tenant_read | agent_token, fails=(AgentAbsent, KeyTampered))
async def get_agent(ports: Ports, agent: AgentRef) -> Agent:
    """Get one agent."""
    return await shown.get(ports, agent)


@routes.patch("/<agent>", who=asking(ChangeAgent))
async def change_agent(ports: Ports, caller: TenantCaller, agent: AgentRef, body: AgentChangeBody) -> Answered[Agent]:
    """Change an agent's name or its id on your own platform."""
    return await use_cases.change(ports, caller, agent, body)


@routes.delete("/<agent>", who=asking(DeleteAgent))
async def delete_agent(ports: Ports, caller: TenantCaller, agent: AgentRef) -> Answered[DeletedAgent]:
    """Delete an agent permanently, with its keys, policies, transactions and approvals."""
    return await ports.workers.ask(DeleteAgent(agent.agent), caller)


@routes.post("/<agent>/token", who=asking(MintAgentToken), fails=(TokenTooLong,), private=True, shows_secret=True)
async def create_agent_token(
    ports: Ports, caller: TenantCaller, agent: AgentRef, body: TokenBody
) -> Answered[AgentToken]:
    """Create a token for an agent; it is returned only in this response."""
    return await tokens.mint(ports, caller, agent, body)


@routes.delete("/<agent>/tokens", who=asking(RevokeAgentTokens))
async def revoke_agent_tokens(ports: Ports, caller: TenantCaller, agent: AgentRef) -> Answered[Revoked]:
    """Revoke every token of an agent."""
    return await ports.workers.ask(RevokeAgentTokens(agent.agent), caller)


@routes.get(
    "/<agent>/balance",
    who=tenant_read | agent_token,
    fails=(AgentAbsent, KeyTampered, NodeCallsSpent, RpcRefused, RpcUnavailable, UnknownChain),
)
async def get_balance(ports: Ports, agent: AgentRef, query: ChainQuery) -> AgentBalance:
    """Get the native balance of an agent's wallet on one chain."""
    return await native_balance(ports, agent, query)
