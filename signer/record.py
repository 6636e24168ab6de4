"""What is written about a judged order: pure translation from verdict and signature to ledger, audit and events."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from custody.chains.types import Effect
from custody.kit import clock
from custody.policies.budgets import Budget, budgets
from custody.policies.types import Alert, Result, Verdict
from custody.policies.types import Facts as JudgedFacts
from custody.protocol.messages import Outcome, Queued, Refused, Signed
from custody.transactions.ledger import Charge, Facts, Record
from signer.draft import Built, Produced, taken_over
from signer.policies import RuleSet
from signer.proofs import ProvenAgent
from signer.sealing import fields

if TYPE_CHECKING:
    from signer.case import Case

_json = msgspec.json.Encoder()
_pack = msgspec.msgpack.Encoder()
APPROVAL_MAC = "approval-mac"


def why(verdict: Verdict) -> str:
    """One sentence for people: the first reason that decided."""
    failed = [result for result in verdict.results if not result.passed]
    if not failed:
        return "Policy decided."
    if verdict.decision == "queue":
        return f"Queued for approval: {failed[0].reason}"
    return f"Refused by policy: {failed[0].reason}"


def hour_of(moment: datetime) -> datetime:
    """The spend bucket of a moment."""
    return moment.replace(minute=0, second=0, microsecond=0)


def in_window(now: datetime, hour: datetime, *, hours: int) -> bool:
    """Whether a bucket counts in a rolling window, with the edges of the statement that sums."""
    return hour >= hour_of(now - timedelta(hours=hours))


class Judged(msgspec.Struct, frozen=True):
    """A case with everything that was decided about it."""

    case: "Case"
    facts: Facts
    built: Built
    verdict: Verdict
    rules: RuleSet
    # What the verdict was given on: the ledger's figures without the slot that the order takes over.
    against: JudgedFacts
    expire_seconds: int

    @property
    def budgets(self) -> list[Budget]:
        """Every rolling limit, before and after this order."""
        return budgets(self.rules.rules, self.built.subject, self.facts.spend, self.against, self.verdict.charges)


def signed_outcome(judged: Judged, produced: Produced) -> Signed:
    """What a caller will get, once it is committed."""
    claim, built = judged.case.claim, judged.built
    return Signed(
        tx_id=judged.case.tx_id,
        kind=built.kind,
        tx_hash=produced.tx_hash,
        signature=produced.signature,
        raw=produced.raw,
        chain_id=built.subject.chain_id,
        caip2=built.subject.caip2,
        broadcast=built.broadcast,
        approval_id=claim.approval_id if claim else None,
        resolved_at=clock.iso(judged.facts.now) if claim else None,
    )


def of_signed(
    judged: Judged, nonce: int | None, produced: Produced, outcome: Signed, seal: Callable[[bytes], bytes]
) -> Record:
    """The record of a signature: with its slot, its spend and its events, and under a MAC for its receipt."""
    claim = judged.case.claim
    charges = {asset: amount for asset, amount in judged.verdict.charges.items() if amount > 0}
    answer = _pack.encode(outcome)
    # Limits on what the order does not touch say nothing of it.
    touched = [budget for budget in judged.budgets if budget.asset in charges]
    return _record(
        judged, outcome, "signed", seal, budgets=_text(touched), nonce=nonce, tx_hash=produced.tx_hash,
        signature=produced.signature, signed_bytes=produced.raw, spend_assets=list(charges) or None,
        spend_amounts=[str(amount) for amount in charges.values()] or None, counts_rate=claim is None, answer=answer,
        idem_answer=answer if claim else None, action="tx.approved" if claim else "tx.signed",
        events=_signed_events(judged, outcome), **_slot_fields(judged, charges),
    )  # fmt: skip


def _slot_fields(judged: Judged, charges: dict[str, int]) -> dict[str, Any]:
    """The nonce slot, what it counts from now on, and what it counted before in another hour."""
    if judged.built.kind != "evm":
        return {}
    facts = judged.facts
    slot = taken_over(judged.case.draft, facts.slot)
    before = dict(slot.charges) if slot else {}
    moved = {asset: charge for asset, charge in before.items() if asset in charges}
    after = before | {asset: Charge(str(amount), hour_of(facts.now)) for asset, amount in charges.items()}
    return {
        "slot_state": "sent" if judged.built.broadcast else "open", "slot_address": facts.address,
        "slot_charges": _text(after), "slot_from": slot.tx_id if slot else None,
        "slot_was": slot.state if slot else None,
        "replaces_tx_id": slot.tx_id if slot else None, "moved_assets": list(moved),
        "moved_hours": [charge.hour for charge in moved.values()],
        "moved_amounts": [charge.amount for charge in moved.values()],
    }  # fmt: skip


def of_queued(judged: Judged, outcome: Queued, mac: bytes) -> Record:
    """The record of an order that a person must decide; its MAC keeps it from being swapped meanwhile."""
    data = {"approvalId": outcome.approval_id, "txId": outcome.tx_id, **_money(judged.built)}
    events = [{"event": "tx.pending", "data": data | {"policyResults": outcome.results}}]
    return _record(
        judged, outcome, "pending_approval", counts_rate=True, approval=outcome.approval_id, approval_mac=mac,
        expire_seconds=judged.expire_seconds, answer=_pack.encode(outcome), action="tx.queued", events=_text(events),
    )  # fmt: skip


def of_refused(judged: Judged, outcome: Refused) -> Record:
    """The record of an order that was refused: remembered, or nobody would know that it was tried."""
    failed: list[Result] = [result for result in outcome.results if not result.passed]
    # Coalesced to one a minute per agent and rule, so that a mad agent does not flood the webhooks.
    mark = "policy.violation:" + ",".join(sorted(result.policy_id or result.type for result in failed))[:500]
    money = {"to": judged.built.to_address, "value": judged.built.value}
    event = {"event": "policy.violation", "data": {"txId": outcome.tx_id, **money, "failedPolicies": failed}}
    return _record(
        judged, outcome, "rejected", counts_rate=False, answer=_pack.encode(outcome), action="tx.refused",
        events=_text([event | {"mark": mark}]),
    )  # fmt: skip


def approval_content(tenant: str, agent: str, incarnation: str, tx_id: str, approval_id: str, digest: bytes) -> bytes:
    """What the MAC of a queued order is made over."""
    return fields("approval", tenant, agent, incarnation, tx_id, approval_id, digest)


_BLANK: dict[str, Any] = dict.fromkeys(
    ("replaces_tx_id", "nonce", "tx_hash", "signature", "signed_bytes", "slot_from", "slot_state", "slot_address",
     "slot_charges", "spend_assets", "spend_amounts", "approval", "approval_mac", "expire_seconds", "idem_answer",
     "slot_was", "budgets")
) | {"moved_assets": [], "moved_hours": [], "moved_amounts": []}  # fmt: skip


def signed_content(  # noqa: PLR0913 - everything that a receipt states
    *, tenant: str, agent: str, incarnation: str, tx_id: str, kind: str, chain_id: int | None, to_address: str | None,
    value: str | None, reference_id: str | None, replaces_tx_id: str | None, digest: bytes, tx_hash: str | None,
    signature: str, policy_version: int, policy_hash: bytes, effects: str, policy_results: str, budgets: str,
    approval: str | None, by: str,
) -> bytes:  # fmt: skip
    """What the MAC of a signed order's record is made over; `by` is who acted, as the audit row names him."""
    return fields(
        "signed", tenant, agent, incarnation, tx_id, kind, "" if chain_id is None else chain_id, to_address or "",
        value or "", reference_id or "", replaces_tx_id or "", digest, tx_hash or "", signature,
        policy_version, policy_hash, effects, policy_results, budgets, approval or "", by,
    )  # fmt: skip


