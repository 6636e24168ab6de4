"""The holdings of an agent: its account and its tokens."""

from api.areas.funds import read as use_cases
from api.areas.funds.types import AgentAccount, AgentTokens, BadToken, FundsQuery, TooManyTokens
from api.http.endpoint import Routes
from api.http.who import agent_token, tenant_read
from custody.chains.node_shares import NodeCallsSpent
from custody.chains.rpc import RpcUnavailable
from custody.kit.refs import AgentRef
from custody.ports import Ports
from custody.protocol.signer.order_refusals import AgentAbsent, KeyTampered, UnknownChain

routes = Routes("/agents", tag="Agents")


@routes.get(
    "/<agent>/account",
    who=tenant_read | agent_token,
    fails=(AgentAbsent, BadToken, KeyTampered, NodeCallsSpent, RpcUnavailable, TooManyTokens, UnknownChain),
)
async def get_account(ports: Ports, agent: AgentRef, query: FundsQuery) -> AgentAccount:
    """Get an agent as an account, with what it holds on one chain.

    A value that no node reports is null, with a note beside it. Values in USD appear where the operator lists a price.
    """
    return await use_cases.account(ports, agent, query)


@routes.get(
    "/<agent>/tokens",
    who=tenant_read | agent_token,
    fails=(AgentAbsent, BadToken, KeyTampered, NodeCallsSpent, RpcUnavailable, TooManyTokens, UnknownChain),
)
async def list_token_balances(ports: Ports, agent: AgentRef, query: FundsQuery) -> AgentTokens:
    """Get the native coin and the tokens of an agent's wallet on one chain.

    On EVM chains: the tokens named. On Solana, if none is named: every token the wallet holds, at most 25.
    """
    return await use_cases.tokens(ports, agent, query)
