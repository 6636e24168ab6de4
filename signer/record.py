"""The record of a judged order: pure translation from verdict and signature to ledger, audit and events."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from custody.chains.families import SIGNING
from custody.chains.types import Effect
from custody.kit import clock
from custody.kit.act import Act
from custody.policies.assets import BITCOIN
from custody.policies.moved import moved
from custody.policies.parts import kept
from custody.policies.types import Alert, Result, Verdict
from custody.protocol.signer.orders import Decided, Queued, Refused, Signed
from custody.transactions.backoff import RESEND
from custody.webhooks.events import (
    PolicyViolation,
    SpendThreshold,
    TxApproved,
    TxPending,
    TxSigned,
    clipped,
)
from custody.webhooks.payload import Payload, emitted
from custody.worker.audited import declared
from custody.worker.proven import ProvenAgent
from custody.worker.sealing import fields
from signer.ledger import Charge, Facts, Record
from signer.orders.kind import Draft, Final, Produced, taken_over
from signer.signing_attempt import Judged

_json = msgspec.json.Encoder()
_pack = msgspec.msgpack.Encoder()
APPROVAL_MAC = "approval-mac"
# Of a refused order the bytes are kept up to this length, and none of a longer one: what is refused is free to ask for.
MAX_REFUSED_BYTES = 2048
# Of its effects so many are kept, then.
MAX_REFUSED_EFFECTS = 16
# What an order takes beside its texts: row, indexes, places in the audit log.
_ROW_BYTES = 1024


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
    """Say whether a bucket counts in a rolling window, with the edges of the statement that sums."""
    return hour >= hour_of(now - timedelta(hours=hours))


def counted_rates(now: datetime, queued_at: datetime) -> tuple[bool, bool]:
    """Say whether an order is among those of the last hour and of the last day, with that statement's edges."""
    return queued_at >= last_hour(now), queued_at >= hour_of(now - timedelta(hours=24))


def last_hour(now: datetime) -> datetime:
    """The first minute that counts in the last hour."""
    return clock.minute_of(now - timedelta(hours=1))


class _Texts(msgspec.Struct, frozen=True):
    """The order and what was found in it, as the record keeps them."""

    order: str
    data: str | None
    effects: str
    results: str
    moved: str | None

    def __repr__(self) -> str:
        return "_Texts()"


class _Release(msgspec.Struct, frozen=True, kw_only=True):
    """The record's part about a signature; the defaults are those of an order without one."""

    nonce: int | None = None
    coins: tuple[tuple[bytes, int], ...] = ()
    tx_hash: str | None = None
    signature: str | None = None
    signed_bytes: bytes | None = None
    budgets: str | None = None
    spend_assets: list[str] | None = None
    spend_amounts: list[str] | None = None
    mac: bytes | None = None
    votes: str | None = None

    def __repr__(self) -> str:
        return "_Release()"


class _NonceSlot(msgspec.Struct, frozen=True, kw_only=True):
    """The nonce slot, what it counts from now on, and what it counted before in another hour."""

    state: str | None = None
    address: str | None = None
    charges: str | None = None
    # The order that had the slot, and how far it had come.
    taken_from: str | None = None
    was: str | None = None
    moved: Mapping[str, Charge] = {}
    # The newest earlier order that can't happen beside this one.
    replaces: str | None = None


class _Wait(msgspec.Struct, frozen=True):
    """The record's part about an approval that is waited for."""

    approval: str | None = None
    mac: bytes | None = None
    expire_seconds: int | None = None


_NO_KEY = (None, None, None)
_UNSIGNED, _NO_SLOT, _NO_WAIT = _Release(), _NonceSlot(), _Wait()


def why_votes(verdict: Verdict) -> str:
    """One sentence for people: how many votes are missing, and what to do."""
    failed = next(result for result in verdict.results if not result.passed)
    return f"This order needs votes: {failed.reason}. A named approver must vote with their own key."


