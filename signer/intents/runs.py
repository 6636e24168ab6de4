"""An authorised intent that is carried out by the path of every order, and claimed in the same write."""

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from custody.kit.answers import Answered
from custody.policies.moved import moves
from custody.policies.shares import shares
from custody.policies.types import Spend
from custody.protocol.signer.intent_words import IntentStatus
from custody.protocol.signer.order_refusals import ReferenceTaken
from custody.protocol.signer.outcomes import BatchSigned, NeedsPreparation, Refused, Signed
from custody.worker.idempotency import pack
from signer import evaluate, record
from signer.intents import seals
from signer.intents.sealed import Sealed
from signer.intents.steps import StepRow
from signer.ledger import Record
from signer.orders.evm import EVM_TRANSACTION
from signer.orders.evm_calls import CallsDecoded, CallsDraft, CallsFinal
from signer.orders.kind import Draft, NeedsNode
from signer.signing_attempt import Judged, Outcome, SigningAttempt, Step, ToWrite, Way
from signer.signing_state import SigningState


class IntentRun(Way):
    """Judged by today's rules; what only has to wait leaves the intent authorised."""

    is_approved: ClassVar[bool] = True
    is_told_by_order: ClassVar[bool] = False

    def __init__(self, signer: SigningState, intent: Sealed, mac: bytes) -> None:
        self._signer = signer
        self._intent = intent
        # The state that the write must find.
        self._mac = mac

    def has_reference(self, draft: Draft) -> bool:
        """Tell whether the order takes its reference: that of a batch was taken when it was proposed."""
        return not draft.is_batch

    def answer_under_reference(self, attempt: SigningAttempt, digest: bytes, answer: bytes) -> Outcome:
        """Refuse: its reference was used meanwhile, by a request that needed no intent."""
        raise ReferenceTaken

    def sign(self, judged: Judged) -> Step:
        """Sign the order, or each call of the batch, with the intent's last step."""
        if judged.attempt.draft.is_batch:
            return self._sign_batch(judged)
        done = evaluate.sign(self._signer, judged)
        if isinstance(done, ToWrite) and isinstance(done.outcome, Signed):
            return msgspec.structs.replace(done, step=self._execution(judged, [done.outcome]))
        return done

    def queue(self, judged: Judged) -> Step:
        """Write nothing: votes are missing."""
        verdict = judged.verdict
        why = record.why(verdict) if verdict.room is not None else record.why_votes(verdict)
        return Answered(Refused(judged.attempt.tx_id, list(verdict.results), why, verdict.room, lacks_votes=True))

    def refuse(self, judged: Judged) -> Step:
        """Let the intent fail; where a rate limit is full, nothing is written."""
        verdict = judged.verdict
        if verdict.room is not None:
            return Answered(Refused(judged.attempt.tx_id, list(verdict.results), record.why(verdict), verdict.room))
        done = evaluate.refuse(self._signer, judged)
        tx_id, results = judged.attempt.tx_id, list(verdict.results)
        result = {"code": "policy_refused", "txId": tx_id, "results": results, "status": "rejected"}
        return msgspec.structs.replace(done, step=self._step("failed", result))

    def _sign_batch(self, judged: Judged) -> Step:
        """One transaction for each call, each recorded as if those before it were signed already."""
        signer, attempt, facts = self._signer, judged.attempt, judged.facts
        try:
            final = attempt.kind.finish(attempt.draft, judged.decoded, facts)
        except NeedsNode:
            return Answered(NeedsPreparation())
        if not isinstance(final, CallsFinal):
            raise TypeError("only a batch of calls has parts")
        key = evaluate.open_key(signer, attempt, facts)
        parts = zip(final.parts, each(judged, self._intent.tx_ids), strict=True)
        made = [evaluate.sign_one(signer, one, part, key) for part, one in parts]
        records, signed = [one for one, _ in made], [outcome for _, outcome in made]
        answer = BatchSigned(signed)
        first, step = _answering(records[0], answer), self._execution(judged, signed)
        return ToWrite(facts, first, answer, judged.tally, tuple(records[1:]), step)

    def _execution(self, judged: Judged, signed: list[Signed]) -> StepRow:
        told = [{"txId": one.tx_id, "txHash": one.tx_hash, "status": "signed"} for one in signed]
        return self._step("executed", {"transactions": told} if judged.attempt.draft.is_batch else told[0])

    def _step(self, status: IntentStatus, result: dict[str, Any]) -> StepRow:
        return seals.step(self._signer, self._intent, self._mac, status, result=result)


def each(judged: Judged, tx_ids: tuple[str, ...]) -> list[Judged]:
    """The transactions of a batch, each judged with the others, and counted as if those before it were signed.

    A batch is refused or let through as one; what each charges, its receipt says.
    """
    attempt, draft, decoded = judged.attempt, judged.attempt.draft, judged.decoded
    if not isinstance(draft, CallsDraft) or not isinstance(decoded, CallsDecoded):
        raise TypeError("only a batch of calls has parts")
    found: list[Judged] = []
    facts, against = judged.facts, judged.against
    worths = shares(against.worth, [one.subject for one in decoded.parts])
    for tx_id, part, one, worth in zip(tx_ids, draft.parts, decoded.parts, worths, strict=True):
        own = msgspec.structs.replace(attempt, tx_id=tx_id, kind=EVM_TRANSACTION, draft=part)
        if found:
            # The key of the request is kept with the first.
            own = msgspec.structs.replace(own, call=msgspec.structs.replace(attempt.call, key=None))
        charges, against = moves(one.subject, worth), msgspec.structs.replace(against, worth=worth)
        alerts = judged.verdict.alerts if len(found) + 1 == len(draft.parts) else ()
        verdict = msgspec.structs.replace(judged.verdict, charges=charges, alerts=alerts)
        found.append(
            msgspec.structs.replace(judged, attempt=own, decoded=one, verdict=verdict, facts=facts, against=against)
        )
        spend = {asset: Spend(*sums) for asset, sums in _more(facts.spend, charges).items()}
        facts = msgspec.structs.replace(facts, spend=_more(facts.spend, charges))
        against = msgspec.structs.replace(against, spend={**against.spend, **spend})
    return found


def _more(spend: Mapping[str, tuple[int, int, int]], charges: Mapping[str, int]) -> dict[str, tuple[int, int, int]]:
    """Spend of a day, of a week and of all time with what is signed now."""
    found = dict(spend)
    for asset, amount in charges.items():
        day, week, total = spend.get(asset, (0, 0, 0))
        found[asset] = day + amount, week + amount, total + amount
    return found


def _answering(first: Record, answer: object) -> Record:
    """The first record of a batch, with the answer to the whole under the request's key."""
    return msgspec.structs.replace(first, act=first.act._replace(answer=pack(answer)))
