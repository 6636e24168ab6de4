"""What an agent holds: its account and its tokens. Spec 1/4.1."""

from typing import Any

from api.http.endpoint import Routes
from api.http.who import agent_token, tenant_read
from custody.agents.types import AgentAbsent
from custody.funds import read as stories
from custody.funds.types import AgentAccount, AgentTokens, BadToken, FundsQuery, TooManyTokens
from custody.kit.refs import AgentRef
from custody.ports import Ports

routes = Routes("/agents", tag="Agents")


@routes.get(
    "/<agent>/account",
    who=tenant_read | agent_token,
    returns={200: AgentAccount},
    fails=(AgentAbsent, BadToken, TooManyTokens),
)
async def account(ports: Ports, agent: AgentRef, query: FundsQuery) -> Any:
    """Get an agent as an account, with what it holds on one chain.

    What no node tells is null with a note beside it. Values in USD are there where the operator lists a price.
    """
    return await stories.account(ports, agent, query)


@routes.get(
    "/<agent>/tokens",
    who=tenant_read | agent_token,
    returns={200: AgentTokens},
    fails=(AgentAbsent, BadToken, TooManyTokens),
)
async def tokens(ports: Ports, agent: AgentRef, query: FundsQuery) -> Any:
    """Get the native coin and the tokens of an agent's wallet on one chain.

    On EVM chains those that are named; on Solana, if none is named, all that the wallet holds, 25 at most.
    """
    return await stories.tokens(ports, agent, query)