def signed_outcome(judged: Judged, produced: Produced) -> Signed:
    """Make what a caller will get, once it is committed."""
    claim, draft, subject = judged.attempt.claim, judged.attempt.draft, judged.decoded.subject
    return Signed(
        tx_id=judged.attempt.tx_id,
        kind=judged.attempt.kind.name,
        tx_hash=produced.tx_hash,
        signature=produced.signature,
        raw=produced.raw,
        chain_id=subject.chain_id,
        caip2=subject.caip2,
        broadcast=draft.broadcast,
        approval_id=claim.approval_id if claim else None,
        resolved_at=clock.iso(judged.facts.now) if claim else None,
        left=judged.left if draft.action and claim is None else None,
        psbt=produced.psbt,
    )


def of_signed(
    judged: Judged, final: Final, produced: Produced, outcome: Signed, seal: Callable[[bytes], bytes]
) -> Record:
    """The record of a signature: with its slot, its spend and its events, and under a MAC for its receipt."""
    claim = judged.attempt.claim
    charges = {asset: amount for asset, amount in judged.verdict.charges.items() if amount > 0}
    answer = _pack.encode(outcome)
    # Limits on what the order does not touch say nothing of it.
    touched = _text([budget for budget in judged.budgets if budget.asset in charges])
    slot, texts = _slot(judged, charges), _texts(judged)
    spend = kept(charges)
    release = _Release(
        nonce=final.nonce,
        coins=final.coins,
        tx_hash=produced.tx_hash,
        signature=produced.signature,
        signed_bytes=produced.raw,
        budgets=touched,
        spend_assets=list(spend) or None,
        spend_amounts=[str(amount) for amount in spend.values()] or None,
        mac=seal(_statement(judged, texts, produced, slot.replaces, touched)),
        votes=judged.tally.text() if judged.tally else None,
    )
    return _record(
        judged,
        outcome,
        texts,
        status="signed",
        counts_rate=claim is None,
        answer=answer,
        action=declared("tx.approved" if claim else "tx.signed"),
        events=_signed_events(judged, outcome),
        release=release,
        slot=slot,
    )


def counted_before(draft: Draft, facts: Facts) -> Mapping[str, Charge]:
    """Find what the ledger has of this very spend already: of the slot it takes over, or of the same transaction."""
    if (slot := taken_over(draft, facts.slot)) is not None:
        return slot.charges
    if facts.psbt is not None and facts.psbt.counted is not None:
        return {BITCOIN: facts.psbt.counted}
    return {}


def _slot(judged: Judged, charges: dict[str, int]) -> _NonceSlot:
    facts, draft = judged.facts, judged.attempt.draft
    before = counted_before(draft, facts)
    if draft.nonce is None:
        return _NonceSlot(moved=before, replaces=facts.psbt.conflict) if facts.psbt is not None else _NO_SLOT
    slot = taken_over(draft, facts.slot)
    # All of it, mostly: whatever the slot counted, the order counts at least as much.
    recharged = {asset: charge for asset, charge in before.items() if asset in charges}
    stays = {asset: charge for asset, charge in before.items() if asset not in charges}
    after = stays | {asset: Charge(str(amount), hour_of(facts.now)) for asset, amount in kept(charges).items()}
    return _NonceSlot(
        state="sent" if draft.broadcast else "open",
        address=facts.address,
        charges=_text(after),
        taken_from=slot.tx_id if slot else None,
        was=slot.state if slot else None,
        moved=recharged,
        replaces=slot.tx_id if slot else None,
    )


def of_queued(judged: Judged, outcome: Queued, mac: bytes) -> Record:
    """The record of an order that a person must decide; its MAC keeps it from being swapped meanwhile."""
    pending = TxPending(**_event_fields(judged), approval_id=outcome.approval_id, policy_results=outcome.results)
    return _record(
        judged,
        outcome,
        _texts(judged),
        status="pending_approval",
        counts_rate=True,
        answer=_pack.encode(outcome),
        action=declared("tx.queued"),
        events=emitted(pending),
        wait=_Wait(outcome.approval_id, mac, judged.expire_seconds),
    )


