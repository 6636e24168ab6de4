"""The intent of a batch of calls, as the path of orders writes it."""

from datetime import timedelta
from typing import Any

import msgspec

from custody.intents import payloads
from custody.intents.types import DEFAULT_TTL_SECONDS
from custody.protocol.signer.intents import Proposed
from custody.worker.act import act
from custody.worker.idempotency import packed
from signer.intents import seals
from signer.intents.sealed import Sealed
from signer.ledger import ProposalRecord
from signer.orders.evm_calls import CallsDraft
from signer.record import Judged
from signer.signing_state import SigningState


def of_calls(signer: SigningState, judged: Judged, tx_ids: tuple[str, ...], outcome: Proposed) -> ProposalRecord:
    """The intent of a batch that an agent asked for."""
    attempt, facts, draft = judged.attempt, judged.facts, judged.attempt.draft
    if not isinstance(draft, CallsDraft):
        raise TypeError("only a batch of calls becomes an intent by itself")
    text = payloads.text_of("wallet_action", draft.order)
    answer = packed(outcome)
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
    said: dict[str, Any] = seals.told(intent)
    if judged.authorization is not None:
        said["authorization"] = msgspec.Raw(judged.authorization.encode())
    done = act(attempt.call, answer, agent=attempt.ref.agent, **said)
    return ProposalRecord(row, seals.event(intent), seals.ROW_BYTES + len(text) + len(results), done)
