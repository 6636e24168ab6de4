"""Everything between the read and the write: who asks, what the policies say, the signature. No waiting, no I/O.

What comes out is not released here: it becomes true, and may leave, with the write.
"""

import hmac
from base64 import b64decode
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from custody.chains.evm.family import EVM_NATIVE, coin_of
from custody.identity.assertions import Matter
from custody.identity.authority import Authorized
from custody.kit import ids
from custody.kit.answers import Answered
from custody.kit.errors import Frozen
from custody.kit.logs import logger
from custody.kit.refs import AgentRef
from custody.policies.judge import judge
from custody.policies.narrow import narrowed
from custody.policies.parts import names
from custody.policies.quorum import broken, enabled_quorums
from custody.policies.types import Facts as JudgedFacts
from custody.policies.types import Spend
from custody.protocol.refusals import BadProof, IdempotencyMismatch, TokenRevoked
from custody.protocol.signer.intents import Proposed
from custody.protocol.signer.orders import BatchSigned, Decided, NeedsPreparation, Queued, Refused, Signed, Voted
from custody.protocol.signer.refusals import (
    AgentAbsent,
    ApprovalResolved,
    AuthorityTampered,
    KeyTampered,
    PolicyTampered,
    ReferenceTaken,
    VoteRefused,
)
from custody.worker.judging import Judging
from custody.worker.proofs import ProvenAgent
from custody.worker.sealing import Context, Tampered
from signer import authority, ballots, bitcoin_seals, ledger, record, votes
from signer.authority_seals import credentials_in
from signer.intents import batches
from signer.intents.seals import intent_step
from signer.intents.steps import NO_STEP, StepRow
from signer.ledger import Facts
from signer.orders.evm_calls import CallsFinal
from signer.orders.kind import Final, NeedsNode, taken_over
from signer.policies import RuleSet
from signer.record import Judged
from signer.rollback_journal import RolledBack
from signer.signing_attempt import Outcome, Proposal, SigningAttempt
from signer.signing_state import SigningState

log = logger(__name__)
_read_authorized = msgspec.json.Decoder(Authorized).decode
decode_outcome = msgspec.msgpack.Decoder(Signed | Queued | Refused | Voted | BatchSigned | Proposed).decode


class ToWrite(msgspec.Struct, frozen=True):
    """A decision that becomes true with one write, and what the caller will be told then.

    `tally` has the votes that the decision stands on. A vote that is one of too few is written by itself.
    """

    facts: Facts
    record: ledger.Record | ledger.VoteRecord | ledger.ProposalRecord
    outcome: Outcome
    tally: ballots.Tally | None = None
    # The other transactions of a batch, and the last step of the intent that is carried out.
    more: tuple[ledger.Record, ...] = ()
    step: StepRow = NO_STEP


def evaluate(
    signer: SigningState, attempt: SigningAttempt, facts: Facts | None, quorum: ballots.Read | None, *, locked: bool
) -> ToWrite | Answered[Outcome] | None:
    """Everything between the read and the write: no waiting, no I/O, nothing released.

    None: the policies do not hang together. Without the row's lock that is mostly a change that was just being
    committed, so it is read again; under the lock it is tampering.
    """
    # Once more: the database may have gone back since the request came in.
    signer.serve(attempt.ref.tenant)
    facts, earlier = admit(attempt, facts)
    if earlier is not None:
        return Answered(earlier, replayed=True)
    if attempt.claim is None and facts.action is None:
        signer.quotas.need_room(attempt.ref.tenant)
    judged = evaluate_policies(signer, attempt, facts, quorum, locked=locked)
    if judged is None:
        return None
    if facts.action is not None and attempt.intent is not None:
        # Its reference was used meanwhile, by a request that needed no intent.
        raise ReferenceTaken
    if facts.action is not None:
        # Only now: the signers of the request were looked at. No rule decides again what was decided before.
        return Answered(_under_reference(attempt, *facts.action), replayed=True)
    verdict = judged.verdict
    if attempt.proposal is not None and verdict.decision != "refuse":
        return _proposed(signer, judged, attempt.proposal)
    if verdict.decision == "sign":
        return _signed(signer, judged)
    if attempt.intent is not None and (verdict.decision == "queue" or verdict.room is not None):
        # Votes are missing, or a rate limit is full: nothing is written, the intent stays authorised.
        why = record.why(verdict) if verdict.room is not None else record.why_votes(verdict)
        lacks_votes = verdict.decision == "queue"
        return Answered(Refused(attempt.tx_id, list(verdict.results), why, verdict.room, lacks_votes))
    if attempt.claim is not None and verdict.decision == "queue":
        # A person approves, and still it waits: for votes.
        return _voted(judged)
    if attempt.claim is not None:
        # Refused on today's policy: nothing is written, the item stays for another decision.
        return Answered(Refused(attempt.tx_id, list(verdict.results), record.why(verdict)))
    if verdict.decision == "queue":
        return _queued(signer, judged)
    return _refused(signer, judged)


