"""A second factor is shown: the session goes on with fresh MFA. What was refused stays in the log."""

from custody.kit.errors import Unauthenticated
from custody.protocol.identity.factors import StepUp
from custody.protocol.identity.sessions import SignedIn
from custody.protocol.refusals import BadProof
from custody.worker.call import Call
from custody.worker.proven import ProvenSession
from identity.context import Identity
from identity.people import factors, passkeys, recovery, sms, totp

_BY_CODE = {"totp": totp.step_up, "recovery": recovery.step_up, "sms": sms.step_up}


async def step_up(identity: Identity, message: StepUp, call: Call[ProvenSession]) -> SignedIn:
    """The session's next tokens, which say that a second factor was shown just now."""
    try:
        return await _step_up(identity, message, call)
    except BadProof:
        # The session ended meanwhile; that says nothing of the factor.
        raise
    except Unauthenticated as problem:
        async with identity.pool.acquire() as connection, connection.transaction():
            await factors.note(connection, call, "factor.refused", "factor", message.method, reason=problem.code)
        raise


async def _step_up(identity: Identity, message: StepUp, call: Call[ProvenSession]) -> SignedIn:
    if message.method == "passkey":
        return await passkeys.step_up(identity, call, message.credential or {})
    return await _BY_CODE[message.method](identity, call, message.code or "")