def _record(
    judged: Judged, outcome: Outcome, status: str, seal: Callable[[bytes], bytes] | None = None, **given: Any
) -> Record:
    case, built, caller = judged.case, judged.built, judged.case.ask.caller
    is_agent = isinstance(caller, ProvenAgent)
    route, key_hash, fingerprint = case.ask.key_row
    effects = _text([shown(effect) for effect in built.subject.effects])
    results = _text(judged.verdict.results)
    metadata = _metadata(judged, outcome)
    if seal is not None:
        # In the audit row, which no role can change: what a receipt states later is what was written here.
        content = signed_content(
            tenant=case.ref.tenant, agent=case.ref.agent, incarnation=judged.facts.incarnation, tx_id=case.tx_id,
            kind=built.kind, chain_id=built.subject.chain_id, to_address=built.to_address, value=built.value,
            reference_id=built.reference_id, replaces_tx_id=given.get("replaces_tx_id"), digest=case.draft.digest,
            tx_hash=given["tx_hash"], signature=given["signature"], policy_version=judged.facts.policy_version,
            policy_hash=judged.rules.hash, effects=effects, policy_results=results, budgets=given["budgets"],
            approval=case.claim.approval_id if case.claim else None,
            by=f"agent:{case.ref.agent}" if is_agent else caller.principal,
        )  # fmt: skip
        metadata["recordMac"] = seal(content).hex()
    return Record(
        **(_BLANK | given),
        tx=case.tx_id,
        kind=built.kind,
        status=status,
        to_address=built.to_address,
        value=built.value,
        data=built.data,
        chain_id=built.subject.chain_id,
        caip2=built.subject.caip2,
        broadcast=built.broadcast,
        reference_id=built.reference_id,
        order_text=case.draft.order_text,
        digest=case.draft.digest,
        effects=effects,
        policy_results=results,
        policy_version=judged.facts.policy_version,
        policy_hash=judged.rules.hash,
        fee=str(built.fee.amount) if built.fee else None,
        hour=hour_of(judged.facts.now),
        resolved_at=judged.facts.now if case.claim else None,
        principal=caller.principal,
        route=route,
        key_hash=key_hash,
        fingerprint=fingerprint,
        actor_type="agent" if is_agent else "system",
        actor_id=case.ref.agent if is_agent else caller.principal,
        metadata=_text(metadata),
        origin=case.ask.origin_row,
    )


