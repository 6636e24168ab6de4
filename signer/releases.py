"""An order that waited for its time, and that nobody stopped: signed without a person.

The scheduler only says which one. Whether its time is over is the database's to know, and the signer judges it again by
today's rules: nothing but rules `delay` may have held it back, and a longer one counts from the request. So approve,
deny and this one are decided in one place: behind the agent's row, by who finds the item pending.
"""

from typing import ClassVar, Final

from custody.kit.answers import Answered
from custody.kit.refs import AgentRef
from custody.protocol.signer.orders import Moved, Release
from custody.protocol.signer.outcomes import Refused, Signed
from custody.worker.call import Call
from custody.worker.proven import ProvenSystem
from signer import record
from signer.approvals import claim_of, draft_of
from signer.approved import Approved
from signer.context import Signer
from signer.delays import released_until
from signer.guarded_write import Unclaimed
from signer.signing_attempt import Judged, SigningAttempt, Step
from signer.together import settle

_READ = "SELECT *, service_now() AS now FROM approval_read($1, $2, NULL, NULL)"
_ACTOR: Final = "delay"


class Released(Approved):
    """Judged as if nobody had decided it, but for the time that it waited; what is not signed then goes on waiting."""

    is_approved: ClassVar[bool] = False
    is_release: ClassVar[bool] = True

    def queue(self, judged: Judged) -> Step:
        """Write nothing: a person must decide it."""
        verdict = judged.verdict
        return Answered(Refused(judged.attempt.tx_id, list(verdict.results), record.why(verdict)))


async def release(signer: Signer, message: Release, call: Call[None]) -> Moved:
    """Sign one item if it is pending, its time is over and only that held it back; else `unchanged`."""
    async with signer.pool.acquire() as connection:
        row = await connection.fetchrow(_READ, message.tenant, message.approval)
    if row is None or row["status"] != "pending" or row["expired"] or not row["releases"]:
        return Moved("unchanged")
    if not row["release_at"].timestamp() <= row["now"].timestamp() < released_until(row["release_at"]):
        return Moved("unchanged")
    if signer.claims.is_claimed(message.approval):
        # It was decided already: what lets it wait again was put back in the database.
        return Moved("unchanged")
    ref = AgentRef(message.tenant, row["agent_id"])
    kind, draft = await draft_of(signer, ref, row, message.prepared)
    # No caller and no Idempotency-Key: what is asked twice finds the item resolved.
    asked = Call(ProvenSystem(message.tenant, _ACTOR), call.origin, None)
    way = Released(signer, claim_of(row), None)
    attempt = SigningAttempt(ref=ref, tx_id=str(row["tx_id"]), kind=kind, draft=draft, call=asked, way=way)
    try:
        done = await settle(signer, ref, lambda: attempt)
    except Unclaimed:
        # Somebody else was faster, or it was frozen in between.
        return Moved("unchanged")
    return Moved("released" if isinstance(done.answer, Signed) else "unchanged")
