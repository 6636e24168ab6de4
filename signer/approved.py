"""An order that was queued, once a person approves it, and the votes that a rule may want besides."""

from typing import Any, ClassVar

import msgspec

from custody.identity.authority import Authorized
from custody.kit.act import Act
from custody.kit.answers import Answered
from custody.policies.quorum import standing
from custody.protocol.signer.orders import Refused, Voted
from custody.webhooks.events import ApprovalVoted
from custody.webhooks.payload import emitted
from custody.worker.audited import declared
from custody.worker.idempotency import packed
from custody.worker.judging import Judging
from signer import authority, evaluate, record
from signer.ballots import Counted, Tally
from signer.ledger import Facts, VoteRecord
from signer.orders.kind import Draft
from signer.signing_attempt import Authorization, Claim, Judged, SigningAttempt, Step, ToWrite, Way
from signer.signing_state import SigningState

_read_authorized = msgspec.json.Decoder(Authorized).decode


class Approved(Way):
    """Judged again by today's rules, and claimed in the same write; what is refused stays for another decision."""

    is_approved: ClassVar[bool] = True
    is_told_by_order: ClassVar[bool] = False

    def __init__(self, signer: SigningState, claim: Claim) -> None:
        self._signer = signer
        self.claim = claim
        self.needs_authority = claim.authorization is not None

    def has_reference(self, draft: Draft) -> bool:
        """The reference was taken when the order was queued."""
        return False

    def authorize(self, attempt: SigningAttempt, facts: Facts, judging: Judging) -> Authorization | None:
        """Ask whether those who authorised it then still may."""
        earlier, ref = self.claim.authorization if self.claim else None, attempt.ref
        if earlier is None:
            return None
        whole = self._signer.authority.open(
            ref.tenant, ref.agent, facts.incarnation, facts.authority_version, facts.authority or ""
        )
        found = authority.standing(whole, _read_authorized(earlier), attempt.kind.permissions)
        return Authorization(earlier, found.policy_ids)

    def sign(self, judged: Judged) -> Step:
        """Sign it."""
        return evaluate.sign(self._signer, judged)

    def queue(self, judged: Judged) -> Step:
        """Keep the vote that is one of too few; without one nothing is written."""
        tally, verdict = judged.tally, judged.verdict
        if tally is None or tally.fresh is None:
            why = record.why_votes(verdict)
            return Answered(Refused(judged.attempt.tx_id, list(verdict.results), why, lacks_votes=True))
        have, need = standing(judged.rules.rules, tally.votes)
        outcome = Voted(tally.matter.subject, judged.attempt.tx_id, have, need, tally.given)
        return ToWrite(judged.facts, _of_voted(judged, tally, tally.fresh, outcome), outcome, tally)

    def refuse(self, judged: Judged) -> Step:
        """Write nothing."""
        verdict = judged.verdict
        return Answered(Refused(judged.attempt.tx_id, list(verdict.results), record.why(verdict)))


def _of_voted(judged: Judged, tally: Tally, fresh: Counted, outcome: Voted) -> VoteRecord:
    """The record of one vote of too few."""
    attempt, caller = judged.attempt, judged.attempt.call.caller
    answer = packed(outcome)
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
    declared("approval.voted")
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
        events=emitted(event),
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