def evaluate_policies(
    signer: SigningState, attempt: SigningAttempt, facts: Facts, quorum: ballots.Read | None, *, locked: bool
) -> Judged | None:
    """What the policies say of an order, whether it is signed then or only asked about; None as above.

    `quorum` was read where the rules may ask for votes.
    """
    try:
        rules = signer.policies.open(
            attempt.ref.tenant, attempt.ref.agent, facts.incarnation, facts.head, facts.policy_version, facts.rules
        )
        judging = signer.judging.open(attempt.ref.tenant, facts.config_version, facts.judging, facts.judging_mac)
    except (Tampered, RolledBack) as problem:
        if not locked:
            return None
        log.error(
            "policies refused",
            extra={"tenant": attempt.ref.tenant, "agent": attempt.ref.agent, "reason": type(problem).__name__},
        )
        raise PolicyTampered from None
    if not facts.address and not attempt.kind.keys.made_when_asked:
        # Its row is gone; an agent always has a wallet of each family.
        log.error("wallet absent", extra={"tenant": attempt.ref.tenant, "agent": attempt.ref.agent})
        raise KeyTampered
    authorized: Authorized | None = None
    if attempt.is_authorized:
        found = _authorized(signer, attempt, facts, judging, locked=locked)
        if found is None:
            return None
        authorized = found
    if facts.psbt is not None:
        psbt, name = facts.psbt, attempt.draft.psbt.account if attempt.draft.psbt else ""
        bitcoin_seals.check(signer.sealer, attempt.ref, facts.incarnation, name, psbt)
    decoded = attempt.kind.effects(attempt.draft, facts)
    rules, tally = _tallied(signer, attempt, facts, rules, quorum)
    against = _judged_facts(signer, attempt, facts, judging, tally)
    if authorized is None:
        verdict = judge(rules.rules, decoded.subject, against)
    else:
        verdict = narrowed(rules.rules, decoded.subject, against, authorized.policy_ids)
    return Judged(attempt, facts, decoded, verdict, rules, against, judging.auto_expire_seconds, tally, authorized)


def _authorized(
    signer: SigningState, attempt: SigningAttempt, facts: Facts, judging: Judging, *, locked: bool
) -> Authorized | None:
    """By whom the order is authorised, of a whole and current set; None as above."""
    ref, permissions = attempt.ref, attempt.kind.permissions
    if attempt.evidence is not None:
        authority.check_switches(attempt.evidence, judging.mfa)
    try:
        found = signer.authority.open(
            ref.tenant, ref.agent, facts.incarnation, facts.authority_version, facts.authority or ""
        )
        if attempt.evidence is None:
            earlier = _read_authorized(attempt.claim.authorization or "" if attempt.claim else "")
            return authority.standing(found, earlier, permissions)
        credentials = partial(_credential, signer, ref, facts)
        return authority.authorized(attempt.evidence, found, credentials, permissions, facts.now)
    except (Tampered, RolledBack, msgspec.MsgspecError, ValueError, TypeError) as problem:
        if not locked:
            return None
        log.error("signers refused", extra={"tenant": ref.tenant, "agent": ref.agent, "reason": type(problem).__name__})
        raise AuthorityTampered from None


def _credential(signer: SigningState, ref: AgentRef, facts: Facts, name: str) -> bytes | None:
    """What a signer signs or is shown with, opened; None where there is none."""
    sealed = credentials_in(facts.authority or "").get(name)
    if sealed is None:
        return None
    return signer.sealer.open(b64decode(sealed), Context(ref.tenant, "signer", name, "credential", facts.incarnation))


