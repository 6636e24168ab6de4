"""A second factor is shown: for the session, which goes on with fresh MFA, or for one item. Refusals are noted."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from custody.kit.errors import Unauthenticated
from custody.protocol.identity.factors import ItemToken, StepUp, TouchItem
from custody.protocol.identity.sessions import SignedIn
from custody.protocol.refusals import BadProof
from custody.worker.call import Call
from custody.worker.proven import ProvenSession
from identity.context import Identity
from identity.people import factors, passkeys, recovery, sms, totp

_BY_CODE = {"totp": totp.step_up, "recovery": recovery.step_up, "sms": sms.step_up}


async def step_up(identity: Identity, message: StepUp, call: Call[ProvenSession]) -> SignedIn:
    """The session's next tokens, which say that a second factor was shown just now."""
    async with _noting_refusals(identity, call, message.method):
        if message.method == "passkey":
            return await passkeys.step_up(identity, call, message.credential or {})
        return await _BY_CODE[message.method](identity, call, message.code or "")


async def touch_item(identity: Identity, message: TouchItem, call: Call[ProvenSession]) -> ItemToken:
    """A token to approve one item; the session stays as it was."""
    async with _noting_refusals(identity, call, "passkey"):
        return await passkeys.touch_item(identity, message, call)


@asynccontextmanager
async def _noting_refusals(identity: Identity, call: Call[ProvenSession], method: str) -> AsyncIterator[None]:
    try:
        yield
    except BadProof:
        # The session ended meanwhile; that says nothing of the factor.
        raise
    except Unauthenticated as problem:
        async with identity.pool.acquire() as connection, connection.transaction():
            await factors.note(connection, call, "factor.refused", "factor", method, reason=problem.code)
        raise
