"""Priced calls: charged at the signer before they leave; what a metered one left of that is told when it is over."""

import asyncio
import time
from typing import Final

from custody.credentials.prices import Counts
from custody.kit import ids
from custody.kit.callers import AgentCaller
from custody.kit.errors import CustodyError, Unavailable
from custody.kit.logs import logger
from custody.protocol.client import SignerClient
from custody.protocol.signer.calls import ChargeCall, EndCharge

log = logger("proxy")
# A call leaves within half a minute of its charge: asked for so long ago, it is charged again.
CHARGE_SECONDS: Final = 20.0
TRIES, AGAIN_SECONDS = 5, 2.0


class Charge:
    """The charges of one request: by which route and in whose name, how much so far, and the newest."""

    __slots__ = ("_at", "caller", "id", "micro_usd", "route")

    def __init__(self, route: str, caller: AgentCaller) -> None:
        self.route, self.caller = route, caller
        self.id: str | None = None
        self.micro_usd = 0
        self._at = float("-inf")

    def __repr__(self) -> str:
        return f"Charge({self.id}, {self.micro_usd})"

    @property
    def is_fresh(self) -> bool:
        """True if a call may leave for it now."""
        return time.monotonic() - self._at < CHARGE_SECONDS

    def note(self, call: str, micro_usd: int, began: float) -> None:
        """Note what was charged under an id, asked for at this moment."""
        self.id, self._at = call, began
        self.micro_usd += micro_usd

    def cover(self) -> None:
        """Have nothing more charged: the call is paid for, and leaves on that commit."""
        self._at = float("inf")

    def use_up(self) -> None:
        """Have the next try charged by itself: nobody knows whether this one arrived."""
        self._at = float("-inf")


class Charges:
    """The way to the signer that counts."""

    def __init__(self, signer: SignerClient) -> None:
        self._signer = signer

    async def make(self, charge: Charge) -> None:
        """Charge one call; raises what the signer refuses it for."""
        call, began = ids.new_uuid(), time.monotonic()
        answer = (await self._signer.ask(ChargeCall(charge.route, call), charge.caller)).answer
        charge.note(call, answer.micro_usd, began)
        if not charge.is_fresh:
            # Its charge stands; what leaves now would be in a later window.
            raise Unavailable

    async def end(self, charge: Charge, counts: Counts) -> None:
        """Tell what the call used. What the signer never hears of stays charged."""
        if charge.id is None:
            return
        message = EndCharge(charge.caller.tenant, charge.id, counts)
        for left in reversed(range(TRIES)):
            try:
                await self._signer.tell(message, charge.caller.origin)
            except CustodyError as problem:
                if not left:
                    log.warning("what a call used was not told", extra={"call": charge.id, "reason": problem.code})
                    return
                await asyncio.sleep(AGAIN_SECONDS)
            else:
                return
