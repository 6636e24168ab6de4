"""Sign-in with a code by e-mail. The api mails it, so that much rests on the api's word. Decisions 5."""

from datetime import timedelta

from custody.identity.addresses import normalised_email
from custody.kit import clock
from custody.protocol.messages import Done, NewEmailCode, Outcome, SignInWithEmail
from signer.context import Ask, Signer
from signer.people import attempts, codes, persons, sessions

HOUR = 3600
SENDS_PER_HOUR = 5
GUESSES_PER_HOUR = 10


async def new_code(signer: Signer, message: NewEmailCode, ask: Ask[None]) -> Outcome:
    """A code for an address; none where it had five within the hour, which nobody is told but the api."""
    address = normalised_email(message.email)
    if not await attempts.is_within(signer, f"email-send:{address}", SENDS_PER_HOUR, HOUR):
        until = clock.now() + timedelta(seconds=codes.CODE_SECONDS)
        return Done({"email": address, "code": None, "expiresAt": clock.iso(until)})
    code, expires_at = await codes.put(signer, "email", address)
    return Done({"email": address, "code": code, "expiresAt": clock.iso(expires_at)})


async def sign_in(signer: Signer, message: SignInWithEmail, ask: Ask[None]) -> Outcome:
    """A session for whoever reads this address. The first one makes a user and a tenant of his own."""
    address = normalised_email(message.email)
    subject = f"email:{address}"
    await attempts.count(signer, subject, GUESSES_PER_HOUR, HOUR)
    mac = await codes.look(signer, "email", address, message.code)
    # For good, whatever becomes of the sign-in.
    async with signer.pool.acquire() as connection, connection.transaction():
        await codes.use(connection, "email", address, mac)
        await attempts.forget(connection, subject)
    async with signer.pool.acquire() as connection, connection.transaction():
        user = await persons.find_or_make(connection, signer, "email", address)
        return Done(
            await sessions.begin(
                connection, signer, ask.origin, user, tenant=message.tenant, provider="email", amr=("email",)
            )
        )
