"""Mint a token for an agent."""

from api.areas.agents.types import TokenBody
from custody.kit.answers import Answered
from custody.kit.callers import TenantCaller
from custody.kit.errors import Invalid
from custody.kit.refs import AgentRef
from custody.ports import Ports
from custody.protocol.signer.agents import AgentToken, MintAgentToken

_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
MAX_TTL_SECONDS = 30 * 86_400


class TokenTooLong(Invalid):
    """A token is valid for at most 30 days."""


async def mint(ports: Ports, caller: TenantCaller, ref: AgentRef, body: TokenBody) -> Answered[AgentToken]:
    """Mint a token; agents cannot do this for themselves."""
    seconds = int(body.expires_in[:-1]) * _UNIT_SECONDS[body.expires_in[-1]]
    if seconds > MAX_TTL_SECONDS:
        raise TokenTooLong(fields=["expiresIn"])
    message = MintAgentToken(ref.agent, seconds, body.expires_in)
    return await ports.workers.ask(message, caller)
