"""Minting agents' tokens; people's are identity's."""

from custody.kit import clock, ids
from custody.kit.jwt import AgentClaims
from custody.worker.token_keys import Minter


def agent_token(minter: Minter, tenant: str, agent: str, incarnation: str, epoch: int, ttl_seconds: int) -> str:
    """A token that dies with the agent's incarnation, its epoch, or after `ttl_seconds`."""
    issued = int(clock.now().timestamp())
    return minter.mint(
        AgentClaims(
            iss=minter.issuer,
            sub=agent,
            tid=tenant,
            scope="agent",
            inc=incarnation,
            epoch=epoch,
            iat=issued,
            exp=issued + ttl_seconds,
            jti=ids.new_uuid(),
        )
    )
