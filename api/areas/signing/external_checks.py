"""Ask services about an order, where rules of the agent say so, and bring the signer what they answered.

Nothing is judged here: what does not come whole and in time is left out, and the signer knows what that means.
"""

import asyncio
import binascii
import hashlib
from base64 import b64decode
from collections.abc import Sequence

import msgspec

from custody.kit import stages
from custody.kit.answers import Answered
from custody.kit.callers import AgentCaller, SessionCaller
from custody.kit.logs import logger
from custody.kit.outside import NoAnswer
from custody.kit.refs import AgentRef
from custody.policies.types import MOST_ANSWER, CheckAnswer, CheckQuestion
from custody.ports import Ports
from custody.protocol.signer.orders import ReplaceEvm, SignOrder
from custody.protocol.signer.outcomes import NeedsChecks, NeedsPreparation, Queued, Refused, Signed, Voted
from custody.protocol.signer.user_wallets import SignUserOrder

log = logger(__name__)
# Messages that ask for a signature.
Asking = SignOrder | ReplaceEvm | SignUserOrder
SIGNATURE = "custody-check-signature"
_HEADERS = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "custody"}
_BYTES_OF_SIGNATURE = 64
_OK = 200


async def ask_signer_and_services(
    ports: Ports, caller: AgentCaller | SessionCaller, ref: AgentRef, message: Asking
) -> Answered[Signed | Queued | Refused | NeedsPreparation | Voted]:
    """Have an order judged; a second time, with their answers, where services are to be asked about it first."""
    with stages.time_stage("signer"):
        answered = await ports.workers.ask(message, caller)
    if isinstance(answered.answer, NeedsChecks):
        with stages.time_stage("external_checks"):
            answers = await _ask_all(ports, ref, answered.answer.questions)
        message = msgspec.structs.replace(message, answers=answers)
        with stages.time_stage("signer"):
            answered = await ports.workers.ask(message, caller)
    if isinstance(answered.answer, NeedsChecks):
        raise TypeError("the signer asked for checks twice")
    return Answered(answered.answer, answered.replayed)


async def _ask_all(ports: Ports, ref: AgentRef, questions: Sequence[CheckQuestion]) -> tuple[CheckAnswer, ...]:
    """All at once; each has its own time."""
    found = await asyncio.gather(*(_ask(ports, ref, question) for question in questions))
    return tuple(answer for answer in found if answer is not None)


async def _ask(ports: Ports, ref: AgentRef, question: CheckQuestion) -> CheckAnswer | None:
    try:
        async with asyncio.timeout(question.seconds):
            fetched = await ports.checks.post(
                question.url,
                question.body,
                tenant=ref.tenant,
                agent=ref.agent,
                most_bytes=MOST_ANSWER,
                headers=_HEADERS,
            )
        signature = b64decode(fetched.headers.get(SIGNATURE, ""), validate=True)
    except (TimeoutError, NoAnswer, binascii.Error, ValueError) as problem:
        log.info("an external check gave no answer", extra={"tenant": ref.tenant, "problem": _word_for(problem)})
        return None
    if fetched.status != _OK or len(signature) != _BYTES_OF_SIGNATURE:
        log.info("an external check gave no answer", extra={"tenant": ref.tenant, "problem": "unsigned"})
        return None
    return CheckAnswer(hashlib.sha256(question.body).hexdigest(), fetched.body, signature)


def _word_for(problem: Exception) -> str:
    if isinstance(problem, NoAnswer):
        return problem.problem
    return "timeout" if isinstance(problem, TimeoutError) else "unsigned"
