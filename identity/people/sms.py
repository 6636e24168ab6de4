"""Codes by text message, through the api's sender; identity makes them and names the number."""

from custody.identity.addresses import phone_number
from custody.kit import clock
from custody.protocol.identity.factors import Confirmed, ConfirmSms, EnrolSms, NewSmsCode, PhoneCode
from custody.protocol.identity.refusals import CodeInvalid, FactorAbsent
from custody.protocol.identity.sessions import SignedIn
from custody.worker.call import Call
from custody.worker.proven import ProvenSession
from identity.context import Identity
from identity.people import attempts, codes, enrolments, factors, recovery, sessions
from identity.people.enrolments import Enrolment

HOUR = 3600
SENDS_PER_HOUR = 5


async def enrol(identity: Identity, message: EnrolSms, call: Call[ProvenSession]) -> PhoneCode:
    """A code for a number; TooManyAttempts where the person, or this number, had five within the hour."""
    user, phone = call.caller.user, phone_number(message.phone)
    factors.need(call)
    # A number is not yet anybody's: its limit keeps strangers from ringing it, and its owner's own codes count apart.
    await _count_send(identity, f"sms-enrol-send:{user}")
    await _count_send(identity, f"sms-enrol:{phone}")
    async with factors.changing(identity, call) as connection:
        await enrolments.begin(connection, identity, user, "sms", Enrolment(phone))
    return await _fresh(identity, _enrolling(user, phone), phone)


async def confirm(identity: Identity, message: ConfirmSms, call: Call[ProvenSession]) -> Confirmed:
    """The number counts from now on, in place of the one before; the session has shown it."""
    user = call.caller.user
    factors.need(call)
    async with identity.pool.acquire() as connection:
        phone = (await enrolments.find(connection, identity, user, "sms")).subject
    await factors.count(identity, "sms", user)
    mac = await codes.look(identity, "sms", _enrolling(user, phone), message.code)
    async with factors.changing(identity, call) as connection:
        await codes.use(connection, "sms", _enrolling(user, phone), mac)
        if (await enrolments.find(connection, identity, user, "sms")).subject != phone:
            raise CodeInvalid
        await enrolments.end(connection, user, "sms")
        await factors.put(connection, identity, user, "sms", phone)
        await factors.forget(connection, "sms", user)
        await factors.record(connection, call, "factor.enrolled", "factor", "sms")
        made = await recovery.beside(connection, identity, user)
        return recovery.confirmation(await sessions.stepped_up(connection, identity, call, "sms"), made)


async def new_code(identity: Identity, message: NewSmsCode, call: Call[ProvenSession]) -> PhoneCode:
    """A code for the person's number; TooManyAttempts where there were five within the hour."""
    user = call.caller.user
    async with identity.pool.acquire() as connection:
        phone = await factors.find(connection, identity, user, "sms")
    if phone is None:
        raise FactorAbsent
    await _count_send(identity, f"sms-send:{user}")
    return await _fresh(identity, _showing(user, phone), phone)


async def step_up(identity: Identity, call: Call[ProvenSession], code: str) -> SignedIn:
    """The session after the code that was sent, which this uses up."""
    user = call.caller.user
    await factors.count(identity, "sms", user)
    async with identity.pool.acquire() as connection:
        phone = await factors.find(connection, identity, user, "sms")
    if phone is None:
        raise CodeInvalid
    mac = await codes.look(identity, "sms", _showing(user, phone), code)
    async with identity.pool.acquire() as connection, connection.transaction():
        await factors.lock(connection, user)
        await codes.use(connection, "sms", _showing(user, phone), mac)
        if await factors.find(connection, identity, user, "sms") != phone:
            raise CodeInvalid
        await factors.forget(connection, "sms", user)
        return await sessions.stepped_up(connection, identity, call, "sms")


async def _count_send(identity: Identity, subject: str) -> None:
    """Said aloud, other than by e-mail: who asks is signed in, and learns of nobody but themselves."""
    await attempts.count(identity, subject, SENDS_PER_HOUR, HOUR)


async def _fresh(identity: Identity, subject: str, phone: str) -> PhoneCode:
    code, expires_at = await codes.put(identity, "sms", subject)
    return PhoneCode(phone, code, clock.iso(expires_at))


def _enrolling(user: str, phone: str) -> str:
    """A code that shows a new number is another than one that shows the person: neither does for the other."""
    return f"enrol:{user}:{phone}"


def _showing(user: str, phone: str) -> str:
    return f"step-up:{user}:{phone}"