def _tallied(
    signer: SigningState, attempt: SigningAttempt, facts: Facts, rules: RuleSet, quorum: ballots.Read | None
) -> tuple[RuleSet, ballots.Tally | None]:
    """The rules, without quorums that the operator broke, and the votes on the approval; None where none are asked."""
    claim = attempt.claim
    ref = attempt.ref.tenant, attempt.ref.agent, facts.incarnation
    if quorum is not None and votes.is_broken(signer, ref, facts.policy_version, quorum.broken, facts.now):
        # The hash stays that of the set as it is stored.
        rules = msgspec.structs.replace(rules, rules=broken(rules.rules))
    quorums = enabled_quorums(rules.rules)
    if claim is None or not quorums:
        if claim is not None and claim.vote is not None:
            raise VoteRefused("No rule of this agent asks for votes now: approve without one.")
        return rules, None
    if signer.claims.is_claimed(claim.approval_id):
        # Its votes were used: what lets it wait again was put back in the database.
        raise ApprovalResolved("This approval was signed under its votes already; the agent must send a new request.")
    matter = Matter("approval", attempt.ref.tenant, claim.approval_id, attempt.tx_id, attempt.draft.digest.hex())
    given = quorum.ballots if quorum is not None else []
    return rules, votes.tally(signer, matter, given, quorums, facts.now, claim.vote)


def admit(attempt: SigningAttempt, facts: Facts | None) -> tuple[Facts, Outcome | None]:
    """Is this caller still who it was, is the agent free to act, was this asked before?"""
    caller = attempt.call.caller
    if facts is None:
        # A token of an agent that is gone proves nothing any more.
        raise BadProof if isinstance(caller, ProvenAgent) else AgentAbsent
    if isinstance(caller, ProvenAgent) and (caller.incarnation, caller.epoch) != (facts.incarnation, facts.token_epoch):
        raise TokenRevoked
    if attempt.call.key is not None and facts.idempotent is not None:
        fingerprint, answer = facts.idempotent
        if fingerprint != attempt.call.key.fingerprint:
            raise IdempotencyMismatch
        if answer is not None:
            return facts, decode_outcome(answer)
    if facts.frozen:
        raise Frozen
    return facts, None


def _under_reference(attempt: SigningAttempt, digest: bytes, answer: bytes) -> Outcome:
    """What the same wallet action came to when it was first asked for under its reference."""
    if not hmac.compare_digest(digest, attempt.draft.digest):
        raise ReferenceTaken
    earlier: Outcome = decode_outcome(answer)
    return earlier


def _judged_facts(
    signer: SigningState, attempt: SigningAttempt, facts: Facts, judging: Judging, tally: ballots.Tally | None
) -> JudgedFacts:
    """The ledger's figures as the judge sees them: a slot that is taken over does not count twice."""
    spend = {asset: Spend(day, week) for asset, (day, week) in facts.spend.items()}
    floor: dict[str, int] = {}
    for asset, charge in record.counted_before(attempt.draft, facts).items():
        amount = int(charge.amount)
        # The same edges as the statement that summed: a bucket counts while any of its hour is in the window.
        day, week = (record.in_window(facts.now, charge.hour, hours=hours) for hours in (24, 168))
        for name in names(asset):
            floor[name] = floor.get(name, 0) + amount
            known = spend.get(name, Spend(0, 0))
            spend[name] = Spend(known.day - amount * day, known.week - amount * week)
    wanted, slot = attempt.draft.nonce, taken_over(attempt.draft, facts.slot)
    if wanted is not None and slot is not None and EVM_NATIVE in slot.charges:
        # Counted before the coins of chains were: it is in no sum of this chain's, and the slot is of this chain.
        coin = coin_of(wanted.chain_id)
        floor[coin] = floor.get(coin, 0) + int(slot.charges[EVM_NATIVE].amount)
    claim = attempt.claim
    # A queued order was counted when it was queued; being approved it does not count against itself.
    in_hour, in_day = record.counted_rates(facts.now, claim.requested_at) if claim else (False, False)
    # Of a batch all but one count as if they were there.
    others = attempt.draft.orders - 1
    return JudgedFacts(
        now=facts.now,
        spend=spend,
        floor=floor,
        orders_last_hour=sum(orders for _, orders in facts.minutes) - in_hour + others,
        orders_last_day=sum(orders for _, orders in facts.hours) - in_day + others,
        minutes=facts.minutes,
        hours=facts.hours,
        empty_policy=signer.empty_policy,
        uncovered=judging.uncovered_effects,
        units=signer.chains.units,
        approving=attempt.is_approved,
        votes=tally.votes if tally is not None else frozenset(),
    )


