"""An order that was queued, once a person approves it, and the votes that a rule may want besides."""

from collections.abc import Sequence
from typing import Any, ClassVar, Never

import msgspec

from custody.identity.assertions import Matter
from custody.identity.authority import Authorized
from custody.kit.act import Act
from custody.kit.answers import Answered
from custody.policies.kinds.approval_quorum import ApprovalQuorum
from custody.policies.quorum import standing
from custody.protocol.signer.outcomes import Refused, Voted
from custody.protocol.signer.refusals import ApprovalExpired, ApprovalResolved, VoteRefused
from custody.webhooks.later_events import ApprovalVoted
from custody.webhooks.payload import encode_events
from custody.worker.audited import vet
from custody.worker.idempotency import pack
from custody.worker.judging import Judging
from signer import authority, ballots, broken_quorums, evaluate, record, votes
from signer.context import Signer
from signer.delays import released_until
from signer.ledger import Facts, VoteRecord
from signer.orders.kind import Draft
from signer.signing_attempt import Authorization, Claim, Judged, SigningAttempt, Step, ToWrite, Way

_read_authorized = msgspec.json.Decoder(Authorized).decode


class Approved(Way):
    """Judged again by today's rules, and claimed in the same write; what is refused stays for another decision."""

    is_approved: ClassVar[bool] = True
    is_told_by_order: ClassVar[bool] = False

    def __init__(self, signer: Signer, claim: Claim, vote: ballots.GivenVote | None) -> None:
        self._signer = signer
        self._vote = vote
        self.claim = self._claim = claim
        self._noted = False
        self.needs_authority = claim.authorization is not None
        self.subject = ("approval", claim.approval_id)
        self.voter = None if vote is None else vote.by

    def has_reference(self, draft: Draft) -> bool:
        """The reference was taken when the order was queued."""
        return False

    def refuse_ended(self) -> Never:
        """Refuse it as one that was decided too late."""
        raise ApprovalExpired

    def authorize(self, attempt: SigningAttempt, facts: Facts, judging: Judging) -> Authorization | None:
        """Ask whether those who authorised it then still may."""
        earlier, ref = self._claim.authorization, attempt.ref
        if earlier is None:
            return None
        whole = self._signer.authority.open(
            ref.tenant, ref.agent, facts.incarnation, facts.authority_version, facts.authority or ""
        )
        found = authority.standing(whole, _read_authorized(earlier), attempt.kind.permissions, facts.now)
        return Authorization(earlier, found.policy_ids)

    def count_votes(
        self,
        attempt: SigningAttempt,
        facts: Facts,
        quorums: Sequence[ApprovalQuorum],
        read: broken_quorums.Read | None,
    ) -> ballots.Tally | None:
        """Count the votes on it, the one given now among them; VoteRefused where that one does not count."""
        if not quorums:
            if self._vote is not None:
                raise VoteRefused("No rule of this agent asks for votes now: approve without one.")
            return None
        if self._signer.claims.is_claimed(self._claim.approval_id):
            # Its votes were used: what lets it wait again was put back in the database.
            raise ApprovalResolved(
                "This approval was signed under its votes already; the agent must send a new request."
            )
        matter = Matter(
            "approval", attempt.ref.tenant, self._claim.approval_id, attempt.tx_id, attempt.draft.digest.hex()
        )
        given = read.ballots if read is not None else None
        return votes.tally(self._signer, matter, given, quorums, facts.now, self._vote)

    def sign(self, judged: Judged) -> Step:
        """Sign it."""
        return evaluate.sign(self._signer, judged)

    def queue(self, judged: Judged) -> Step:
        """Keep the vote that is one of too few; without one nothing is written."""
        tally, verdict = judged.tally, judged.verdict
        if not isinstance(tally, ballots.Tally) or tally.fresh is None:
            why = record.why_votes(verdict)
            return Answered(Refused(judged.attempt.tx_id, list(verdict.results), why, lacks_votes=True))
        have, need = standing(judged.rules.rules, tally.votes)
        outcome = Voted(self._claim.approval_id, judged.attempt.tx_id, have, need, tally.given)
        return ToWrite(judged.facts, _of_voted(judged, tally, tally.fresh, outcome), outcome, tally)

    def refuse(self, judged: Judged) -> Step:
        """Write nothing."""
        verdict = judged.verdict
        return Answered(Refused(judged.attempt.tx_id, list(verdict.results), record.why(verdict)))

    def note(self, step: ToWrite) -> None:
        """Note an order under votes, so that they serve once whatever is put back in the database."""
        if isinstance(step.record, VoteRecord):
            return
        until = step.tally.until if isinstance(step.tally, ballots.Tally) else 0
        if self._claim.times is not None:
            until = max(until, released_until(self._claim.times[1]))
            if self._signer.claims.is_claimed(self._claim.approval_id):
                # By another decision, which nobody here takes back: what waits again was put back in the database.
                raise ApprovalResolved("This approval was decided already; the agent must send a new request.")
        if until:
            self._noted = True
            self._signer.claims.claim(self._claim.approval_id, until)

    def take_back(self) -> None:
        """Take that back: nothing was written."""
        if self._noted:
            self._noted = False
            self._signer.claims.release(self._claim.approval_id)


def _of_voted(judged: Judged, tally: ballots.Tally, fresh: ballots.Counted, outcome: Voted) -> VoteRecord:
    """The record of one vote of too few."""
    attempt, caller = judged.attempt, judged.attempt.call.caller
    answer = pack(outcome)
    data: dict[str, Any] = {
        "agentId": attempt.ref.agent,
        "txId": attempt.tx_id,
        "digest": attempt.draft.digest.hex(),
        "keyId": fresh.ballot.key_id,
        "have": outcome.have,
        "need": outcome.need,
    }
    if attempt.claim is not None and attempt.claim.comment is not None:
        data["comment"] = attempt.claim.comment
    vet("approval.voted")
    event = ApprovalVoted(
        approval_id=outcome.approval_id,
        tx_id=outcome.tx_id,
        user_id=fresh.ballot.user,
        have=outcome.have,
        need=outcome.need,
    )
    return VoteRecord(
        tx=attempt.tx_id,
        digest=attempt.draft.digest,
        vote=tally.row(fresh),
        events=encode_events(event),
        answer=answer,
        act=Act(
            caller.principal,
            *attempt.call.key_row,
            answer,
            "system",
            caller.principal,
            msgspec.json.encode(data).decode(),
            attempt.call.origin_row,
        ),
    )