def of_refused(judged: Judged, outcome: Refused) -> Record:
    """The record of an order that was refused: remembered, or nobody would know that it was tried."""
    failed: list[Result] = [result for result in outcome.results if not result.passed]
    # Coalesced to one a minute per agent and rule, so that a mad agent does not flood the webhooks.
    mark = "policy.violation:" + ",".join(sorted(result.policy_id or result.type for result in failed))[:500]
    draft = judged.attempt.draft
    violation = PolicyViolation(tx_id=outcome.tx_id, to=draft.to_address, value=draft.value, failed_policies=failed)
    return _record(
        judged,
        outcome,
        _refused_texts(judged),
        status="rejected",
        counts_rate=False,
        answer=_pack.encode(outcome),
        action=declared("tx.refused"),
        events=emitted(violation, mark=mark),
    )


def approval_content(  # noqa: PLR0913, PLR0917 - everything that must not change while it waits
    tenant: str,
    agent: str,
    incarnation: str,
    tx_id: str,
    approval_id: str,
    digest: bytes,
    authorization: str | None,
) -> bytes:
    """Encode what the MAC of a queued order is made over."""
    return fields("approval", tenant, agent, incarnation, tx_id, approval_id, digest, *_fields_of(authorization))


def _fields_of(authorization: str | None) -> tuple[str, ...]:
    """Only where there is one: what was made before there were any stays as it is."""
    return () if authorization is None else ("authorization", authorization)


def signed_content(  # noqa: PLR0913 - everything that a receipt states
    *,
    tenant: str,
    agent: str,
    incarnation: str,
    tx_id: str,
    kind: str,
    chain_id: int | None,
    to_address: str | None,
    value: str | None,
    reference_id: str | None,
    replaces_tx_id: str | None,
    digest: bytes,
    tx_hash: str | None,
    signature: str,
    policy_version: int,
    policy_hash: bytes,
    effects: str,
    policy_results: str,
    budgets: str,
    approval: str | None,
    by: str,
    votes: str | None = None,
    authorization: str | None = None,
) -> bytes:
    """Encode what a signed order's MAC is made over; `by` is who acted, as the audit row names them."""
    # Appended only where there are some: what was signed before there were votes has the content that it had.
    voted = fields("votes", votes) if votes is not None else b""
    return (
        fields(
            "signed",
            tenant,
            agent,
            incarnation,
            tx_id,
            kind,
            "" if chain_id is None else chain_id,
            to_address or "",
            value or "",
            reference_id or "",
            replaces_tx_id or "",
            digest,
            tx_hash or "",
            signature,
            policy_version,
            policy_hash,
            effects,
            policy_results,
            budgets,
            approval or "",
            by,
        )
        + voted
        + fields(*_fields_of(authorization))
    )


def _texts(judged: Judged) -> _Texts:
    draft, effects = judged.attempt.draft, judged.decoded.subject.effects
    return _Texts(
        draft.order_text,
        draft.data,
        _text([shown(effect) for effect in effects]),
        _text(judged.verdict.results),
        _movement(judged),
    )


def _movement(judged: Judged) -> str | None:
    """Note what the order moves by itself, for those who look later: the ledger counts more where it takes a slot."""
    amounts = kept(moved(judged.decoded.subject))
    return _text({asset: str(amount) for asset, amount in amounts.items()}) if amounts else None


def _refused_texts(judged: Judged) -> _Texts:
    texts = _texts(judged)
    # A batch is no order: who looks at old ones reads none there.
    if len(texts.order) <= MAX_REFUSED_BYTES and not judged.attempt.draft.is_batch:
        return texts
    effects = judged.decoded.subject.effects[:MAX_REFUSED_EFFECTS]
    return _Texts("", None, _text([shown(effect) for effect in effects]), texts.results, None)


