"""A batch of calls that an agent asks for: it waits as an intent for a person, unless a rule refuses it."""

from datetime import timedelta
from typing import Any

import msgspec

from custody.intents import payloads
from custody.intents.types import DEFAULT_TTL_SECONDS
from custody.protocol.signer.outcomes import Proposed
from custody.worker.act import act
from custody.worker.idempotency import pack
from signer import record
from signer.authorized import Authorized
from signer.context import Signer
from signer.intents import seals
from signer.intents.sealed import Sealed
from signer.ledger import ProposalRecord
from signer.orders.evm_calls import CallsDraft
from signer.signed_request import Evidence
from signer.signing_attempt import Judged, Step, ToWrite
from signer.signing_state import SigningState


class Proposal(Authorized):
    """A batch of calls, judged now to say no at once; whatever the amounts, a person authorises it."""

    def __init__(self, signer: Signer, evidence: Evidence, tx_ids: tuple[str, ...]) -> None:
        super().__init__(signer, evidence)
        self._tx_ids = tx_ids

    def sign(self, judged: Judged) -> Step:
        """Have it wait: no rule lets a batch go without a person."""
        return self._propose(judged, "A batch of calls is for a person to authorise.")

    def queue(self, judged: Judged) -> Step:
        """Have it wait."""
        return self._propose(judged, record.why(judged.verdict))

    def _propose(self, judged: Judged, why_not: str) -> ToWrite:
        outcome = Proposed(judged.attempt.tx_id, list(judged.verdict.results), why_not)
        return ToWrite(judged.facts, _intent_of(self._signer, judged, self._tx_ids, outcome), outcome)


def _intent_of(signer: SigningState, judged: Judged, tx_ids: tuple[str, ...], outcome: Proposed) -> ProposalRecord:
    attempt, facts, draft = judged.attempt, judged.facts, judged.attempt.draft
    if not isinstance(draft, CallsDraft):
        raise TypeError("only a batch of calls becomes an intent by itself")
    text = payloads.text_of("wallet_action", draft.order)
    answer = pack(outcome)
    intent = Sealed(
        tenant=attempt.ref.tenant,
        id=attempt.tx_id,
        agent=attempt.ref.agent,
        incarnation=facts.incarnation,
        type="wallet_action",
        payload=text,
        digest=payloads.digest_of("wallet_action", text),
        status="pending",
        created_by=f"agent:{attempt.ref.agent}",
        tx_ids=tx_ids,
        expires_at=facts.now + timedelta(seconds=DEFAULT_TTL_SECONDS),
    )
    results = msgspec.json.encode(outcome.results).decode()
    kept = answer if draft.reference_id is not None else None
    row = seals.new_row(signer, intent, facts.now, draft.reference_id)._replace(results=results, answer=kept)
    said: dict[str, Any] = seals.log_fields(intent)
    if judged.authorization is not None:
        said["authorization"] = msgspec.Raw(judged.authorization.encode())
    done = act(attempt.call, answer, agent=attempt.ref.agent, **said)
    return ProposalRecord(row, seals.event(intent), seals.ROW_BYTES + len(text) + len(results), done)
