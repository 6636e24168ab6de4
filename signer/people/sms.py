"""Codes by text message, through the api's sender; the signer makes them and names the number. Decisions 5."""

from typing import Any

from custody.identity.addresses import phone_number
from custody.kit import clock
from custody.protocol.messages import ConfirmSms, Done, EnrolSms, NewSmsCode, Outcome
from signer.context import Ask, Signer
from signer.people import attempts, codes, enrolments, factors, recovery, sessions
from signer.people.codes import CodeInvalid
from signer.people.enrolments import Enrolment
from signer.proofs import ProvenSession

HOUR = 3600
SENDS_PER_HOUR = 5


async def enrol(signer: Signer, message: EnrolSms, ask: Ask[ProvenSession]) -> Outcome:
    """A code for a number; TooManyAttempts where the person, or this number, had five within the hour."""
    user, phone = ask.caller.user, phone_number(message.phone)
    factors.need(ask)
    # A number is not yet anybody's: its limit keeps strangers from ringing it, and its owner's own codes count apart.
    await _count_send(signer, f"sms-enrol-send:{user}")
    await _count_send(signer, f"sms-enrol:{phone}")
    async with factors.changing(signer, ask) as connection:
        await enrolments.begin(connection, signer, user, "sms", Enrolment(phone))
    return await _fresh(signer, _enrolling(user, phone), phone)


async def confirm(signer: Signer, message: ConfirmSms, ask: Ask[ProvenSession]) -> Outcome:
    """The number counts from now on, in place of the one before; the session has shown it."""
    user = ask.caller.user
    factors.need(ask)
    async with signer.pool.acquire() as connection:
        phone = (await enrolments.find(connection, signer, user, "sms")).subject
    await factors.count(signer, "sms", user)
    mac = await codes.look(signer, "sms", _enrolling(user, phone), message.code)
    async with factors.changing(signer, ask) as connection:
        await codes.use(connection, "sms", _enrolling(user, phone), mac)
        if (await enrolments.find(connection, signer, user, "sms")).subject != phone:
            raise CodeInvalid
        await enrolments.end(connection, user, "sms")
        await factors.put(connection, signer, user, "sms", phone)
        await factors.forget(connection, "sms", user)
        await factors.changed(connection, ask, "factor.enrolled", "factor", "sms")
        made = await recovery.beside(connection, signer, user)
        return Done(await sessions.raised(connection, signer, ask, "sms") | made)


async def new_code(signer: Signer, message: NewSmsCode, ask: Ask[ProvenSession]) -> Outcome:
    """A code for the person's number; TooManyAttempts where there were five within the hour."""
    user = ask.caller.user
    async with signer.pool.acquire() as connection:
        phone = await factors.find(connection, signer, user, "sms")
    if phone is None:
        raise factors.FactorAbsent
    await _count_send(signer, f"sms-send:{user}")
    return await _fresh(signer, _showing(user, phone), phone)


async def step_up(signer: Signer, ask: Ask[ProvenSession], code: str) -> dict[str, Any]:
    """The session after the code that was sent, which this uses up."""
    user = ask.caller.user
    await factors.count(signer, "sms", user)
    async with signer.pool.acquire() as connection:
        phone = await factors.find(connection, signer, user, "sms")
    if phone is None:
        raise CodeInvalid
    mac = await codes.look(signer, "sms", _showing(user, phone), code)
    async with signer.pool.acquire() as connection, connection.transaction():
        await factors.lock(connection, user)
        await codes.use(connection, "sms", _showing(user, phone), mac)
        if await factors.find(connection, signer, user, "sms") != phone:
            raise CodeInvalid
        await factors.forget(connection, "sms", user)
        return await sessions.raised(connection, signer, ask, "sms")


async def _count_send(signer: Signer, subject: str) -> None:
    """Said aloud, other than by e-mail: who asks is signed in, and learns of nobody but himself."""
    await attempts.count(signer, subject, SENDS_PER_HOUR, HOUR)


async def _fresh(signer: Signer, subject: str, phone: str) -> Outcome:
    code, expires_at = await codes.put(signer, "sms", subject)
    return Done({"phone": phone, "code": code, "expiresAt": clock.iso(expires_at)})


def _enrolling(user: str, phone: str) -> str:
    """A code that shows a new number is another than one that shows the person: neither does for the other."""
    return f"enrol:{user}:{phone}"


def _showing(user: str, phone: str) -> str:
    return f"step-up:{user}:{phone}"
