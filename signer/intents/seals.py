"""An intent read under its MAC, and the step that takes it on."""

from datetime import datetime
from typing import Any

import msgspec

from custody.kit.logs import logger
from custody.protocol.signer.intent_words import IntentStatus
from custody.protocol.signer.refusals import IntentAbsent, IntentTampered
from custody.webhooks import intent_events
from custody.webhooks.payload import encode_events
from custody.worker.sealing import Tampered
from signer.intents.sealed import INTENT_MAC, Sealed
from signer.intents.steps import NewRow, StepRow
from signer.signing_state import SigningState

log = logger(__name__)
# Beside the payload: the rest of the row, its indexes, its rows of the log.
ROW_BYTES = 2_048
_CODE_LENGTH = 64
_READ = "SELECT *, service_now() AS now FROM intents WHERE tenant_id = $1 AND id = $2"
EVENTS: dict[IntentStatus, type[intent_events.IntentEvent]] = {
    "pending": intent_events.IntentCreated,
    "authorized": intent_events.IntentAuthorized,
    "executed": intent_events.IntentExecuted,
    "failed": intent_events.IntentFailed,
    "rejected": intent_events.IntentRejected,
    "canceled": intent_events.IntentCanceled,
    "expired": intent_events.IntentExpired,
}


async def read(signer: SigningState, connection: Any, tenant: str, intent_id: str, *, lock: bool = False) -> Any:
    """The row, and what its MAC was found to be over; IntentAbsent, IntentTampered."""
    row = await connection.fetchrow(_READ + " FOR UPDATE" * lock, tenant, intent_id)
    if row is None:
        raise IntentAbsent
    return row, read_proven(signer, tenant, row)


def read_proven(signer: SigningState, tenant: str, row: Any) -> Sealed:
    """Read what a row says, if it is what the signer wrote."""
    intent = Sealed.of(tenant, row)
    try:
        signer.sealer.check_mac(row["mac"], INTENT_MAC, tenant, intent.content)
    except Tampered:
        log.error("intent refused: it is not what was written", extra={"tenant": tenant, "intent_id": intent.id})
        raise IntentTampered from None
    return intent


def mac_of(signer: SigningState, intent: Sealed) -> bytes:
    """The MAC of an intent in this state."""
    return signer.sealer.mac(INTENT_MAC, intent.tenant, intent.content)


def new_row(signer: SigningState, intent: Sealed, now: datetime, reference: str | None) -> NewRow:
    """The row of an intent that begins now; who knows more of it replaces the fields that no MAC is over."""
    return NewRow(
        id=intent.id,
        agent_id=intent.agent,
        incarnation=intent.incarnation,
        type=intent.type,
        resource_type=None,
        resource_id=None,
        reference_id=reference,
        payload=intent.payload,
        digest=intent.digest,
        created_by=intent.created_by,
        created_by_name=None,
        tx_ids=list(intent.tx_ids),
        results=None,
        answer=None,
        expires_at=intent.expires_at,
        created_at=now,
        mac=mac_of(signer, intent),
    )


def step(
    signer: SigningState,
    intent: Sealed,
    mac: bytes,
    status: IntentStatus,
    *,
    result: Any = None,
    reason: str | None = None,
    **decided: Any,
) -> StepRow:
    """The step from this state to another; `decided` is what the MAC is over besides."""
    after = msgspec.structs.replace(intent, status=status, **decided)
    return StepRow(
        id=intent.id,
        mac=mac,
        status=status,
        **decided,
        result=None if result is None else msgspec.json.encode(result).decode(),
        reason=reason,
        next_mac=mac_of(signer, after),
        told=msgspec.json.encode(log_fields(after)).decode(),
        events=event(after, reason or _code(result)),
    )


def log_fields(intent: Sealed) -> dict[str, Any]:
    """Name what the log is told of each step."""
    said = {"intentType": intent.type, "digest": intent.digest.hex()}
    return said if intent.agent is None else {"agentId": intent.agent, **said}


def event(intent: Sealed, why: str | None = None) -> str:
    """The event of the state that an intent has come to; none for one that is still under way."""
    if (kind := EVENTS.get(intent.status)) is None:
        return "[]"
    more = {"reason": why} if "reason" in kind.__struct_fields__ else {}
    said = kind(intent_id=intent.id, intent_type=intent.type, agent_id=intent.agent, status=intent.status, **more)
    return encode_events(said)


def _code(result: Any) -> str | None:
    """The word for what went wrong; a result that a person gave may have anything in its place."""
    code = result.get("code") if isinstance(result, dict) else None
    return code if isinstance(code, str) and len(code) <= _CODE_LENGTH else None
