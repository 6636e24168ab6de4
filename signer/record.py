"""The record of a judged order: pure translation from verdict and signature to ledger, audit and events."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from custody.chains import families
from custody.chains.types import Effect
from custody.chains.units import USD
from custody.kit import clock
from custody.kit.act import Act
from custody.policies.assets import native_of
from custody.policies.fleet import shared_charges
from custody.policies.moved import lacks_price, moves
from custody.policies.parts import subtract_parts
from custody.policies.types import Alert, Result, Verdict
from custody.protocol.signer.outcomes import Decided, Queued, Refused, Signed
from custody.transactions.backoff import FIRST_LOOK
from custody.webhooks.events import (
    PolicyViolation,
    SpendThreshold,
    TxApproved,
    TxPending,
    TxSigned,
    clip,
)
from custody.webhooks.payload import Payload, encode_events
from custody.worker.audited import vet
from custody.worker.proven import ProvenAgent
from signer.ledger import (
    Asked,
    Charge,
    Coins,
    Facts,
    Found,
    NonceSlot,
    Record,
    Release,
    SpendRow,
    Told,
    Wait,
)
from signer.orders.kind import Draft, Final, Produced, taken_over
from signer.signing_attempt import Judged, SigningAttempt
from signer.statements import signed_content

_json = msgspec.json.Encoder()
_pack = msgspec.msgpack.Encoder()
# Of a refused order the bytes are kept up to this length, and none of a longer one: what is refused is free to ask for.
MAX_REFUSED_BYTES = 2048
# Of its effects so many are kept, then.
MAX_REFUSED_EFFECTS = 16
_NO_KEY = (None, None, None)


def why(verdict: Verdict) -> str:
    """One sentence for people: the first reason that decided."""
    if verdict.refused_by is not None:
        return f"Refused by policy: {verdict.refused_by.reason}"
    failed = [result for result in verdict.results if not result.passed]
    return f"Queued for approval: {failed[0].reason}" if failed else "Policy decided."


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
        payment=produced.payment,
    )


def of_signed(
    judged: Judged, final: Final, produced: Produced, outcome: Signed, seal: Callable[[bytes], bytes]
) -> Record:
    """The record of a signature: with its slot, its spend and its events, and under a MAC for its receipt."""
    claim, draft, votes = judged.attempt.claim, judged.attempt.draft, judged.tally.text() if judged.tally else None
    charges = {asset: amount for asset, amount in judged.verdict.charges.items() if amount > 0}
    found, before = _found_part(judged), counted_before(judged.attempt, judged.facts)
    # Limits on what the order does not touch say nothing of it.
    budgets = _text([budget for budget in judged.budgets if budget.asset in charges])
    release = Release(produced.tx_hash, produced.signature, produced.raw, budgets, votes, _replaced_order(judged))
    told = Told(
        "signed",
        _pack.encode(outcome),
        vet("tx.released" if judged.attempt.way.is_release else "tx.approved" if claim else "tx.signed"),
        _signed_events(judged, outcome),
        counts_rate=claim is None,
        resolved_at=judged.facts.now if claim else None,
        look_seconds=None if produced.payment is None else FIRST_LOOK,
    )
    return Record(
        asked=_asked_part(judged),
        found=found,
        told=told,
        release=release,
        slot=_slot(judged, final, charges, before),
        spend=_spend(judged, charges, before),
        coins=_coins(draft, final),
        act=_act(judged, outcome, told, seal(_statement(judged, found, release))),
        shared=shared_charges(judged.rules.rules, judged.decoded.subject, _moved_now(judged, charges)),
    )


def _moved_now(judged: Judged, charges: dict[str, int]) -> dict[str, int]:
    """The charges of the assets that the order itself moves; a slot that it takes over counted the others before."""
    amounts = moves(judged.decoded.subject, judged.against.worth)
    return {asset: amount for asset, amount in charges.items() if asset in amounts}


def counted_before(attempt: SigningAttempt, facts: Facts) -> Mapping[str, Charge]:
    """Find what the ledger has of this very spend already: of the slot it takes over, or of the same transaction."""
    if (slot := taken_over(attempt.draft, facts.slot)) is not None:
        return slot.charges
    if facts.psbt is not None and facts.psbt.counted is not None:
        in_dollars = {USD: facts.psbt.counted_usd} if facts.psbt.counted_usd is not None else {}
        return {native_of(attempt.kind.keys.family): facts.psbt.counted, **in_dollars}
    return {}


def _replaced_order(judged: Judged) -> str | None:
    """The newest earlier order that can't happen beside this one."""
    facts, draft = judged.facts, judged.attempt.draft
    if draft.nonce is None:
        return facts.psbt.conflict if facts.psbt is not None else None
    slot = taken_over(draft, facts.slot)
    return slot.tx_id if slot else None


