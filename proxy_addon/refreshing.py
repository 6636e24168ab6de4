"""A refresh at a provider that may replace the refresh token: begun and ended at the signer, by one proxy at a time."""

import asyncio

from custody.kit.callers import AgentCaller
from custody.kit.errors import Conflict, CustodyError
from custody.kit.logs import logger
from custody.protocol.client import SignerClient
from custody.protocol.signer.refusals import RefreshUnderWay
from custody.protocol.signer.secrets import BeginRefresh, EndRefresh, RefreshBegun

log = logger("proxy")
_UNDER_WAY = RefreshUnderWay().code
# While another proxy asks, which takes a provider ten seconds at most.
WAIT_SECONDS, LOOK_SECONDS = 15.0, 0.2
# How often what a provider gave is told to a signer that does not answer, and how long between: as long as the lease.
TRIES, AGAIN_SECONDS = 10, 5.0


class Refresh:
    """The refresh of one secret's access token, in the name of the agent that waits for it."""

    def __init__(self, signer: SignerClient, route: str, secret: str, caller: AgentCaller) -> None:
        self._signer, self._route, self._secret, self._caller = signer, route, secret, caller

    async def begin(self) -> RefreshBegun:
        """The request that nobody else sends meanwhile; RefreshUnderWay if others are at it for too long."""
        loop = asyncio.get_running_loop()
        give_up = loop.time() + WAIT_SECONDS
        while True:
            try:
                return (await self._signer.ask(BeginRefresh(self._route), self._caller)).answer
            except Conflict as refusal:
                # Across the socket a refusal keeps its code, and of its class only the kind.
                if refusal.code != _UNDER_WAY or loop.time() > give_up:
                    raise
            await asyncio.sleep(LOOK_SECONDS)

    async def end(self, begun: RefreshBegun, refresh_token: str | None, *, unknown: bool) -> None:
        """Have the signer keep the next refresh token; the one before may be dead already, so this does not give up."""
        message = EndRefresh(
            tenant=self._caller.tenant,
            secret=self._secret,
            lease=begun.lease,
            refresh_token=refresh_token,
            unknown=unknown,
        )
        for left in reversed(range(TRIES)):
            try:
                await self._signer.tell(message, self._caller.origin)
            except CustodyError:
                if not left:
                    said = {"tenant": self._caller.tenant, "route": self._route}
                    log.error("a refresh token that a provider gave could not be kept", extra=said)
                    return
                await asyncio.sleep(AGAIN_SECONDS)
            else:
                return