def _statement(judged: Judged, texts: _Texts, produced: Produced, replaces: str | None, budgets: str) -> bytes:
    """Encode what a receipt states later of an order that is signed now."""
    attempt, draft = judged.attempt, judged.attempt.draft
    return signed_content(
        tenant=attempt.ref.tenant,
        agent=attempt.ref.agent,
        incarnation=judged.facts.incarnation,
        tx_id=attempt.tx_id,
        kind=attempt.kind.name,
        chain_id=judged.decoded.subject.chain_id,
        to_address=draft.to_address,
        value=draft.value,
        reference_id=draft.reference_id,
        replaces_tx_id=replaces,
        digest=draft.digest,
        tx_hash=produced.tx_hash,
        signature=produced.signature,
        policy_version=judged.facts.policy_version,
        policy_hash=judged.rules.hash,
        effects=texts.effects,
        policy_results=texts.results,
        budgets=budgets,
        approval=attempt.claim.approval_id if attempt.claim else None,
        by=f"agent:{attempt.ref.agent}"
        if isinstance(attempt.call.caller, ProvenAgent)
        else attempt.call.caller.principal,
        authorization=judged.authorization,
        votes=judged.tally.text() if judged.tally else None,
    )


def _record(  # noqa: PLR0913 - the three kinds of outcomes differ in all of these
    judged: Judged,
    outcome: Decided,
    texts: _Texts,
    *,
    status: str,
    counts_rate: bool,
    answer: bytes,
    action: str,
    events: str,
    release: _Release = _UNSIGNED,
    slot: _NonceSlot = _NO_SLOT,
    wait: _Wait = _NO_WAIT,
) -> Record:
    attempt, decoded, caller = judged.attempt, judged.decoded, judged.attempt.call.caller
    draft, subject = attempt.draft, decoded.subject
    is_agent = isinstance(caller, ProvenAgent)
    metadata = _metadata(judged, outcome)
    if release.mac is not None:
        # In the audit row, which no role can change: what a receipt states later is what was written here.
        metadata["recordMac"] = release.mac.hex()
    about = _text(metadata)
    said = (texts.order, texts.data, texts.effects, texts.moved, texts.results, about, events)
    stored = (*said, answer, release.signed_bytes)
    recharged = slot.moved.values()
    return Record(
        tx=attempt.tx_id,
        kind=attempt.kind.name,
        family=attempt.kind.keys.family,
        status=status,
        to_address=draft.to_address,
        value=draft.value,
        data=texts.data,
        chain_id=subject.chain_id,
        caip2=subject.caip2,
        broadcast=draft.broadcast,
        reference_id=draft.reference_id,
        replaces_tx_id=slot.replaces,
        order_text=texts.order,
        digest=draft.digest,
        effects=texts.effects,
        moved=texts.moved,
        policy_results=texts.results,
        policy_version=judged.facts.policy_version,
        policy_hash=judged.rules.hash,
        budgets=release.budgets,
        nonce=release.nonce,
        fee=str(decoded.fee.amount) if decoded.fee else None,
        tx_hash=release.tx_hash,
        signature=release.signature,
        signed_bytes=release.signed_bytes,
        answer=answer,
        stored_bytes=_ROW_BYTES + sum(len(text) for text in stored if text is not None),
        slot_from=slot.taken_from,
        slot_was=slot.was,
        slot_state=slot.state,
        slot_address=slot.address,
        slot_charges=slot.charges,
        spend_assets=release.spend_assets,
        spend_amounts=release.spend_amounts,
        moved_assets=list(slot.moved),
        moved_hours=[charge.hour for charge in recharged],
        moved_amounts=[charge.amount for charge in recharged],
        hour=hour_of(judged.facts.now),
        resolved_at=judged.facts.now if attempt.claim else None,
        counts_rate=counts_rate,
        approval=wait.approval,
        approval_mac=wait.mac,
        expire_seconds=wait.expire_seconds,
        resend_seconds=RESEND.first,
        action=action,
        events=events,
        authorization_text=judged.authorization,
        wallet_action=_wallet_action(draft, outcome),
        votes_text=release.votes,
        unsigned_txid=draft.psbt.unsigned_txid if draft.psbt is not None and release.coins else None,
        spent_txids=[txid for txid, _ in release.coins] or None,
        spent_vouts=[vout for _, vout in release.coins] or None,
        act=Act(
            caller.principal,
            # A refusal that time lifts leaves the key free: a retry with it is judged again.
            *(_NO_KEY if isinstance(outcome, Refused) and outcome.room is not None else attempt.call.key_row),
            answer if attempt.claim else None,
            "agent" if is_agent else "system",
            attempt.ref.agent if is_agent else caller.principal,
            about,
            attempt.call.origin_row,
        ),
    )