def _slot(judged: Judged, final: Final, charges: dict[str, int], before: Mapping[str, Charge]) -> NonceSlot:
    facts, draft = judged.facts, judged.attempt.draft
    if draft.nonce is None:
        return NonceSlot(final.nonce)
    slot = taken_over(draft, facts.slot)
    # Whatever the slot counted, the order counts at least as much.
    stays = {asset: charge for asset, charge in before.items() if asset not in charges}
    after = stays | {
        asset: Charge(str(amount), hour_of(facts.now)) for asset, amount in subtract_parts(charges).items()
    }
    return NonceSlot(
        nonce=final.nonce,
        slot_from=slot.tx_id if slot else None,
        slot_was=slot.state if slot else None,
        slot_state="sent" if draft.broadcast else "open",
        slot_address=facts.address,
        slot_charges=_text(after),
    )


def _spend(judged: Judged, charges: dict[str, int], before: Mapping[str, Charge]) -> SpendRow:
    spend = subtract_parts(charges)
    # All of it, mostly.
    moved = {one: charge for one, charge in before.items() if judged.attempt.draft.nonce is None or one in charges}
    return SpendRow(
        spend_assets=list(spend) or None,
        spend_amounts=[str(amount) for amount in spend.values()] or None,
        moved_assets=list(moved),
        moved_hours=[charge.hour for charge in moved.values()],
        moved_amounts=[charge.amount for charge in moved.values()],
    )


def _coins(draft: Draft, final: Final) -> Coins:
    if draft.psbt is None or not final.coins:
        return Coins()
    return Coins(draft.psbt.unsigned_txid, [txid for txid, _ in final.coins], [vout for _, vout in final.coins])


def count_waited(attempt: SigningAttempt, now: datetime) -> int:
    """Count the seconds that an order waited which time alone releases."""
    claim = attempt.claim
    return int((now - claim.times[0]).total_seconds()) if attempt.way.is_release and claim and claim.times else 0


def release_times(judged: Judged, delay: int | None) -> tuple[datetime, datetime] | None:
    """Since when an order waits, and when it is signed by itself; None where it ends before, or a person decides."""
    if delay is None or 0 < _expire_seconds(judged) <= delay:
        return None
    return judged.facts.now, judged.facts.now + timedelta(seconds=delay)


def of_queued(judged: Judged, outcome: Queued, mac: bytes, times: tuple[datetime, datetime] | None) -> Record:
    """The record of an order that a person must decide; its MAC keeps it from being swapped meanwhile."""
    said: dict[str, Any] = {"approval_id": outcome.approval_id, "policy_results": outcome.results}
    pending = TxPending(**_event_fields(judged), **said, release_at=outcome.release_at)
    told = Told("pending_approval", _pack.encode(outcome), vet("tx.queued"), encode_events(pending), counts_rate=True)
    wait = Wait(outcome.approval_id, mac, _expire_seconds(judged), *(times or ()))
    act = _act(judged, outcome, told)
    return Record(asked=_asked_part(judged), found=_found_part(judged), told=told, wait=wait, act=act)


def _expire_seconds(judged: Judged) -> int:
    """Count the seconds that it waits for a person, 0: for ever; no longer than its signature would be of use."""
    ends, most = judged.attempt.draft.ends, judged.expire_seconds
    # An end further away than the column reaches is none.
    if ends is None or (left := ends - int(judged.facts.now.timestamp())) >= 2**31:
        return most
    return min(most or left, left)


def of_refused(judged: Judged, outcome: Refused) -> Record:
    """The record of an order that was refused: remembered, or nobody would know that it was tried."""
    failed: list[Result] = [result for result in outcome.results if not result.passed]
    # Coalesced to one a minute per agent and rule, so that a mad agent does not flood the webhooks.
    mark = "policy.violation:" + ",".join(sorted(result.policy_id or result.type for result in failed))[:500]
    draft = judged.attempt.draft
    violation = PolicyViolation(tx_id=outcome.tx_id, to=draft.to_address, value=draft.value, failed_policies=failed)
    told = Told(
        "rejected", _pack.encode(outcome), vet("tx.refused"), encode_events(violation, mark=mark), counts_rate=False
    )
    asked, found = _asked_part(judged, throttled=outcome.room is not None), _found_part(judged)
    # A batch is no order: who looks at old ones reads none there.
    if len(asked.order_text) > MAX_REFUSED_BYTES or draft.is_batch:
        asked = replace(asked, order_text="", data=None)
        found = replace(found, effects=_shown_effects(judged, MAX_REFUSED_EFFECTS), moved=None)
    return Record(asked=asked, found=found, told=told, act=_act(judged, outcome, told))


