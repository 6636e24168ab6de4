"""Everything between the read and the write: who asks, what the policies say, the signature. No waiting, no I/O.

What comes out is not released here: it becomes true, and may leave, with the write.
"""

from collections.abc import Callable

import msgspec

from custody.kit import ids
from custody.kit.errors import Frozen
from custody.kit.logs import logger
from custody.policies.judge import judge
from custody.policies.types import Facts as JudgedFacts
from custody.policies.types import Spend
from custody.protocol.messages import NeedsPreparation, Outcome, Queued, Refused, Signed
from custody.transactions import ledger
from custody.transactions.ledger import Facts
from signer import record
from signer.case import AgentAbsent, Case, KeyReused, Sealed
from signer.context import Signer
from signer.draft import NeedsNode, Produced, Unlocked, taken_over
from signer.heads import RolledBack
from signer.judging import Judging
from signer.proofs import BadProof, ProvenAgent, TokenRevoked
from signer.record import Judged
from signer.sealing import Context, Tampered

log = logger(__name__)
_decode_outcome = msgspec.msgpack.Decoder(Signed | Queued | Refused).decode


class ToWrite(msgspec.Struct, frozen=True):
    """A decision that becomes true with one write, and what the caller will be told then."""

    facts: Facts
    record: ledger.Record
    outcome: Outcome


def consider(signer: Signer, case: Case, facts: Facts | None, *, locked: bool) -> ToWrite | tuple[Outcome, bool] | None:
    """Everything between the read and the write: no waiting, no I/O, nothing released.

    None: the policies do not hang together. Without the row's lock that is mostly a change that was just being
    committed, so it is read again; under the lock it is tampering.
    """
    facts, earlier = admit(case, facts)
    if earlier is not None:
        return earlier, True
    judged = weigh(signer, case, facts, locked=locked)
    if judged is None:
        return None
    verdict = judged.verdict
    if verdict.decision == "sign":
        return _signed(signer, judged)
    if case.claim is not None:
        # Refused on today's policy: nothing is written, the item stays for another decision.
        return Refused(case.tx_id, list(verdict.results), record.why(verdict)), False
    if verdict.decision == "queue":
        return _queued(signer, judged)
    return _refused(judged)


def weigh(signer: Signer, case: Case, facts: Facts, *, locked: bool) -> Judged | None:
    """What the policies say of an order, whether it is signed then or only asked about; None as above."""
    try:
        rules = signer.policies.open(
            case.ref.tenant, case.ref.agent, facts.incarnation, facts.head, facts.policy_version, facts.rules
        )
        judging = signer.judging.open(case.ref.tenant, facts.config_version, facts.judging, facts.judging_mac)
    except (Tampered, RolledBack) as problem:
        if not locked:
            return None
        log.error(
            "policies refused",
            extra={"tenant": case.ref.tenant, "agent": case.ref.agent, "reason": type(problem).__name__},
        )
        raise Sealed(code="policy_tampered") from None
    built = case.draft.build(facts)
    against = _judged_facts(signer, case, facts, judging)
    verdict = judge(rules.rules, built.subject, against)
    return Judged(case, facts, built, verdict, rules, against, judging.auto_expire_seconds)


def admit(case: Case, facts: Facts | None) -> tuple[Facts, Outcome | None]:
    """Is this caller still who it was, is the agent free to act, was this asked before?"""
    caller = case.ask.caller
    if facts is None:
        # A token of an agent that is gone proves nothing any more.
        raise BadProof if isinstance(caller, ProvenAgent) else AgentAbsent
    if isinstance(caller, ProvenAgent) and (caller.incarnation, caller.epoch) != (facts.incarnation, facts.token_epoch):
        raise TokenRevoked
    if case.ask.key is not None and facts.idempotent is not None:
        fingerprint, answer = facts.idempotent
        if fingerprint != case.ask.key.fingerprint:
            raise KeyReused(code="idempotency_mismatch")
        if answer is not None:
            return facts, _decode_outcome(answer)
    if case.claim is None and facts.answer is not None:
        return facts, _decode_outcome(facts.answer)
    if facts.frozen:
        raise Frozen
    return facts, None


def _judged_facts(signer: Signer, case: Case, facts: Facts, judging: Judging) -> JudgedFacts:
    """The ledger's figures as the judge sees them: a slot that is taken over does not count twice."""
    spend = {asset: Spend(day, week) for asset, (day, week) in facts.spend.items()}
    floor: dict[str, int] = {}
    if (slot := taken_over(case.draft, facts.slot)) is not None:
        for asset, charge in slot.charges.items():
            amount = floor[asset] = int(charge.amount)
            known = spend.get(asset, Spend(0, 0))
            # The same edges as the statement that summed: a bucket counts while any of its hour is in the window.
            in_day, in_week = (record.in_window(facts.now, charge.hour, hours=hours) for hours in (24, 168))
            spend[asset] = Spend(known.day - amount * in_day, known.week - amount * in_week)
    claim = case.claim
    return JudgedFacts(
        now=facts.now, spend=spend, floor=floor,
        orders_last_hour=facts.orders_last_hour - (1 if claim and claim.counted_this_hour else 0),
        orders_last_day=facts.orders_last_day - (1 if claim and claim.counted_today else 0),
        empty_policy=signer.empty_policy, uncovered=judging.uncovered_effects, approving=claim is not None,
    )  # fmt: skip


def _signed(signer: Signer, judged: Judged) -> ToWrite | tuple[Outcome, bool]:
    try:
        final = judged.built.finish()
    except NeedsNode:
        return NeedsPreparation(), False
    produced = _produce(signer, judged.case, judged.facts, final.unlock)
    outcome = record.signed_outcome(judged, produced)
    seal = signer.statement_keys.of("receipt").mac
    return ToWrite(judged.facts, record.of_signed(judged, final.nonce, produced, outcome, seal), outcome)


def _produce(signer: Signer, case: Case, facts: Facts, unlock: Callable[[bytes], Unlocked]) -> Produced:
    """Open the key, make sure it is this wallet's, sign, and let go of it."""
    purpose = case.draft.purpose
    try:
        secret = signer.sealer.open(
            facts.blob or b"", Context(case.ref.tenant, "agent", case.ref.agent, purpose, facts.incarnation)
        )
        wallet = unlock(secret)
        if wallet.address != facts.address:
            raise Tampered
    except (Tampered, ValueError):
        log.error("key refused", extra={"tenant": case.ref.tenant, "agent": case.ref.agent})
        raise Sealed(code="key_tampered") from None
    return wallet.sign()


def _queued(signer: Signer, judged: Judged) -> ToWrite:
    case, verdict = judged.case, judged.verdict
    outcome = Queued(case.tx_id, ids.new_uuid(), list(verdict.results), record.why(verdict))
    content = record.approval_content(
        case.ref.tenant, case.ref.agent, judged.facts.incarnation, case.tx_id, outcome.approval_id, case.draft.digest
    )
    mac = signer.sealer.mac(record.APPROVAL_MAC, case.ref.tenant, content)
    return ToWrite(judged.facts, record.of_queued(judged, outcome, mac), outcome)


def _refused(judged: Judged) -> ToWrite:
    verdict = judged.verdict
    reason = record.why(verdict)
    outcome = Refused(judged.case.tx_id, list(verdict.results), reason, verdict.rate_limited, verdict.retry_after)
    return ToWrite(judged.facts, record.of_refused(judged, outcome), outcome)
