"""The client exchanges its code for a session. What the provider proved becomes a person here, and not before."""

from custody.kit import ids
from custody.protocol.identity.sign_on import ExchangeCode, Exchanged
from custody.worker.call import Call
from identity.context import Identity
from identity.sign_on import codes, granting, people


async def exchange(identity: Identity, message: ExchangeCode, call: Call[None]) -> Exchanged:
    """A session for the person behind the code. The code is used up for good, whatever becomes of the sign-in."""
    held = await codes.use(identity, message)
    session_id, tell = ids.new_uuid(), None
    async with identity.pool.acquire() as connection, connection.transaction():
        if held.granted is not None:
            session = await granting.begin(
                connection, identity, call.origin, held.granted, held.redirect_uri, session_id
            )
        else:
            assert held.proven is not None  # noqa: S101 - a code stands for one of the two
            session, tell = await people.sign_in(
                connection, identity, call.origin, held.proven, session_id, stays=held.stays
            )
        await codes.note_session(connection, message.code, session_id)
    return Exchanged(session, tell)