def _text(value: Any) -> str:
    return _json.encode(value).decode()


def shown(effect: Effect) -> dict[str, Any]:
    """An effect as answers and approvers see it. Decisions 4."""
    found: dict[str, Any] = {
        "kind": effect.kind, "asset": effect.asset, "amount": str(effect.amount), "from": effect.from_, "to": effect.to,
    }  # fmt: skip
    if effect.spender is not None:
        found["spender"] = effect.spender
    if effect.unlimited:
        found["unlimited"] = True
    if effect.label is not None:
        found["label"] = effect.label
    return found


def _metadata(judged: Judged, outcome: Outcome) -> dict[str, Any]:
    case = judged.case
    data: dict[str, Any] = {"agentId": case.ref.agent, "kind": judged.built.kind, "digest": case.draft.digest.hex()}
    data["policyVersion"] = judged.facts.policy_version
    if isinstance(outcome, Signed):
        data["txHash"] = outcome.tx_hash
    if isinstance(outcome, Queued):
        data["approvalId"] = outcome.approval_id
    return data


def _money(built: Built) -> dict[str, Any]:
    return {"to": built.to_address, "value": built.value, "chainId": built.subject.chain_id}


def _signed_events(judged: Judged, outcome: Signed) -> str:
    built, claim = judged.built, judged.case.claim
    signed = {"txId": outcome.tx_id, "txHash": outcome.tx_hash, **_money(built), "broadcast": built.broadcast}
    events: list[dict[str, Any]] = []
    if claim is not None:
        approved = {"approvalId": claim.approval_id, **signed, "resolvedBy": "manual"}
        events.append({"event": "tx.approved", "data": approved})
    events.append({"event": "tx.signed", "data": signed})
    events += [{"event": "spend.threshold", "data": _alarm(alert, outcome)} for alert in judged.verdict.alerts]
    return _text(events)


def _alarm(alert: Alert, outcome: Signed) -> dict[str, Any]:
    figures = {"spent": str(alert.spent), "limit": str(alert.limit), "percent": alert.percent}
    return {"window": alert.window, "asset": alert.asset, **figures, "txId": outcome.tx_id}