def _signed(signer: SigningState, judged: Judged) -> ToWrite | Answered[Outcome]:
    attempt, facts = judged.attempt, judged.facts
    try:
        final: Final = attempt.kind.finish(attempt.draft, judged.decoded, facts)
    except NeedsNode:
        return Answered(NeedsPreparation())
    seal = signer.statement_keys.of("receipt").mac
    if isinstance(final, CallsFinal):
        return _signed_batch(signer, judged, final, seal)
    produced = attempt.kind.sign(final, _opened(signer, attempt, facts))
    outcome = record.signed_outcome(judged, produced)
    written = record.of_signed(judged, final, produced, outcome, seal)
    step = intent_step(signer, attempt, "executed", [outcome])
    return ToWrite(facts, written, outcome, judged.tally, step=step)


def _signed_batch(signer: SigningState, judged: Judged, final: CallsFinal, seal: Callable[[bytes], bytes]) -> ToWrite:
    """One transaction for each call, each recorded as if those before it were signed already."""
    key = _opened(signer, judged.attempt, judged.facts)
    signed: list[Signed] = []
    records: list[ledger.Record] = []
    for part, one in zip(final.parts, record.each(judged), strict=True):
        produced = one.attempt.kind.sign(part, key)
        outcome = record.signed_outcome(one, produced)
        records.append(record.of_signed(one, part, produced, outcome, seal))
        signed.append(outcome)
    answer = BatchSigned(signed)
    step = intent_step(signer, judged.attempt, "executed", signed)
    first = record.answering(records[0], answer)
    return ToWrite(judged.facts, first, answer, judged.tally, tuple(records[1:]), step)


def _proposed(signer: SigningState, judged: Judged, proposal: Proposal) -> ToWrite:
    """A batch that no rule refuses: it waits as an intent, whatever the amounts."""
    attempt, verdict = judged.attempt, judged.verdict
    why_not = record.why(verdict) if verdict.decision == "queue" else "A batch of calls is for a person to authorise."
    outcome = Proposed(attempt.tx_id, list(verdict.results), why_not)
    return ToWrite(judged.facts, batches.of_calls(signer, judged, proposal.tx_ids, outcome), outcome)


def _opened(signer: SigningState, attempt: SigningAttempt, facts: Facts) -> Any:
    """The key, opened, once it is sure to be this wallet's."""
    keys = attempt.kind.keys
    try:
        secret = signer.sealer.open(
            facts.blob or b"", Context(attempt.ref.tenant, "agent", attempt.ref.agent, keys.family, facts.incarnation)
        )
        key = keys.open(secret)
        if keys.address(key) != facts.address:
            raise Tampered
    except (Tampered, ValueError):
        log.error("key refused", extra={"tenant": attempt.ref.tenant, "agent": attempt.ref.agent})
        raise KeyTampered from None
    return key


def _queued(signer: SigningState, judged: Judged) -> ToWrite:
    attempt, verdict = judged.attempt, judged.verdict
    outcome = Queued(attempt.tx_id, ids.new_uuid(), list(verdict.results), record.why(verdict))
    content = record.approval_content(
        attempt.ref.tenant,
        attempt.ref.agent,
        judged.facts.incarnation,
        attempt.tx_id,
        outcome.approval_id,
        attempt.draft.digest,
        authority.text_of(judged.authorized) if judged.authorized else None,
    )
    mac = signer.sealer.mac(record.APPROVAL_MAC, attempt.ref.tenant, content)
    return ToWrite(judged.facts, record.of_queued(judged, outcome, mac), outcome)


def _voted(judged: Judged) -> ToWrite | Answered[Decided]:
    """Too few votes: the one that is given now is kept, and without one nothing is written."""
    tally, verdict = judged.tally, judged.verdict
    if tally is None or tally.fresh is None:
        return Answered(
            Refused(judged.attempt.tx_id, list(verdict.results), record.why_votes(verdict), lacks_votes=True)
        )
    outcome = record.voted_outcome(judged, tally)
    return ToWrite(judged.facts, record.of_voted(judged, tally, tally.fresh, outcome), outcome, tally)


def _refused(signer: SigningState, judged: Judged) -> ToWrite:
    verdict = judged.verdict
    reason = record.why(verdict)
    outcome = Refused(judged.attempt.tx_id, list(verdict.results), reason, verdict.room)
    step = intent_step(signer, judged.attempt, "failed", outcome)
    return ToWrite(judged.facts, record.of_refused(judged, outcome), outcome, step=step)
