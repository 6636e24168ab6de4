"""The client exchanges its code for a session. What the provider proved becomes a person here, and not before."""

from custody.kit import ids
from custody.protocol.identity.sign_on import ExchangeCode, Exchanged
from custody.worker.call import Call
from identity.context import Identity
from identity.sign_on import codes, people


async def exchange(identity: Identity, message: ExchangeCode, call: Call[None]) -> Exchanged:
    """A session for the person behind the code. The code is used up for good, whatever becomes of the sign-in."""
    proven, stays = await codes.use(identity, message)
    session_id = ids.new_uuid()
    async with identity.pool.acquire() as connection, connection.transaction():
        session, tell = await people.sign_in(connection, identity, call.origin, proven, session_id, stays=stays)
        await codes.note_session(connection, message.code, session_id)
    return Exchanged(session, tell)
