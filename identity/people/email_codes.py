"""Sign-in with a code by e-mail. The api mails it, so that much rests on the api's word."""

from datetime import timedelta

from custody.identity.addresses import normalised_email
from custody.kit import clock
from custody.protocol.identity.sessions import SignedIn
from custody.protocol.identity.sign_in import EmailCode, NewEmailCode, SignInWithEmail
from custody.worker.call import Call
from identity.context import Identity
from identity.people import attempts, codes, registration, sessions

HOUR = 3600
SENDS_PER_HOUR = 5
GUESSES_PER_HOUR = 10


async def new_code(identity: Identity, message: NewEmailCode, call: Call[None]) -> EmailCode:
    """A code for an address; none where it had five within the hour, which nobody is told but the api."""
    address = normalised_email(message.email)
    if not await attempts.is_within(identity, f"email-send:{address}", SENDS_PER_HOUR, HOUR):
        until = clock.now() + timedelta(seconds=codes.CODE_SECONDS)
        return EmailCode(address, None, clock.iso(until))
    code, expires_at = await codes.put(identity, "email", address)
    return EmailCode(address, code, clock.iso(expires_at))


async def sign_in(identity: Identity, message: SignInWithEmail, call: Call[None]) -> SignedIn:
    """A session for anyone who reads this address. The first one makes a user and a tenant of their own."""
    address = await prove(identity, message.email, message.code)
    async with identity.pool.acquire() as connection, connection.transaction():
        user = await registration.find_or_make(
            connection, identity, call.origin, "email", address, tenant=message.tenant, app=message.app
        )
        return await sessions.begin(
            connection, identity, call.origin, user, tenant=message.tenant, provider="email", amr=("email",)
        )


async def prove(identity: Identity, email: str, code: str) -> str:
    """The address, whose code this is; it is used up for good, whatever becomes of what follows."""
    address = normalised_email(email)
    subject = f"email:{address}"
    await attempts.count(identity, subject, GUESSES_PER_HOUR, HOUR)
    mac = await codes.look(identity, "email", address, code)
    async with identity.pool.acquire() as connection, connection.transaction():
        await codes.use(connection, "email", address, mac)
        await attempts.forget(connection, subject)
    return address