def _asked_part(judged: Judged, *, throttled: bool = False) -> Asked:
    attempt, draft, subject = judged.attempt, judged.attempt.draft, judged.decoded.subject
    action = draft.action
    if action is not None and throttled:
        # Time lifts it: the reference stays free, and the same action with it is judged again.
        action = replace(action, throttled=True)
    return Asked(
        tx=attempt.tx_id,
        kind=attempt.kind.name,
        family=attempt.kind.keys.family,
        to_address=draft.to_address,
        value=draft.value,
        data=draft.data,
        chain_id=subject.chain_id,
        caip2=subject.caip2,
        broadcast=draft.broadcast,
        reference_id=draft.reference_id,
        order_text=draft.order_text,
        digest=draft.digest,
        authorization_text=judged.authorization,
        wallet_action=None if action is None else _text(action),
    )


def _found_part(judged: Judged) -> Found:
    fee, amounts = judged.decoded.fee, _sums(judged)
    return Found(
        effects=_shown_effects(judged),
        # By itself, for those who look later: the ledger counts more where it takes a slot.
        moved=_text({asset: str(amount) for asset, amount in amounts.items()}) if amounts else None,
        policy_results=_text(judged.verdict.results),
        policy_version=judged.facts.policy_version,
        policy_hash=judged.rules.hash,
        fee=str(fee.amount) if fee else None,
        hour=hour_of(judged.facts.now),
    )


def _sums(judged: Judged) -> dict[str, int]:
    """Sum up what the order moves by itself, and what that is worth where all of it has a price."""
    subject, worth = judged.decoded.subject, judged.against.worth
    priced = worth and not any(lacks_price(effect, subject, worth) for effect in subject.effects)
    return subtract_parts(moves(subject)) | ({USD: sum(worth.values())} if priced else {})


def _shown_effects(judged: Judged, most: int | None = None) -> str:
    return _text([show(effect) for effect in judged.decoded.subject.effects[:most]])


def _statement(judged: Judged, found: Found, release: Release) -> bytes:
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
        replaces_tx_id=release.replaces_tx_id,
        digest=draft.digest,
        tx_hash=release.tx_hash,
        signature=release.signature or "",
        policy_version=found.policy_version,
        policy_hash=judged.rules.hash,
        effects=found.effects,
        policy_results=found.policy_results,
        budgets=release.budgets or "",
        approval=attempt.claim.approval_id if attempt.claim else None,
        by=f"agent:{attempt.ref.agent}"
        if isinstance(attempt.call.caller, ProvenAgent)
        else attempt.call.caller.principal,
        authorization=judged.authorization,
        votes=release.votes_text,
    )


def _act(judged: Judged, outcome: Decided, told: Told, mac: bytes | None = None) -> Act:
    attempt, caller = judged.attempt, judged.attempt.call.caller
    metadata = _metadata(judged, outcome)
    if mac is not None:
        # In the audit row, which no role can change: what a receipt states later is what was written here.
        metadata["recordMac"] = mac.hex()
    is_agent = isinstance(caller, ProvenAgent)
    return Act(
        caller.principal,
        # A refusal that time lifts leaves the key free: a retry with it is judged again.
        *(_NO_KEY if isinstance(outcome, Refused) and outcome.room is not None else attempt.call.key_row),
        told.answer if attempt.claim else None,
        "agent" if is_agent else "system",
        attempt.ref.agent if is_agent else caller.principal,
        _text(metadata),
        attempt.call.origin_row,
    )


def _text(value: Any) -> str:
    return _json.encode(value).decode()


def show(effect: Effect) -> dict[str, Any]:
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
    effects, more = clip([show(effect) for effect in subject.effects])
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
    is_signature = families.of_name(judged.attempt.kind.keys.family).hash_is_signature
    tx_hash = outcome.tx_hash if draft.broadcast or not is_signature else None
    events: list[Payload] = []
    if claim is not None:
        by = "system" if judged.attempt.way.is_release else "manual"
        said: dict[str, Any] = {"approval_id": claim.approval_id, "comment": claim.comment, "resolved_by": by}
        events.append(TxApproved(**told, **said, tx_hash=tx_hash, broadcast=draft.broadcast))
    events.append(TxSigned(**told, tx_hash=tx_hash, broadcast=draft.broadcast))
    return encode_events(*events, *(_alarm(alert, outcome) for alert in judged.verdict.alerts))


def _alarm(alert: Alert, outcome: Signed) -> SpendThreshold:
    return SpendThreshold(
        window=alert.window,
        asset=alert.asset,
        spent=str(alert.spent),
        limit=str(alert.limit),
        percent=alert.percent,
        tx_id=outcome.tx_id,
    )