def _wallet_action(draft: Draft, outcome: Decided) -> str | None:
    if (action := draft.action) is None:
        return None
    if isinstance(outcome, Refused) and outcome.room is not None:
        # Time lifts it: the reference stays free, and the same action with it is judged again.
        action = msgspec.structs.replace(action, throttled=True)
    return _text(action)


def _text(value: Any) -> str:
    return _json.encode(value).decode()


def shown(effect: Effect) -> dict[str, Any]:
    """An effect as answers and approvers see it."""
    found: dict[str, Any] = {
        "kind": effect.kind,
        "asset": effect.asset,
        "amount": str(effect.amount),
        "from": effect.from_,
        "to": effect.to,
    }
    if effect.spender is not None:
        found["spender"] = effect.spender
    if effect.unlimited:
        found["unlimited"] = True
    if effect.unknown:
        found["unknown"] = True
    if effect.label is not None:
        found["label"] = effect.label
    if effect.size is not None:
        found["size"] = effect.size
    return found


def _metadata(judged: Judged, outcome: Decided) -> dict[str, Any]:
    attempt = judged.attempt
    data: dict[str, Any] = {
        "agentId": attempt.ref.agent,
        "kind": attempt.kind.name,
        "digest": attempt.draft.digest.hex(),
    }
    if judged.authorization is not None:
        data["authorization"] = msgspec.Raw(judged.authorization.encode())
    data["policyVersion"] = judged.facts.policy_version
    if isinstance(outcome, Signed):
        data["txHash"] = outcome.tx_hash
        if attempt.claim is not None and attempt.claim.comment is not None:
            data["comment"] = attempt.claim.comment
    if isinstance(outcome, Queued):
        data["approvalId"] = outcome.approval_id
    return data


def _event_fields(judged: Judged) -> dict[str, Any]:
    """The order as its events tell of it: the fields of `OrderEvent`."""
    draft, subject = judged.attempt.draft, judged.decoded.subject
    effects, more = clipped([shown(effect) for effect in subject.effects])
    return {
        "tx_id": judged.attempt.tx_id,
        "kind": judged.attempt.kind.name,
        "to": draft.to_address,
        "value": draft.value,
        "chain_id": subject.chain_id,
        "reference_id": draft.reference_id,
        "effects": effects,
        "more_effects": more,
    }


def _signed_events(judged: Judged, outcome: Signed) -> str:
    draft, claim, told = judged.attempt.draft, judged.attempt.claim, _event_fields(judged)
    # Where the hash is the signature: until it is sent, anyone who reads events could send it with the message.
    is_signature = SIGNING[judged.attempt.kind.keys.family].hash_is_signature
    tx_hash = outcome.tx_hash if draft.broadcast or not is_signature else None
    events: list[Payload] = []
    if claim is not None:
        said: dict[str, Any] = {"approval_id": claim.approval_id, "comment": claim.comment}
        events.append(TxApproved(**told, **said, tx_hash=tx_hash, broadcast=draft.broadcast))
    events.append(TxSigned(**told, tx_hash=tx_hash, broadcast=draft.broadcast))
    return emitted(*events, *(_alarm(alert, outcome) for alert in judged.verdict.alerts))


def _alarm(alert: Alert, outcome: Signed) -> SpendThreshold:
    return SpendThreshold(
        window=alert.window,
        asset=alert.asset,
        spent=str(alert.spent),
        limit=str(alert.limit),
        percent=alert.percent,
        tx_id=outcome.tx_id,
    )
