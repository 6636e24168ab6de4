"""A second factor is shown: the session goes on with fresh MFA. What was refused stays in the log. Decisions 5."""

from typing import Any

from custody.kit.errors import Unauthenticated
from custody.protocol.messages import Done, Outcome, StepUp
from signer.context import Ask, Signer
from signer.people import factors, passkeys, recovery, sms, totp
from signer.proofs import BadProof, ProvenSession

_BY_CODE = {"totp": totp.step_up, "recovery": recovery.step_up, "sms": sms.step_up}


async def step_up(signer: Signer, message: StepUp, ask: Ask[ProvenSession]) -> Outcome:
    """The session's next tokens, which say that a second factor was shown just now."""
    try:
        return Done(await _shown(signer, message, ask))
    except BadProof:
        # The session ended meanwhile; that says nothing of the factor.
        raise
    except Unauthenticated as problem:
        async with signer.pool.acquire() as connection, connection.transaction():
            await factors.note(connection, ask, "factor.refused", "factor", message.method, reason=problem.code)
        raise


async def _shown(signer: Signer, message: StepUp, ask: Ask[ProvenSession]) -> dict[str, Any]:
    if message.method == "passkey":
        return await passkeys.step_up(signer, ask, message.credential or {})
    return await _BY_CODE[message.method](signer, ask, message.code or "")
