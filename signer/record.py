"""What is written about a judged order: pure translation from verdict and signature to ledger, audit and events."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from custody.chains.types import Effect
from custody.kit import clock
from custody.policies.types import Alert, Result, Verdict
from custody.protocol.messages import Outcome, Queued, Refused, Signed
from custody.transactions.ledger import Charge, Facts, Record
from signer.judging import Judging
from signer.orders import Built, Produced
from signer.proofs import ProvenAgent

if TYPE_CHECKING:
    from signer.decide import Case

_json = msgspec.json.Encoder()
_pack = msgspec.msgpack.Encoder()


def why(verdict: Verdict) -> str:
    """One sentence for people: the first reason that decided."""
    failed = [result for result in verdict.results if not result.passed]
    if not failed:
        return "Policy decided."
    if verdict.decision == "queue":
        return f"Queued for approval: {failed[0].reason}"
    return f"Refused by policy: {failed[0].reason}"


def in_window(now: datetime, hour: datetime, *, hours: int) -> bool:
    """Whether a bucket counts in a rolling window, with the edges of the statement that sums."""
    edge = (now - timedelta(hours=hours)).replace(minute=0, second=0, microsecond=0)
    return hour >= edge


def signed_outcome(case: "Case", built: Built, produced: Produced, resolved: datetime | None) -> Signed:
    """What a caller will get, once it is committed."""
    return Signed(
        tx_id=case.tx_id, kind=built.kind, tx_hash=produced.tx_hash, signature=produced.signature, raw=produced.raw,
        chain_id=built.subject.chain_id, caip2=built.subject.caip2, broadcast=built.broadcast,
        approval_id=case.claim.approval_id if case.claim else None, resolved_at=clock.iso(resolved) if resolved else None,
    )  # fmt: skip


def of_signed(
    case: "Case", facts: Facts, built: Built, verdict: Verdict, nonce: int | None, produced: Produced, outcome: Signed
) -> Record:
    """The record of a signature: with its slot, its spend and its events."""
    slot = facts.slot if facts.slot is not None and facts.slot.state == "open" else None
    hour = facts.now.replace(minute=0, second=0, microsecond=0)
    charges = {asset: amount for asset, amount in verdict.charges.items() if amount > 0}
    kept = dict(slot.charges) if slot else {}
    moved = {asset: charge for asset, charge in kept.items() if asset in charges}
    kept |= {asset: Charge(str(amount), hour) for asset, amount in charges.items()}
    takes_slot = built.kind == "evm"
    answer = _pack.encode(outcome)
    return _record(
        case, facts, built, verdict, outcome, "signed", nonce=nonce, tx_hash=produced.tx_hash, signature=produced.signature,
        signed_bytes=produced.raw, replaces_tx_id=slot.tx_id if slot else None, slot_from=slot.tx_id if slot else None,
        slot_state=("sent" if built.broadcast else "open") if takes_slot else None, slot_address=facts.address if takes_slot else None,
        slot_charges=_json.encode(kept).decode() if takes_slot else None,
        spend_assets=list(charges) or None, spend_amounts=[str(amount) for amount in charges.values()] or None,
        moved_assets=list(moved), moved_hours=[charge.hour for charge in moved.values()],
        moved_amounts=[charge.amount for charge in moved.values()],
        counts_rate=case.claim is None, answer=answer, idem_answer=answer if case.claim else None,
        action="tx.approved" if case.claim else "tx.signed",
        events=_signed_events(case, built, verdict.alerts, outcome),
    )  # fmt: skip


def of_unsigned(
    case: "Case", facts: Facts, built: Built, verdict: Verdict, judging: Judging, outcome: Outcome
) -> Record:
    """The record of an order that a person must decide, or that was refused."""
    queued = isinstance(outcome, Queued)
    return _record(
        case, facts, built, verdict, outcome, "pending_approval" if queued else "rejected",
        counts_rate=queued, approval=outcome.approval_id if isinstance(outcome, Queued) else None,
        expire_seconds=judging.auto_expire_seconds if queued else None, answer=_pack.encode(outcome),
        action="tx.queued" if queued else "tx.refused", events=_unsigned_events(case, built, outcome),
    )  # fmt: skip


def _record(
    case: "Case", facts: Facts, built: Built, verdict: Verdict, outcome: Outcome, status: str, **given: Any
) -> Record:
    caller = case.caller
    blank: dict[str, Any] = {
        "replaces_tx_id": None, "nonce": None, "tx_hash": None, "signature": None, "signed_bytes": None, "slot_from": None,
        "slot_state": None, "slot_address": None, "slot_charges": None, "spend_assets": None, "spend_amounts": None,
        "moved_assets": [], "moved_hours": [], "moved_amounts": [], "approval": None, "expire_seconds": None, "idem_answer": None,
    }  # fmt: skip
    return Record(
        **(blank | given), tx=case.tx_id, kind=built.kind, status=status, to_address=built.to_address, value=built.value,
        data=built.data, chain_id=built.subject.chain_id, caip2=built.subject.caip2, broadcast=built.broadcast,
        reference_id=built.reference_id, order_text=case.draft.order_text, digest=case.draft.digest,
        effects=_json.encode([_shown(effect) for effect in built.subject.effects]).decode(),
        policy_results=_json.encode(verdict.results).decode(), policy_version=facts.policy_version,
        fee=str(built.fee.amount) if built.fee else None,
        principal=caller.principal, route=case.key.route if case.key else None, key_hash=case.key.key_hash if case.key else None,
        fingerprint=case.key.fingerprint if case.key else None,
        actor_type="agent" if isinstance(caller, ProvenAgent) else "system",
        actor_id=caller.agent if isinstance(caller, ProvenAgent) else caller.principal,
        metadata=_json.encode(_metadata(case, built, facts, outcome)).decode(),
        origin=[case.origin.request_id, case.origin.ip, case.origin.user_agent],
    )  # fmt: skip


def _shown(effect: Effect) -> dict[str, Any]:
    """An effect as answers and approvers see it. Decisions 4."""
    shown: dict[str, Any] = {
        "kind": effect.kind, "asset": effect.asset, "amount": str(effect.amount), "from": effect.from_, "to": effect.to,
    }  # fmt: skip
    if effect.spender is not None:
        shown["spender"] = effect.spender
    if effect.unlimited:
        shown["unlimited"] = True
    if effect.label is not None:
        shown["label"] = effect.label
    return shown


def _metadata(case: "Case", built: Built, facts: Facts, outcome: Outcome) -> dict[str, Any]:
    data: dict[str, Any] = {
        "agentId": case.ref.agent,
        "kind": built.kind,
        "policyVersion": facts.policy_version,
        "digest": case.draft.digest.hex(),
    }
    if isinstance(outcome, Signed):
        data["txHash"] = outcome.tx_hash
    if isinstance(outcome, Queued):
        data["approvalId"] = outcome.approval_id
    return data


def _money(built: Built) -> dict[str, Any]:
    return {"to": built.to_address, "value": built.value, "chainId": built.subject.chain_id}


def _signed_events(case: "Case", built: Built, alerts: tuple[Alert, ...], outcome: Signed) -> str:
    signed = {"txId": case.tx_id, "txHash": outcome.tx_hash, **_money(built), "broadcast": built.broadcast}
    events: list[dict[str, Any]] = []
    if case.claim is not None:
        events.append(
            {"event": "tx.approved", "data": {"approvalId": case.claim.approval_id, **signed, "resolvedBy": "manual"}}
        )
    events.append({"event": "tx.signed", "data": signed})
    for alert in alerts:
        data = {
            "window": alert.window,
            "asset": alert.asset,
            "spent": str(alert.spent),
            "limit": str(alert.limit),
            "percent": alert.percent,
        }
        events.append({"event": "spend.threshold", "data": data | {"txId": case.tx_id}})
    return _json.encode(events).decode()


def _unsigned_events(case: "Case", built: Built, outcome: Outcome) -> str:
    if isinstance(outcome, Queued):
        data = {
            "approvalId": outcome.approval_id,
            "txId": case.tx_id,
            **_money(built),
            "policyResults": outcome.results,
        }
        return _json.encode([{"event": "tx.pending", "data": data}]).decode()
    assert isinstance(outcome, Refused)  # noqa: S101 - the two outcomes without a signature
    failed: list[Result] = [result for result in outcome.results if not result.passed]
    data = {"txId": case.tx_id, "to": built.to_address, "value": built.value, "failedPolicies": failed}
    # Coalesced to one a minute per agent and rule, so that a mad agent does not flood the webhooks.
    mark = "policy.violation:" + ",".join(sorted(result.policy_id or result.type for result in failed))[:500]
    return _json.encode([{"event": "policy.violation", "data": data, "mark": mark}]).decode()
