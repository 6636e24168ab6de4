"""An agent's tokens, and its end. Spec 1/4.1, decisions 5, 10."""

from typing import Any

import msgspec

from custody.agents.types import AgentToken, Deleted, Revoked, TokenBody
from custody.kit.callers import TenantCaller
from custody.kit.errors import Invalid
from custody.kit.refs import AgentRef
from custody.ports import Ports
from custody.protocol.client import asked
from custody.protocol.messages import DeleteAgent, MintAgentToken, RevokeAgentTokens

_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
MAX_TTL_SECONDS = 30 * 86_400


class TokenTooLong(Invalid):
    """A token lives at most 30 days."""


async def mint(ports: Ports, caller: TenantCaller, ref: AgentRef, body: TokenBody) -> AgentToken:
    """Mint a token; agents cannot do this for themselves."""
    seconds = int(body.expires_in[:-1]) * _UNIT_SECONDS[body.expires_in[-1]]
    if seconds > MAX_TTL_SECONDS:
        raise TokenTooLong(fields=["expiresIn"])
    data = await asked(ports.signer, MintAgentToken(ref.agent, seconds, body.expires_in), caller)
    return msgspec.convert(data, AgentToken)


async def revoke(ports: Ports, caller: TenantCaller, ref: AgentRef) -> Any:
    """Revoke every token of an agent."""
    data = await asked(ports.signer, RevokeAgentTokens(ref.agent), caller)
    return data.replayed_or(msgspec.convert(data, Revoked))


async def delete(ports: Ports, caller: TenantCaller, ref: AgentRef) -> Any:
    """Delete an agent with everything it has."""
    data = await asked(ports.signer, DeleteAgent(ref.agent), caller)
    return data.replayed_or(msgspec.convert(data, Deleted))
