"""The end of an approval that nobody decided in time. Spec 1/3.2, decisions 4 (expiry).

The scheduler only says which one; whether its time is up is the database's to know, in the statement that ends it. So
approve, deny and this one are decided in one place: behind the agent's row, by who finds the item pending.
"""

from custody.protocol.messages import Done, Expire, Outcome
from signer.context import Ask, Signer
from signer.decide import Busy
from signer.turns import TooManyWaiting

_AGENT_OF = "SELECT agent_id FROM approval_read($1, $2, NULL, NULL)"
_EXPIRE = "SELECT expire_write($1, $2, $3)"


async def expire(signer: Signer, message: Expire, ask: Ask[None]) -> Outcome:
    """End one item if it is pending and due; `unchanged` if it is decided, not due, or not there."""
    async with signer.pool.acquire() as connection:
        agent = await connection.fetchval(_AGENT_OF, message.tenant, message.approval)
    if agent is None:
        return Done({"result": "unchanged"})
    try:
        async with signer.turns.turn_of(message.tenant, agent), signer.pool.acquire() as connection:
            result = await connection.fetchval(_EXPIRE, message.tenant, message.approval, ask.origin_row)
    except TooManyWaiting:
        raise Busy from None
    return Done({"result": result})
